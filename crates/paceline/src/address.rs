//! The lookup of addresses.

use paceline_proto::address::Address;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// Returns the addresses of `HOST:PORT`, where a link-local IPv6 address may name its interface: `[fe80::7%eth0]:7600`.
/// Blocks while a name server answers.
///
/// # Errors
/// Returns a description of the problem with the address.
pub fn resolve_address(address: &str) -> Result<Vec<SocketAddr>, String> {
    resolve(&Address::parse(address)?)
}

/// Looks up the addresses; at least one. Blocks while a name server answers.
pub(crate) fn resolve(address: &Address) -> Result<Vec<SocketAddr>, String> {
    let (host, port) = address.place();
    let found = (host.as_str(), port).to_socket_addrs();
    let found: Vec<_> = found.map_err(|error| explain(address, &error))?.collect();
    if found.is_empty() { Err(format!("{address} has no address")) } else { Ok(found) }
}

/// Returns the cause of a failed lookup.
pub(crate) fn explain(address: &Address, error: &io::Error) -> String {
    match address.zone() {
        Some(zone) => format!("this host has no interface '{zone}'; `ip link` shows their names"),
        None => format!("{error}; check the name, or use an IP address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_printed_are_found_again() {
        for text in ["192.0.2.7:0", "[::]:7600", "[2001:db8::7]:1", "[::ffff:192.0.2.7]:65535"] {
            let socket: SocketAddr = text.parse().unwrap();
            assert_eq!(resolve_address(&socket.to_string()), Ok(vec![socket]));
        }
        // By number, also of an interface that this host does not have.
        let numbered: SocketAddr = "[fe80::7%4294967290]:7600".parse().unwrap();
        assert_eq!(resolve_address(&numbered.to_string()), Ok(vec![numbered]));
    }

    #[test]
    fn interfaces_are_found_by_name() {
        let named = resolve_address("[fe80::7%lo]:7600").unwrap();
        let scope = |address: &SocketAddr| match address {
            SocketAddr::V6(address) => address.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        // The loopback interface is the first of each network namespace.
        assert!(named.iter().all(|address| scope(address) == 1), "{named:?}");
        let unknown = "this host has no interface 'nosuchif0'; `ip link` shows their names";
        assert_eq!(resolve_address("[fe80::1%nosuchif0]:7600"), Err(unknown.to_owned()));
    }
}
