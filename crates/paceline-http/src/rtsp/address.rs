//! The address of the server of players, and its login.

use paceline_edge::Login;
use paceline_tool::exit;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

/// Longest file with a login in bytes.
const FILE_MAX: u64 = 4_096;
const RULE: &str = "must be an address with a port, such as 127.0.0.1:8554 or [::1]:8554";

/// An IP address and a port for players of RTSP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RtspAddress(pub(super) SocketAddr);

impl FromStr for RtspAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| RULE.to_owned())
    }
}

impl fmt::Display for RtspAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl RtspAddress {
    /// Checks that only this host reaches the address, or that there is a login.
    ///
    /// # Errors
    /// Returns the reason with the remedies.
    pub fn check(&self, has_login: bool) -> Result<(), String> {
        if has_login || self.0.ip().is_loopback() {
            return Ok(());
        }
        Err(format!(
            "{self} (--rtsp): other hosts reach it; write USER:PASSWORD into a file and give --rtsp-login FILE, or \
             listen on 127.0.0.1"
        ))
    }
}

/// Reads the file with the name and the password that players give: one line `USER:PASSWORD`.
///
/// # Errors
/// Returns a usage error with the reason, which does not contain the text.
pub fn read_login(path: &Path) -> anyhow::Result<Login> {
    let shown = path.display();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(FILE_MAX + 1).read_to_string(&mut text));
    read.map_err(|error| {
        exit::usage(format!("cannot read --rtsp-login {shown}: {}", exit::file_error(&error)))
    })?;
    text.parse().map_err(|error| exit::usage(format!("--rtsp-login: the file {shown} {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_other_hosts_need_a_login() {
        let address = |text: &str| text.parse::<RtspAddress>().unwrap();
        for own in ["127.0.0.1:8554", "[::1]:0"] {
            assert_eq!(address(own).check(false), Ok(()));
        }
        for open in ["0.0.0.0:8554", "192.0.2.1:8554"] {
            assert!(address(open).check(false).unwrap_err().contains("--rtsp-login FILE"));
            assert_eq!(address(open).check(true), Ok(()));
        }
        for wrong in ["", "8554", "localhost:8554", "127.0.0.1"] {
            assert_eq!(wrong.parse::<RtspAddress>().unwrap_err(), RULE, "{wrong}");
        }
    }
}
