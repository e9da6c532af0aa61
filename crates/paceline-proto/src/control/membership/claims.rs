//! The refusals that count. A leaf refuses streams of itself and of the processes of its host only; what it says of others
//! has no effect.
//!
//! Records are kept and passed on as their nodes made them, so that equal versions are equal everywhere; the rights of nodes
//! may change meanwhile.

use super::graph::Tree;
use super::registry::Registry;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::{ANY, Refusal};
use crate::ids::NodeId;
use core::cell::RefCell;
use std::collections::BTreeMap;

/// The leaves and the processes of their hosts, each with its leaf.
pub(in crate::control) struct Claims<'r> {
    registry: &'r Registry,
    tree: &'r Tree,
    leaves: BTreeMap<NodeId, NodeId>,
    /// The answers of [`Self::is_next_to`], which leaves may request thousands of times.
    near: RefCell<BTreeMap<(NodeId, NodeId), bool>>,
}

impl<'r> Claims<'r> {
    pub(in crate::control) fn new(registry: &'r Registry, tree: &'r Tree) -> Self {
        let mut leaves = BTreeMap::new();
        for (node, _) in tree.records_outward(registry) {
            let Some(before) = tree.before(node) else { continue };
            let hop = registry.record(before).and_then(|record| record.neighbours.get(&node));
            let Some(hop) = hop else { continue };
            if hop.leaf {
                leaves.insert(node, node);
            } else if let Some(&leaf) = leaves.get(&before)
                && registry.is_own(before, node)
            {
                leaves.insert(node, leaf);
            }
        }
        Self { registry, tree, leaves, near: RefCell::default() }
    }

    /// Returns the refusals of the reached nodes that count.
    pub(in crate::control) fn refusals(
        &self,
    ) -> impl Iterator<Item = (NodeId, &'r PairKey, &'r Refusal)> {
        let records = self.tree.records(self.registry);
        let all = records.flat_map(|(node, record)| {
            record.refusals.iter().map(move |(key, refusal)| (node, key, refusal))
        });
        all.filter(|(node, key, _)| self.counts(*node, **key))
    }

    /// Returns true if `node` may refuse the pair, or a whole subscription or publisher: one end of it is its own or, of a
    /// whole one, its neighbour or a process of the host of its neighbour.
    fn counts(&self, node: NodeId, (subscription, publisher): PairKey) -> bool {
        let Some(leaf) = self.leaves.get(&node) else { return true };
        let own = |end: NodeId| end == node || self.leaves.get(&end) == Some(leaf);
        let whole = |end: NodeId| own(end) || self.is_next_to(node, end);
        match (subscription.index == ANY, publisher.index == ANY) {
            (true, _) => whole(publisher.node),
            (_, true) => whole(subscription.node),
            (false, false) => own(subscription.node) || own(publisher.node),
        }
    }

    /// Returns true if `end`, or a process of its host to which it is connected, is a neighbour of `node`.
    fn is_next_to(&self, node: NodeId, end: NodeId) -> bool {
        *self.near.borrow_mut().entry((node, end)).or_insert_with(|| {
            let registry = self.registry;
            let hops = registry.record(end).into_iter().flat_map(|record| &record.neighbours);
            let mut own = hops.filter(|(_, hop)| hop.own);
            registry.linked(node, end)
                || own.any(|(&it, _)| registry.is_own(it, end) && registry.linked(node, it))
        })
    }
}
