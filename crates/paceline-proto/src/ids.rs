//! Identifiers of nodes, publishers, subscriptions and sources.

use core::fmt;

/// Identifies one incarnation of a node.
///
/// A node draws the number at random when it starts. A restarted node is therefore a new node, and its old
/// state cannot be mistaken for new state.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Identifies a publisher by its node and its index there.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PublisherId {
    /// The node that the publisher runs on.
    pub node: NodeId,
    /// The index on that node, never reused.
    pub index: u32,
}

impl fmt::Display for PublisherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.index)
    }
}

/// Identifies a subscription by its node and its index there.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SubscriptionId {
    /// The node that delivers samples to the subscription.
    pub node: NodeId,
    /// The index on that node, never reused.
    pub index: u32,
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.index)
    }
}
