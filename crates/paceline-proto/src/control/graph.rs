//! The graph of the nodes, and the tree of shortest paths that every node computes alike.

use super::registry::Registry;
use crate::ids::NodeId;
use std::collections::{BTreeMap, VecDeque};

/// The most hops of a path.
pub const HOPS_MAX: usize = 16;

/// The shortest paths from one node, found breadth first with neighbours in the order of their ids:
/// from the same registry every node gets the same tree.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: NodeId,
    /// Each node reached, and the one before it; the root's is the root.
    before: BTreeMap<NodeId, NodeId>,
}

impl Tree {
    pub(crate) fn new(registry: &Registry, root: NodeId) -> Self {
        let mut before = BTreeMap::from([(root, root)]);
        let mut queue = VecDeque::from([root]);
        while let Some(node) = queue.pop_front() {
            for &next in registry.record(node).iter().flat_map(|record| record.neighbours.keys()) {
                if !before.contains_key(&next) && registry.linked(node, next) {
                    before.insert(next, node);
                    queue.push_back(next);
                }
            }
        }
        Self { root, before }
    }

    pub(crate) fn reaches(&self, node: NodeId) -> bool {
        self.before.contains_key(&node)
    }

    /// The nodes from the root to `to`, both included; `None` if there is no path of at most
    /// [`HOPS_MAX`] hops.
    pub(crate) fn path(&self, to: NodeId) -> Option<Vec<NodeId>> {
        let mut path = vec![to];
        let mut node = to;
        while node != self.root {
            node = *self.before.get(&node)?;
            path.push(node);
            if path.len() > HOPS_MAX + 1 {
                return None;
            }
        }
        path.reverse();
        Some(path)
    }

    /// The root's neighbour on the way to `to`; `None` for the root itself too.
    pub(crate) fn next_hop(&self, to: NodeId) -> Option<NodeId> {
        self.path(to)?.get(1).copied()
    }
}
