//! The origin of an incoming connection: a link accepts a limited number of nodes from each.

use super::proof::Proof;
use ring::digest::{SHA256, digest};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The limit of nodes with one certificate. Each process of a host is a node, and they may share its certificate.
const CERTIFICATE_NODES_MAX: usize = 64;
/// The limit of nodes without a certificate at one address, which may be that of many hosts behind one router.
const ADDRESS_NODES_MAX: usize = 64;
/// The limit of those at an address of this host.
const LOOPBACK_NODES_MAX: usize = 512;

/// The origin of an incoming connection.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Origin {
    /// The digest of a certificate.
    Certificate([u8; 32]),
    /// The address of a peer without a certificate; of IPv6 its first 64 bits, which one host may vary.
    Address(IpAddr),
    /// A process of this host, over a unix socket.
    Host,
}

impl Origin {
    /// Returns the origin of a connection from `address`; `None` for a unix socket.
    pub(super) fn of(proof: &Proof, address: Option<IpAddr>) -> Self {
        let leaf = proof.certificates().and_then(<[_]>::first);
        if let Some(digest) = leaf.and_then(|leaf| digest(&SHA256, leaf).as_ref().try_into().ok()) {
            return Self::Certificate(digest);
        }
        match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V6(it)) if !it.is_loopback() => {
                let network = it.to_bits() & (u128::MAX << 64);
                Self::Address(Ipv6Addr::from_bits(network).into())
            }
            Some(address) => Self::Address(address),
            None => Self::Host,
        }
    }

    /// Returns the limit of nodes from this origin on a link.
    pub(super) const fn nodes_max(&self) -> usize {
        match self {
            Self::Certificate(_) => CERTIFICATE_NODES_MAX,
            Self::Address(address) if address.is_loopback() => LOOPBACK_NODES_MAX,
            Self::Address(_) => ADDRESS_NODES_MAX,
            Self::Host => usize::MAX,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(_) => f.write_str("this certificate"),
            Self::Address(address) => write!(f, "the address {address}"),
            Self::Host => f.write_str("this host"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_host_are_one_origin() {
        let of = |address: &str| Origin::of(&Proof::Nothing, Some(address.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.7"), of("192.0.2.7"));
        assert_eq!(of("192.0.2.7").nodes_max(), ADDRESS_NODES_MAX);
        assert_eq!([of("127.0.0.1"), of("::1")].map(|it| it.nodes_max()), [LOOPBACK_NODES_MAX; 2]);
        assert_eq!(Origin::of(&Proof::User(7), None), Origin::Host);
    }
}
