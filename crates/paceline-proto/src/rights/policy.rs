//! The rules of a node: which peers have which rights.

use super::{Rights, RuleRights};
use std::sync::Arc;

/// The identity of a neighbour, as its link knows it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PeerName {
    /// A process of this host and user. Nodes behind it count as the same.
    Host,
    /// A process of this host, of another user with this name.
    User(String),
    /// A peer with a certificate, and the name in it.
    Certified(String),
    /// A peer beyond this host without a certificate.
    Unknown,
}

impl PeerName {
    /// Returns the name by which a rule grants rights to it.
    pub(crate) fn rule_name(&self) -> String {
        match self {
            Self::Host => HOST.to_owned(),
            Self::User(name) => format!("{USER}{name}"),
            Self::Certified(name) => name.clone(),
            Self::Unknown => UNKNOWN.to_owned(),
        }
    }
}

const HOST: &str = "@host";
const UNKNOWN: &str = "@unknown";
const USER: &str = "@user:";

/// The names in policies of [`PeerName::Host`] and [`PeerName::Unknown`], and the beginning of those of
/// [`PeerName::User`].
pub const RESERVED_NAMES: [&str; 3] = [HOST, UNKNOWN, USER];

/// A rule of an [`AccessPolicy`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AccessRule {
    /// The names of the nodes, in which `*` stands for any characters, or one of [`RESERVED_NAMES`]. `*`
    /// alone does not include these, but `@user:*` all other users of the host.
    pub peers: Vec<String>,
    /// The granted rights.
    pub rights: Arc<RuleRights>,
}

impl AccessRule {
    fn names(&self, name: &str) -> bool {
        self.peers.iter().any(|peer| match (peer.starts_with('@'), name.starts_with('@')) {
            (false, false) => glob(peer.as_bytes(), name.as_bytes()),
            (true, true) if peer.starts_with(USER) => glob(peer.as_bytes(), name.as_bytes()),
            (true, _) | (_, true) => peer == name,
        })
    }
}

/// Matches `*` as any number of characters.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut retry = None;
    loop {
        match (pattern.get(p), name.get(n)) {
            (Some(b'*'), _) => {
                retry = Some((p + 1, n));
                p += 1;
            }
            (Some(want), Some(have)) if want == have => (p, n) = (p + 1, n + 1),
            (None, None) => return true,
            _ => match retry {
                Some((after, from)) if from < name.len() => {
                    retry = Some((after, from + 1));
                    (p, n) = (after, from + 1);
                }
                Some(_) | None => return false,
            },
        }
    }
}

/// The rules of a node.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AccessPolicy {
    /// The rules. A node has the rights of all rules that name it.
    pub rules: Vec<AccessRule>,
}

impl AccessPolicy {
    /// Returns the rights of a neighbour. The processes of this host have all rights unless a rule names
    /// `@host`.
    #[must_use]
    pub fn rights_of(&self, peer: &PeerName) -> Rights {
        match peer {
            PeerName::Host if self.rules.iter().any(|rule| rule.names(HOST)) => self.named(HOST),
            PeerName::Host => Rights::of([Arc::new(RuleRights::all())]),
            PeerName::Unknown | PeerName::User(_) => self.named(&peer.rule_name()),
            PeerName::Certified(name) => self.rights_of_name(name),
        }
    }

    /// Returns the rights of a node with this name. A name that begins with `@` has none.
    #[must_use]
    pub fn rights_of_name(&self, name: &str) -> Rights {
        if name.starts_with('@') { Rights::default() } else { self.named(name) }
    }

    fn named(&self, name: &str) -> Rights {
        let rules = self.rules.iter().filter(|rule| rule.names(name));
        Rights::of(rules.map(|rule| Arc::clone(&rule.rights)))
    }
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn globs_match_like_a_naive_reference() {
        fn naive(pattern: &[u8], name: &[u8]) -> bool {
            match pattern.split_first() {
                None => name.is_empty(),
                Some((b'*', rest)) => (0..=name.len()).any(|n| naive(rest, &name[n..])),
                Some((c, rest)) => {
                    name.split_first().is_some_and(|(d, of)| c == d && naive(rest, of))
                }
            }
        }
        let letters = [b'a', b'b', b'*'];
        let words = |alphabet: &[u8], length: u32| -> Vec<Vec<u8>> {
            let base = alphabet.len();
            (0..base.pow(length))
                .map(|n| (0..length).map(|i| alphabet[n / base.pow(i) % base]).collect())
                .collect()
        };
        for pattern in (0..=4).flat_map(|n| words(&letters, n)) {
            for name in (0..=4).flat_map(|n| words(&letters[..2], n)) {
                assert_eq!(glob(&pattern, &name), naive(&pattern, &name), "{pattern:?} {name:?}");
            }
        }
    }
}
