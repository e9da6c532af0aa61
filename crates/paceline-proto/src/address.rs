//! The grammar of addresses: `HOST:PORT`.
//!
//! An IPv6 address stands in brackets. A link-local one has a zone, the interface, by its name or number (RFC 4007):
//! `[fe80::7%eth0]:7600`. The spelling of URIs, `%25eth0` (RFC 6874), means the same.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

/// The longest host name in bytes (RFC 1035).
const NAME_BYTES_MAX: usize = 255;
/// The longest zone in bytes. Linux has 15, others more.
const ZONE_BYTES_MAX: usize = 63;
const RULE: &str =
    "must be HOST:PORT, such as robot.local:7600, 192.0.2.7:7600 or [2001:db8::7]:7600";
const BRACKETS: &str =
    "must be HOST:PORT, with brackets around an IPv6 address, such as [2001:db8::7]:7600";
const ZONE: &str = "must be HOST:PORT; only a link-local IPv6 address has a zone, the name or number of an interface, such as \
                    [fe80::7%eth0]:7600";

/// A host and a port.
///
/// ```
/// use paceline_proto::address::Address;
///
/// let address = Address::parse("[fe80::7%25eth0]:7600")?;
/// assert_eq!(address.to_string(), "[fe80::7%eth0]:7600");
/// assert!(Address::parse("fe80::7%eth0:7600").is_err());
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Address {
    /// A name or an IP address, without brackets and zone.
    host: String,
    /// The name or number of an interface.
    zone: Option<String>,
    port: u16,
}

impl Address {
    /// Reads `HOST:PORT`.
    ///
    /// # Errors
    /// Returns the spelling to use.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (host, port) = text.rsplit_once(':').ok_or(RULE)?;
        // The standard library also reads "+1".
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| digits).ok_or(RULE)?;
        if let Some(inner) = host.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(RULE)?;
            let (ip, zone) = match inner.split_once('%') {
                Some((ip, zone)) => (ip, Some(read_zone(zone)?)),
                None => (inner, None),
            };
            let address: Ipv6Addr = ip.parse().map_err(|_| RULE)?;
            return match zone {
                Some(_) if !has_zone(address) => Err(ZONE),
                _ => Ok(Self { host: ip.to_owned(), zone: zone.map(str::to_owned), port }),
            };
        }
        if host.contains(':') {
            return Err(BRACKETS);
        }
        let plain = |c: char| c.is_ascii_graphic() && !"[]/%@?#".contains(c);
        let is_name = (1..=NAME_BYTES_MAX).contains(&host.len()) && host.chars().all(plain);
        if is_name { Ok(Self { host: host.to_owned(), zone: None, port }) } else { Err(RULE) }
    }

    /// Returns the name or number of the interface of a link-local address.
    #[must_use]
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// Returns the name or IP address, without brackets and zone: the name that a peer's certificate would have.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns true if it is an address of the loopback interface, or `localhost`.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// Returns host and port for a lookup, which also finds the interface of a zone.
    #[must_use]
    pub fn place(&self) -> (String, u16) {
        let host = match &self.zone {
            Some(zone) => format!("{}%{zone}", self.host),
            None => self.host.clone(),
        };
        (host, self.port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, zone, port } = self;
        match zone {
            Some(zone) => write!(f, "[{host}%{zone}]:{port}"),
            None if host.contains(':') => write!(f, "[{host}]:{port}"),
            None => write!(f, "{host}:{port}"),
        }
    }
}

/// Returns true if an address may have a zone: the systems find the names of interfaces for these only.
fn has_zone(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.octets();
    let is_link_local_multicast = first == 0xff && second & 0xf == 2;
    address.is_unicast_link_local() || is_link_local_multicast
}

/// Reads the part behind the percent sign.
fn read_zone(text: &str) -> Result<&str, &'static str> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let uri = text.strip_prefix("25").filter(|rest| !is_number && !rest.is_empty());
    let zone = uri.unwrap_or(text);
    let plain = zone.chars().all(|c| c.is_ascii_graphic() && !"[]/%:".contains(c));
    let fits = (1..=ZONE_BYTES_MAX).contains(&zone.len()) && plain;
    // An interface has a 32-bit number above 0.
    let is_right = !is_number || zone.parse::<u32>().is_ok_and(|number| number > 0);
    if fits && is_right { Ok(zone) } else { Err(ZONE) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
    use proptest::prelude::*;

    fn sockets() -> impl Strategy<Value = SocketAddr> {
        let v4 = (any::<u32>(), any::<u16>())
            .prop_map(|(ip, port)| SocketAddr::V4(SocketAddrV4::new(ip.into(), port)));
        let v6 = (any::<u128>(), any::<u16>())
            .prop_map(|(ip, port)| SocketAddr::V6(SocketAddrV6::new(ip.into(), port, 0, 0)));
        // Also addresses with runs of zeros, and those that look like IPv4.
        let short = (any::<u128>(), any::<u128>(), any::<u16>()).prop_map(|(ip, mask, port)| {
            SocketAddr::V6(SocketAddrV6::new((ip & mask & (mask << 7)).into(), port, 0, 0))
        });
        let local = (any::<u64>(), any::<u16>(), 1..=u32::MAX).prop_map(|(ip, port, scope)| {
            let ip = (0xfe80_u128 << 112) | u128::from(ip);
            SocketAddr::V6(SocketAddrV6::new(ip.into(), port, 0, scope))
        });
        prop_oneof![v4, v6, short, local]
    }

    fn names() -> impl Strategy<Value = String> {
        prop_oneof!["[a-z0-9_]([a-zA-Z0-9._-]{0,30}[a-z0-9])?", Just("localhost".to_owned())]
    }

    fn zones() -> impl Strategy<Value = String> {
        // "25x" would be x in the spelling of URIs.
        "[a-zA-Z][a-zA-Z0-9._@+-]{0,14}".prop_filter("a name", |zone| !zone.contains(':'))
    }

    proptest! {
        #[test]
        fn every_address_that_is_printed_is_read_as_the_same(socket in sockets()) {
            let text = socket.to_string();
            let address = Address::parse(&text).unwrap();
            prop_assert_eq!(address.to_string(), text);
            prop_assert_eq!(address.port(), socket.port());
            prop_assert_eq!(address.host().parse(), Ok(socket.ip()));
            let scope = match socket {
                SocketAddr::V4(_) => 0,
                SocketAddr::V6(socket) => socket.scope_id(),
            };
            let zone = (scope > 0).then(|| scope.to_string());
            prop_assert_eq!(address.zone(), zone.as_deref());
        }

        #[test]
        fn names_and_zones_are_read_as_they_are_printed(name in names(), zone in zones(), ip in any::<u64>(), port in any::<u16>()) {
            let named = format!("{name}:{port}");
            prop_assert_eq!(Address::parse(&named).unwrap().to_string(), named);
            let ip = Ipv6Addr::from((0xfe80_u128 << 112) | u128::from(ip));
            let zoned = format!("[{ip}%{zone}]:{port}");
            let address = Address::parse(&zoned).unwrap();
            prop_assert_eq!(address.to_string(), zoned);
            prop_assert_eq!(&Address::parse(&format!("[{ip}%25{zone}]:{port}")).unwrap(), &address);
            prop_assert_eq!(address.place(), (format!("{ip}%{zone}"), port));
        }

        #[test]
        fn any_text_is_an_address_that_is_read_back_or_refused(text in "[\\[\\]%:./@a-f0-9 é]{0,40}") {
            match Address::parse(&text) {
                Ok(address) => prop_assert_eq!(Address::parse(&address.to_string()), Ok(address)),
                Err(rule) => prop_assert!(rule.starts_with("must be HOST:PORT"), "{}", rule),
            }
        }
    }

    #[test]
    fn wrong_addresses_are_refused_with_the_spelling_to_use() {
        for (wrong, part) in [
            ("", RULE),
            ("robot", RULE),
            (":1", RULE),
            ("robot:", RULE),
            ("robot:65536", RULE),
            ("robot:+1", RULE),
            ("robot:1#x=1", RULE),
            ("ro bot:1", RULE),
            ("a/b:1", RULE),
            ("[robot]:1", RULE),
            ("[::1]", RULE),
            ("[::1:1", RULE),
            ("::1:7600", BRACKETS),
            ("fe80::1%eth0:7600", BRACKETS),
            ("192.0.2.1%eth0:7600", RULE),
            ("[2001:db8::1%eth0]:1", ZONE),
            ("[::1%lo]:1", ZONE),
            ("[fe80::1%]:1", ZONE),
            ("[fe80::1%0]:1", ZONE),
            ("[fe80::1%99999999999]:1", ZONE),
            ("[fe80::1%a b]:1", ZONE),
        ] {
            assert_eq!(Address::parse(wrong), Err(part), "{wrong}");
        }
    }
}
