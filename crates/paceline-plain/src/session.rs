//! The Zenoh session for plain programs: a separate router, apart from the sessions of links.

use paceline::is_local_endpoint;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use zenoh::{Config, Session, Wait as _};

/// The endpoint where Zenoh programs expect a router by default.
const USUAL: &str = "tcp/localhost:7447";
/// The name of the socket in the runtime folder.
const SOCKET: &str = "plain.sock";
/// The largest message of a plain program in bytes, and the buffer limit of one connection.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Zenoh closes the connection of a program that blocks a put for this time.
pub(crate) const CLOSES_AFTER: Duration = Duration::from_secs(5);
/// The queue length for small samples, in pieces of 64 KiB. This is Zenoh's maximum.
const PIECES: &str = "16";
/// The number of connected programs. Zenoh's default of 1,000 leaves no slot for a router in
/// addition to them.
const SESSIONS_MAX: usize = 4_096;

/// Opens a session on a thread of its own: Zenoh panics if it blocks a thread of a current-thread
/// tokio runtime, and the caller may be on one.
///
/// Use this instead of `zenoh::open`, which is generic: each crate that calls it compiles Zenoh's
/// whole start again.
///
/// # Errors
/// Those of `zenoh::open`, for example an address in use.
pub fn open_session(config: Config) -> zenoh::Result<Session> {
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("paceline-open".to_owned());
        let opening = named.spawn_scoped(scope, || zenoh::open(config).wait())?;
        opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The endpoints for plain programs.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PlainConfig {
    /// The Zenoh endpoints to listen on. Defaults to [`Self::default_listen`] if both this and
    /// `connect` are empty.
    pub listen: Vec<String>,
    /// The Zenoh routers and peers to connect to, with retries.
    pub connect: Vec<String>,
    /// Allows listening beyond this host without TLS.
    pub insecure: bool,
}

/// An endpoint that is open to other hosts, or that Zenoh does not know.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct EndpointError(String);

impl PlainConfig {
    /// Returns the default endpoints: Zenoh's usual one on this host, and a socket in the runtime
    /// folder.
    #[must_use]
    pub fn default_listen(runtime_dir: &Path) -> Vec<String> {
        let socket = runtime_dir.join(SOCKET);
        vec![USUAL.to_owned(), format!("unixsock-stream/{}", socket.display())]
    }

    /// Checks the endpoints without opening them.
    ///
    /// # Errors
    /// [`EndpointError`] if an endpoint would be open to other hosts without TLS.
    pub fn check(&self) -> Result<(), EndpointError> {
        let open = self.listen.iter().find(|endpoint| !is_local_endpoint(endpoint));
        match open.filter(|_| !self.insecure) {
            Some(open) => Err(EndpointError(format!(
                "[plain]: listening on {open} accepts connections from any host; use an address of this host, or set insecure"
            ))),
            None => Ok(()),
        }
    }

    pub(crate) fn open(&self) -> zenoh::Result<Session> {
        open_session(self.config()?)
    }

    /// Returns the configuration. It sets every option explicitly, because defaults have changed
    /// within Zenoh 1.x.
    fn config(&self) -> zenoh::Result<Config> {
        let mut config = Config::default();
        for (key, value) in [
            ("mode", "\"router\"".to_owned()),
            ("listen/endpoints", list(&self.listen)),
            ("listen/timeout_ms", "0".to_owned()),
            ("listen/exit_on_failure", "true".to_owned()),
            ("connect/endpoints", list(&self.connect)),
            ("connect/timeout_ms", "-1".to_owned()),
            ("connect/exit_on_failure", "false".to_owned()),
            ("open/return_conditions/connect_scouted", "false".to_owned()),
            ("open/return_conditions/declares", "false".to_owned()),
            // Gossip lets programs of one host find each other through this router, as ROS 2
            // programs do. Without multihop, programs of two hosts do not find each other;
            // otherwise their data would bypass the links.
            ("scouting/multicast/enabled", "false".to_owned()),
            ("scouting/gossip/enabled", "true".to_owned()),
            ("scouting/gossip/multihop", "false".to_owned()),
            // Samples without a timestamp stay without, and the clock of this host checks no
            // timestamps.
            ("timestamping/enabled", "false".to_owned()),
            ("adminspace/enabled", "true".to_owned()),
            ("adminspace/permissions/read", "true".to_owned()),
            ("adminspace/permissions/write", "false".to_owned()),
            ("transport/unicast/max_sessions", SESSIONS_MAX.to_string()),
            ("transport/link/rx/max_message_size", MESSAGE_BYTES_MAX.to_string()),
            ("transport/link/tx/queue/size/data", PIECES.to_owned()),
            (
                "transport/link/tx/queue/congestion_control/block/wait_before_close",
                CLOSES_AFTER.as_micros().to_string(),
            ),
        ] {
            config.insert_json5(key, &value)?;
        }
        Ok(config)
    }
}

fn list(endpoints: &[String]) -> String {
    let mut text = String::from("[");
    for endpoint in endpoints {
        let _ = write!(text, "{endpoint:?},");
    }
    text + "]"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_valid_for_zenoh() {
        let listen = PlainConfig::default_listen(Path::new("/run/paceline"));
        assert_eq!(listen, ["tcp/localhost:7447", "unixsock-stream//run/paceline/plain.sock"]);
        let config = PlainConfig { listen, ..PlainConfig::default() };
        config.check().unwrap();
        config.config().unwrap();
    }

    #[test]
    fn only_this_host_may_connect_by_default() {
        let listen = vec!["tcp/0.0.0.0:7447".to_owned()];
        let config = PlainConfig { listen, ..PlainConfig::default() };
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains("tcp/0.0.0.0:7447") && error.contains("insecure"), "{error}");
        PlainConfig { insecure: true, ..config }.check().unwrap();
        PlainConfig::default().check().unwrap();
    }
}
