//! The UDP address of WebRTC, and the addresses that browsers try.

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Most addresses that are offered.
const CANDIDATES_MAX: usize = 16;
const RULE: &str = "must be an address with a port and the public addresses of this host, such as 0.0.0.0:8471 or \
     0.0.0.0:8471,public=203.0.113.7";

/// An IP address and a UDP port for WebRTC, with the addresses at which other networks reach it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WebrtcAddress {
    pub(super) bind: SocketAddr,
    public: Vec<IpAddr>,
}

impl FromStr for WebrtcAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let bind = parts.next().and_then(|first| first.parse().ok()).ok_or(RULE)?;
        let public = parts.map(|part| part.strip_prefix("public=").and_then(|ip| ip.parse().ok()));
        let public = public.collect::<Option<Vec<IpAddr>>>().ok_or(RULE)?;
        if public.len() > CANDIDATES_MAX / 2 {
            return Err(format!(
                "has {} public addresses; at most {}",
                public.len(),
                CANDIDATES_MAX / 2
            ));
        }
        Ok(Self { bind, public })
    }
}

impl fmt::Display for WebrtcAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bind.fmt(f)?;
        self.public.iter().try_for_each(|ip| write!(f, ",public={ip}"))
    }
}

impl WebrtcAddress {
    /// Returns the addresses that browsers try: of this host, and the public ones.
    pub(super) fn candidates(&self, port: u16) -> io::Result<Vec<SocketAddr>> {
        let own = if self.bind.ip().is_unspecified() {
            interfaces(self.bind.is_ipv4())?
        } else {
            vec![self.bind.ip()]
        };
        let mut all: Vec<SocketAddr> = Vec::new();
        for ip in own.into_iter().take(CANDIDATES_MAX / 2).chain(self.public.iter().copied()) {
            let address = SocketAddr::new(ip, port);
            if !all.contains(&address) {
                all.push(address);
            }
        }
        Ok(all)
    }
}

/// Returns the addresses of the interfaces that are up. Link-local ones of IPv6 need a zone, which a candidate has not.
fn interfaces(only_v4: bool) -> io::Result<Vec<IpAddr>> {
    let mut found = Vec::new();
    for interface in getifaddrs()?.filter(|it| it.flags.contains(InterfaceFlags::IFF_UP)) {
        let Some(address) = interface.address else { continue };
        if let Some(v4) = address.as_sockaddr_in() {
            found.push(IpAddr::V4(v4.ip()));
        } else if let Some(v6) = address.as_sockaddr_in6().filter(|_| !only_v4)
            && !v6.ip().is_unicast_link_local()
        {
            found.push(IpAddr::V6(v6.ip()));
        }
    }
    // Other hosts do not reach loopback, so it comes last.
    found.sort_by_key(IpAddr::is_loopback);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_public_ones() {
        for right in
            ["127.0.0.1:8471", "0.0.0.0:8471,public=203.0.113.7,public=2001:db8::7", "[::]:0"]
        {
            assert_eq!(right.parse::<WebrtcAddress>().unwrap().to_string(), right);
        }
        for wrong in [
            "",
            "8471",
            "localhost:8471",
            "127.0.0.1:8471,203.0.113.7",
            "127.0.0.1:8471,public=host",
        ] {
            assert_eq!(wrong.parse::<WebrtcAddress>().unwrap_err(), RULE, "{wrong}");
        }
        let many = format!("127.0.0.1:1{}", ",public=203.0.113.7".repeat(9));
        assert!(many.parse::<WebrtcAddress>().unwrap_err().contains("at most 8"));
        let address: WebrtcAddress = "127.0.0.1:8471,public=203.0.113.7".parse().unwrap();
        let candidates: Vec<String> =
            address.candidates(9).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(candidates, ["127.0.0.1:9", "203.0.113.7:9"]);
        let any = "0.0.0.0:0".parse::<WebrtcAddress>().unwrap().candidates(9).unwrap();
        assert!(any.last().is_some_and(|last| last.ip().is_loopback()), "{any:?}");
    }
}
