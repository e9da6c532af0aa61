//! The address of the HTTP server.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The documented default port.
pub(crate) const PORT: u16 = 8470;
/// The longest path of a unix socket in bytes.
const PATH_MAX: usize = 100;
const RULE: &str = "must be an address of this host with a port, 127.0.0.1:8470 or [::1]:8470, or unix:/PATH of at most \
     100 bytes";

/// An address of this host, or a unix socket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum HttpAddress {
    /// TCP on the loopback interface.
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let fits = path.starts_with('/') && path.len() <= PATH_MAX;
            return if fits { Ok(Self::Unix(path.into())) } else { Err(RULE.to_owned()) };
        }
        let address: SocketAddr = text.parse().map_err(|_| RULE.to_owned())?;
        if !address.ip().is_loopback() {
            return Err(format!(
                "{RULE}: the server has no password; to reach it from another host, run ssh -L \
                 {PORT}:127.0.0.1:{PORT} HOST there"
            ));
        }
        Ok(Self::Tcp(address))
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_host_are_served() {
        for right in ["127.0.0.1:8470", "127.0.0.2:0", "[::1]:80", "unix:/run/paceline/api.sock"] {
            assert_eq!(right.parse::<HttpAddress>().unwrap().to_string(), right);
        }
        let long = format!("unix:/{}", "x".repeat(PATH_MAX));
        for wrong in ["", "8470", ":8470", "localhost:8470", "127.0.0.1", "unix:relative", &long] {
            assert_eq!(wrong.parse::<HttpAddress>().unwrap_err(), RULE, "{wrong}");
        }
        for open in ["0.0.0.0:8470", "192.0.2.1:80", "[::]:80"] {
            assert!(open.parse::<HttpAddress>().unwrap_err().contains("ssh -L"), "{open}");
        }
    }
}
