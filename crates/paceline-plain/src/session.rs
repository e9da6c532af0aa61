//! The session that plain programs meet: a Zenoh router of its own, apart from the sessions of links.

use paceline::LinkConfig;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use zenoh::{Config, Session, Wait};

/// Where Zenoh programs look for a router if they are not told otherwise.
const USUAL: &str = "tcp/localhost:7447";
/// The socket in the runtime folder.
const SOCKET: &str = "plain.sock";
/// The largest message of a plain program, and the most that one connection makes this process hold.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Zenoh closes the connection of a program that does not take a message within this, if it was to wait for it.
pub(crate) const CLOSES_AFTER: Duration = Duration::from_secs(5);
/// Pieces of small samples that wait for a program before more are dropped, 64 KiB each: as many as Zenoh takes.
const PIECES: &str = "16";
/// Programs that may be connected at a time; Zenoh's default of 1,000 leaves no room for a router beside them.
const SESSIONS_MAX: usize = 4_096;

/// Where plain programs are met.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PlainConfig {
    /// Where the node waits for them, as Zenoh's endpoints; [`Self::default_listen`] if empty, unless there is
    /// something to connect to.
    pub listen: Vec<String>,
    /// Zenoh routers and peers that the node reaches out to, again and again until they answer.
    pub connect: Vec<String>,
    /// Allows listening beyond this host without TLS.
    pub insecure: bool,
}

/// An endpoint that would let anybody in, or none that Zenoh knows.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct EndpointError(String);

impl PlainConfig {
    /// The endpoints that hold if none is said: Zenoh's usual one on this host, and a socket in the folder
    /// that joins this host's processes.
    #[must_use]
    pub fn default_listen(runtime_dir: &Path) -> Vec<String> {
        let socket = runtime_dir.join(SOCKET);
        vec![USUAL.to_owned(), format!("unixsock-stream/{}", socket.display())]
    }

    /// Says what opening would refuse, without opening anything.
    ///
    /// # Errors
    /// [`EndpointError`]: somebody beyond this host would be let in.
    pub fn check(&self) -> Result<(), EndpointError> {
        if self.listen.is_empty() && self.connect.is_empty() {
            return Ok(());
        }
        let mut link = LinkConfig::new("plain");
        for endpoint in &self.listen {
            link = link.listen(endpoint);
        }
        for endpoint in &self.connect {
            link = link.connect(endpoint);
        }
        if self.insecure {
            link = link.insecure();
        }
        link.check().map_err(|error| EndpointError(error.to_string()))
    }

    pub(crate) fn open(&self) -> zenoh::Result<Session> {
        zenoh::open(self.config()?).wait()
    }

    /// Everything that we rely on, said explicitly: defaults have changed inside 1.x.
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
            // Programs of one host may find each other through us, as ROS 2 programs do; those of two
            // hosts must not, or their data would go around the links.
            ("scouting/multicast/enabled", "false".to_owned()),
            ("scouting/gossip/enabled", "true".to_owned()),
            ("scouting/gossip/multihop", "false".to_owned()),
            // What is not stamped stays so, and no clock of ours judges what is.
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
    fn the_configuration_is_one_that_zenoh_knows() {
        let listen = PlainConfig::default_listen(Path::new("/run/paceline"));
        assert_eq!(listen, ["tcp/localhost:7447", "unixsock-stream//run/paceline/plain.sock"]);
        let config = PlainConfig { listen, ..PlainConfig::default() };
        config.check().unwrap();
        config.config().unwrap();
    }

    #[test]
    fn nobody_beyond_this_host_is_let_in_unasked() {
        let listen = vec!["tcp/0.0.0.0:7447".to_owned()];
        let config = PlainConfig { listen, ..PlainConfig::default() };
        let said = config.check().unwrap_err().to_string();
        assert!(said.contains("tcp/0.0.0.0:7447") && said.contains("insecure"), "{said}");
        PlainConfig { insecure: true, ..config }.check().unwrap();
        PlainConfig::default().check().unwrap();
    }
}
