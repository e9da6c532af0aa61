//! Parses `[clock]`: the servers and the address of the node's clock.

use super::section::{Problems, Section};
use super::units::amount;
use super::value::{text, truth};
use paceline::time::ClockConfig;
use paceline_sched::units::Quantity;
use std::time::Duration;
use toml::de::DeValue;

/// The keys of the table.
pub(super) const CLOCK_KEYS: [&str; 7] =
    ["servers", "keys", "poll", "poll_max", "system", "serve", "neighbours"];

const CLOCK: &str = "clock must be a table: write [clock] above its keys";
const SERVERS: &str = "must be a list of 1 to 16 servers HOST:PORT or \"HOST:PORT key ID\", such as \
                       [\"ntp.example:123\", \"192.0.2.1:123 key 7\"]";
const KEYS: &str = "must be text: a file with one key per line in chrony's format, such as \"/etc/paceline/ntp.keys\"";
const POLL: &str = "must be from 62.5ms to 36h, such as \"16s\"; leave it out for 16s";
const POLL_MAX: &str = "must be from 62.5ms to 36h, such as \"64s\"; leave it out for 1024s";
const SYSTEM: &str =
    "must be from 1us to 1s, such as \"1ms\"; leave it out if nothing adjusts the system clock";
const SERVE: &str = "must be text: a UDP address of this host HOST:PORT, such as \"192.0.2.7:123\"";
const NEIGHBOURS: &str = "must be true (follow all neighbours) or false (none); leave it out for those to which the node connects";

/// The default interval of requests, if only one of the two is given.
const DEFAULTS: (Duration, Duration) = (Duration::from_secs(16), Duration::from_secs(1_024));

/// Reads the table if it exists.
pub(super) fn clock(section: &Section<'_, '_>, problems: &mut Problems<'_>) -> Option<ClockConfig> {
    let table = section.table("clock", CLOCK, &CLOCK_KEYS, problems)?;
    let max = ClockConfig::SERVERS_MAX;
    let named = |name: &str| {
        // The key file is checked below, with all servers.
        let one = ClockConfig::new().server(name).keys("").serve("localhost:123");
        one.check().map(|()| name.to_owned()).map_err(|_| SERVERS.to_owned())
    };
    let servers = table.read_list("servers", max, SERVERS, problems, named);
    let mut config = servers.iter().fold(ClockConfig::new(), |config, name| config.server(name));
    let keys = table.read("keys", problems, |value| text(value, KEYS, |it| Ok(it.to_owned())));
    config = keys.iter().fold(config, ClockConfig::keys);
    let polls = 62_500_000..=131_072_000_000_000;
    let poll = table.read("poll", problems, |value| time(value, &polls, POLL));
    let poll_max = table.read("poll_max", problems, |value| time(value, &polls, POLL_MAX));
    if poll.is_some() || poll_max.is_some() {
        let (min, max) = DEFAULTS;
        let min = poll.unwrap_or_else(|| poll_max.map_or(min, |max| min.min(max)));
        config = config.poll(min, poll_max.unwrap_or_else(|| max.max(min)));
    }
    let system =
        table.read("system", problems, |value| time(value, &(1_000..=1_000_000_000), SYSTEM));
    if let Some(error) = system {
        config = config.system(error);
    }
    let serve = table.read("serve", problems, |value| text(value, SERVE, |it| Ok(it.to_owned())));
    if let Some(address) = serve {
        config = config.serve(&address);
    }
    let neighbours = table.read("neighbours", problems, |value| truth(value, NEIGHBOURS));
    config = neighbours.into_iter().fold(config, ClockConfig::neighbours);
    if problems.is_empty()
        && let Err(what) = config.check()
    {
        problems.add(&table.span, what);
    }
    Some(config)
}

fn time(
    value: &DeValue<'_>,
    range: &std::ops::RangeInclusive<u64>,
    rule: &str,
) -> Result<Duration, String> {
    amount(value, Quantity::Duration, range, rule).map(Duration::from_nanos)
}
