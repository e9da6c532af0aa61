//! The multicast addresses of a link.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

/// The longest and the shortest prefix of a range.
const PREFIXES: std::ops::RangeInclusive<u8> = 20..=31;

/// The addresses of a link's multicast groups: `239.77.0.0/24:7400`, a network of 2 to 4,096 IPv4 multicast addresses and
/// a UDP port. The first one is for probes, and each other one for one stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MulticastRange {
    first: Ipv4Addr,
    prefix: u8,
    port: u16,
}

impl MulticastRange {
    /// Returns the number of addresses.
    pub(crate) const fn len(self) -> u16 {
        1 << (32 - self.prefix)
    }

    /// Returns the group at a place; `None` beyond the last one.
    pub(crate) fn group(self, place: u16) -> Option<SocketAddrV4> {
        let address = Ipv4Addr::from(u32::from(self.first) + u32::from(place));
        (place < self.len()).then(|| SocketAddrV4::new(address, self.port))
    }

    pub(crate) fn to_bytes(self) -> [u8; 7] {
        let ([a, b, c, d], [e, f]) = (self.first.octets(), self.port.to_be_bytes());
        [a, b, c, d, self.prefix, e, f]
    }

    pub(crate) fn from_bytes([a, b, c, d, prefix, e, f]: [u8; 7]) -> Option<Self> {
        Self::new(Ipv4Addr::new(a, b, c, d), prefix, u16::from_be_bytes([e, f])).ok()
    }

    fn new(first: Ipv4Addr, prefix: u8, port: u16) -> Result<Self, String> {
        if !PREFIXES.contains(&prefix) {
            return Err(format!("the prefix /{prefix} must be /20 to /31"));
        }
        if !first.is_multicast() {
            return Err(format!("{first} is no IPv4 multicast address, such as 239.77.0.0"));
        }
        let range = Self { first, prefix, port };
        if u32::from(first) % u32::from(range.len()) != 0 {
            return Err(format!("{first} is not the first address of a network /{prefix}"));
        }
        if port == 0 {
            return Err("the port must be 1 to 65535".to_owned());
        }
        Ok(range)
    }
}

impl FromStr for MulticastRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = || {
            let (network, port) = text.split_once(':')?;
            let (first, prefix) = network.split_once('/')?;
            Some((first.parse().ok()?, prefix.parse().ok()?, port.parse().ok()?))
        };
        let (first, prefix, port) =
            parts().ok_or("must be ADDRESS/PREFIX:PORT, such as 239.77.0.0/24:7400")?;
        Self::new(first, prefix, port)
    }
}

impl fmt::Display for MulticastRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.first, self.prefix, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_networks_of_multicast_addresses() {
        let range: MulticastRange = "239.77.1.0/24:7400".parse().unwrap();
        assert_eq!(range.to_string(), "239.77.1.0/24:7400");
        assert_eq!(MulticastRange::from_bytes(range.to_bytes()), Some(range));
        assert_eq!(range.group(255), Some("239.77.1.255:7400".parse().unwrap()));
        assert_eq!((range.group(256), range.len()), (None, 256));
        for (text, part) in [
            ("239.77.1.0", "ADDRESS/PREFIX:PORT"),
            ("239.77.1.0/24:x", "ADDRESS/PREFIX:PORT"),
            ("239.77.1.0/24:0", "port"),
            ("239.77.1.0/32:1", "/20 to /31"),
            ("239.0.0.0/8:1", "/20 to /31"),
            ("10.0.0.0/24:1", "multicast address"),
            ("239.77.1.4/24:1", "first address"),
        ] {
            let error = text.parse::<MulticastRange>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
