//! Who is who: nodes, publishers, subscriptions, sources.

use core::fmt;

/// One incarnation of a node: drawn at random when it starts, so a restart is a new node and old
/// state can never be mistaken for new.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A publisher: its node and its number there.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PublisherId {
    /// The node it publishes from.
    pub node: NodeId,
    /// Its number on that node, never used twice.
    pub index: u32,
}

impl fmt::Display for PublisherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.index)
    }
}

/// A subscription: its node and its number there.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SubscriptionId {
    /// The node that delivers to it.
    pub node: NodeId,
    /// Its number on that node, never used twice.
    pub index: u32,
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.index)
    }
}
