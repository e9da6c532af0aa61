//! Which hops samples take from one node to another, for whoever looks.

use super::Control;
use super::graph::Tree;
use super::spec::HopInfo;
use crate::ids::NodeId;

impl Control {
    /// The hops from one node to another in the order of the way, each with the node that it leaves, the one
    /// that it reaches, and its link; empty for a node and itself. `None` if no way is known.
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
