//! Pairs of paths for contracts with a spare.

use super::ids::PairKey;
use crate::ids::{NodeId, SubscriptionId};

/// The paths of a contract with a spare.
#[derive(Clone, Debug)]
pub(in crate::control) struct PathPair {
    pub(in crate::control) first: Vec<NodeId>,
    /// `None` if no path has no link in common with the first one.
    pub(in crate::control) second: Option<Vec<NodeId>>,
}

/// Finds second paths from this node.
pub(in crate::control) trait SecondPaths {
    /// Returns the two paths of a pair whose shortest path is `shortest`, without a common link. If samples of another
    /// subscription prevent them, returns that subscription too. With `encrypted`, all hops are encrypted.
    fn both(
        &self,
        of: PairKey,
        encrypted: bool,
        shortest: Vec<NodeId>,
    ) -> (PathPair, Option<SubscriptionId>);

    /// Returns `first` and the shortest path next to it.
    fn next_to(&self, first: Vec<NodeId>, encrypted: bool) -> PathPair;

    /// Returns the first link of `path` that every path between its ends crosses, if there is one: its node and its name
    /// there.
    fn shared_link(&self, path: &[NodeId], encrypted: bool) -> Option<(NodeId, String)>;
}
