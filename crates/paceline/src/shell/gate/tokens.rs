//! The tokens that other nodes show, and what is known of these nodes.

use bytes::Bytes;
use paceline_proto::NodeId;
use paceline_proto::control::TOKENS_MAX;
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

/// The longest time for which the token of an unknown node is kept. Its record may arrive after its token.
const UNKNOWN_MAX: Duration = Duration::from_secs(30);

/// The knowledge of a node's name, which a token must be issued to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Bearing {
    /// Neither a neighbour nor known by its record.
    Unknown,
    /// A neighbour without a certificate, which may claim any name.
    Unproven,
    /// Its name: from its certificate, or for a node behind a neighbour from its record.
    Named(String),
}

impl Bearing {
    /// Returns the name, if it is proven.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Unknown | Self::Unproven => None,
        }
    }
}

/// The last token of a node.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) token: Bytes,
    /// The time at which it was shown.
    pub(super) at: Instant,
    /// The knowledge of the node when the token was verified.
    pub(super) bearing: Bearing,
    /// The end of its rights, if it is accepted.
    pub(super) ends: Option<SystemTime>,
}

/// What is due for a token.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Due {
    /// The node has left, or stays unknown.
    Drop,
    /// The rights end.
    Expire,
    /// Something else is known of the node.
    Verify,
}

impl Shown {
    /// Returns what is due, given what is known of the node now.
    pub(super) fn due(&self, now: Instant, time: SystemTime, bearing: &Bearing) -> Option<Due> {
        if *bearing == Bearing::Unknown {
            let waits = self.bearing == Bearing::Unknown && now < self.at + UNKNOWN_MAX;
            return (!waits).then_some(Due::Drop);
        }
        if self.ends.is_some_and(|ends| ends <= time) {
            return Some(Due::Expire);
        }
        (self.bearing != *bearing).then_some(Due::Verify)
    }
}

/// The last token of each node, at most [`TOKENS_MAX`].
#[derive(Debug, Default)]
pub(super) struct Tokens {
    by_node: BTreeMap<NodeId, Shown>,
    /// Those with [`Bearing::Unknown`].
    unnamed: BTreeSet<NodeId>,
}

impl Tokens {
    pub(super) fn get(&self, node: NodeId) -> Option<&Shown> {
        self.by_node.get(&node)
    }

    /// Keeps the token of a node instead of an earlier one. Returns false if there are too many.
    pub(super) fn keep(&mut self, node: NodeId, shown: Shown) -> bool {
        let fits = self.by_node.len() < TOKENS_MAX || self.by_node.contains_key(&node);
        if fits {
            match shown.bearing {
                Bearing::Unknown => self.unnamed.insert(node),
                Bearing::Unproven | Bearing::Named(_) => self.unnamed.remove(&node),
            };
            self.by_node.insert(node, shown);
        }
        fits
    }

    /// Notes that the rights of a token have ended.
    pub(super) fn end(&mut self, node: NodeId) {
        if let Some(shown) = self.by_node.get_mut(&node) {
            shown.ends = None;
        }
    }

    pub(super) fn remove(&mut self, node: NodeId) -> Option<Shown> {
        self.unnamed.remove(&node);
        self.by_node.remove(&node)
    }

    /// Returns the nodes that have shown a token and are unknown.
    pub(super) fn unnamed(&self) -> Vec<NodeId> {
        self.unnamed.iter().copied().collect()
    }

    /// Returns the nodes that have shown a token.
    pub(super) fn nodes(&self) -> Vec<NodeId> {
        self.by_node.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_follow_their_nodes_and_are_bounded() {
        let (at, time) = (Instant::from_millis(1_000), SystemTime::now());
        let shown = |bearing, ends| Shown { token: Bytes::new(), at, bearing, ends };
        let named = || Bearing::Named("tablet".to_owned());
        let late = at + UNKNOWN_MAX;
        let early = shown(Bearing::Unknown, None);
        assert_eq!(early.due(at, time, &Bearing::Unknown), None);
        assert_eq!(early.due(late, time, &Bearing::Unknown), Some(Due::Drop));
        assert_eq!(early.due(at, time, &named()), Some(Due::Verify));
        let accepted = shown(named(), Some(time));
        assert_eq!(accepted.due(at, time - std::time::Duration::from_secs(1), &named()), None);
        assert_eq!(accepted.due(at, time, &named()), Some(Due::Expire));
        assert_eq!(accepted.due(at, time, &Bearing::Unknown), Some(Due::Drop), "it has left");
        assert_eq!(shown(named(), None).due(late, time, &named()), None, "refused once");
        assert_eq!(shown(named(), None).due(at, time, &Bearing::Unproven), Some(Due::Verify));
        let mut tokens = Tokens::default();
        let all = (0..TOKENS_MAX as u64).all(|node| tokens.keep(NodeId(node), early.clone()));
        assert!(all && !tokens.keep(NodeId(u64::MAX), early.clone()));
        assert!(tokens.keep(NodeId(7), accepted));
        assert!(tokens.remove(NodeId(7)).is_some() && tokens.keep(NodeId(u64::MAX), early));
    }
}
