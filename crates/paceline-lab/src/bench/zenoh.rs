//! Sessions of plain Zenoh, with every setting explicit that a measurement relies on.

use anyhow::{Result, anyhow};
use zenoh::{Config, Session};

/// Opens a session in `mode` without discovery; `more` contains further settings.
pub(super) fn open(
    mode: &str,
    listen: &[String],
    connect: &[String],
    more: &[(&str, &str)],
) -> Result<Session> {
    let mut config = Config::default();
    let (listen, connect) = (format!("{listen:?}"), format!("{connect:?}"));
    let mode = format!("{mode:?}");
    let settings = [
        ("mode", mode.as_str()),
        ("listen/endpoints", &listen),
        ("connect/endpoints", &connect),
        ("scouting/multicast/enabled", "false"),
        ("scouting/gossip/enabled", "false"),
        ("timestamping/enabled", "false"),
    ];
    for (key, value) in settings.iter().chain(more) {
        let inserted = config.insert_json5(key, value);
        inserted.map_err(|error| anyhow!("Zenoh configuration {key} = {value}: {error}"))?;
    }
    paceline_plain::open_session(config).map_err(|error| anyhow!("a plain Zenoh session: {error}"))
}
