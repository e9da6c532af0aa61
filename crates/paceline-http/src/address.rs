//! The address of the HTTP server.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The documented default port.
pub const PORT: u16 = 8470;
/// The longest path of a unix socket in bytes.
const PATH_MAX: usize = 100;
const RULE: &str = "must be an address with a port, 127.0.0.1:8470 or [::1]:8470, or unix:/PATH of at most 100 bytes";

/// An address, or a unix socket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HttpAddress {
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// The path of a unix socket.
    Unix(PathBuf),
}

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let fits = path.starts_with('/') && path.len() <= PATH_MAX;
            return if fits { Ok(Self::Unix(path.into())) } else { Err(RULE.to_owned()) };
        }
        let address = match text.parse() {
            Ok(address) => address,
            // The zone of a link-local address may be the name of an interface.
            Err(_) if text.starts_with('[') => {
                let found = paceline::resolve_address(text)?;
                *found.first().ok_or(RULE)?
            }
            Err(_) => return Err(RULE.to_owned()),
        };
        Ok(Self::Tcp(address))
    }
}

impl HttpAddress {
    /// Returns true if only this host reaches the address.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Returns the error for an address of `option` that other hosts reach, without TLS and tokens.
    pub fn needs(&self, option: &str) -> String {
        let port = match self {
            Self::Tcp(address) => address.port(),
            Self::Unix(_) => PORT,
        };
        format!(
            "{self} ({option}): other hosts reach it; set http_tls_cert, http_tls_key and http_tokens in the configuration of \
             paceline node, or listen on 127.0.0.1 and run ssh -L {port}:127.0.0.1:{port} HOST there"
        )
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

/// The files with which the HTTP server serves clients of other hosts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HttpFiles {
    /// The certificate of the server.
    pub cert: Option<PathBuf>,
    /// The key of the certificate.
    pub key: Option<PathBuf>,
    /// The tokens of the clients.
    pub tokens: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_host_are_told_from_others() {
        for right in ["127.0.0.1:8470", "127.0.0.2:0", "[::1]:80", "unix:/run/paceline/api.sock"] {
            assert_eq!(right.parse::<HttpAddress>().unwrap().to_string(), right);
        }
        let long = format!("unix:/{}", "x".repeat(PATH_MAX));
        for wrong in ["", "8470", ":8470", "localhost:8470", "127.0.0.1", "unix:relative", &long] {
            assert_eq!(wrong.parse::<HttpAddress>().unwrap_err(), RULE, "{wrong}");
        }
        for open in ["0.0.0.0:8470", "192.0.2.1:80", "[::]:80"] {
            let open: HttpAddress = open.parse().unwrap();
            assert!(!open.is_local() && open.needs("--http").contains("ssh -L"), "{open}");
        }
    }
}
