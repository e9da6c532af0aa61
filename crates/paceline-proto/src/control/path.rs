//! The hops of samples from one node to another, for inspection.

use super::Control;
use super::graph::Tree;
use super::spec::HopInfo;
use crate::ids::NodeId;

impl Control {
    /// Returns the hops between two nodes in path order: start node, end node and link of each.
    ///
    /// The path from a node to itself is empty. Returns `None` if no path is known.
    #[must_use]
    pub fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<(NodeId, NodeId, &HopInfo)>> {
        let path = Tree::new(&self.registry, from).path(to)?;
        let pairs = path.iter().zip(path.iter().skip(1));
        let hop = |(&one, &other): (&NodeId, &NodeId)| {
            Some((one, other, self.registry.record(one)?.neighbours.get(&other)?))
        };
        pairs.map(hop).collect()
    }
}
