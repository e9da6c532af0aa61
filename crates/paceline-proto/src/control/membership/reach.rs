//! The nodes whose records a neighbour may deliver.
//!
//! Records are flooded over the links of the network. A record that a neighbour delivers has therefore
//! travelled from its node to that neighbour on a path without this node. A neighbour that has no such path
//! invents the record.

use super::registry::{Change, Record, Registry};
use crate::ids::NodeId;
use std::collections::BTreeMap;

/// The parts into which the network falls without this node.
///
/// Computed when needed after a change of the topology.
#[derive(Debug, Default)]
pub(in crate::control) struct Reach {
    /// The part of each node, named after one of its nodes; `None` if the topology has changed.
    parts: Option<BTreeMap<NodeId, NodeId>>,
}

impl Reach {
    /// Notes that the neighbours of another node have changed.
    pub(in crate::control) fn topology_changed(&mut self) {
        self.parts = None;
    }

    /// Returns true if `from` has a path to `node` without `me`, according to the registry.
    pub(in crate::control) fn connects(
        &mut self,
        registry: &Registry,
        me: NodeId,
        (from, node): (NodeId, NodeId),
    ) -> bool {
        if from == node {
            return true;
        }
        let parts = self.parts.get_or_insert_with(|| parts(registry, me));
        let part = |node| parts.get(&node).copied();
        part(from).is_some() && part(from) == part(node)
    }

    /// Returns true if `from` may deliver `record` of `node`, whose neighbours are not in the registry yet.
    pub(in crate::control) fn may_deliver(
        &mut self,
        registry: &Registry,
        me: NodeId,
        (from, node): (NodeId, NodeId),
        record: &Record,
    ) -> bool {
        self.connects(registry, me, (from, node))
            || record.neighbours.keys().any(|&next| self.links(registry, me, (from, next)))
    }

    /// Returns true if `from` may deliver `change` of `node`: it has a path to the node, or to the new
    /// neighbour of the node.
    pub(in crate::control) fn may_change(
        &mut self,
        registry: &Registry,
        me: NodeId,
        (from, node): (NodeId, NodeId),
        change: &Change,
    ) -> bool {
        let joins = match change {
            Change::HopUp(next, _) => self.links(registry, me, (from, *next)),
            Change::Publish(..)
            | Change::Subscribe(..)
            | Change::Refuse(_)
            | Change::Mark(..)
            | Change::Place(..)
            | Change::Medium(..)
            | Change::Unread(..)
            | Change::Remove(_) => false,
        };
        joins || self.connects(registry, me, (from, node))
    }

    fn links(&mut self, registry: &Registry, me: NodeId, (from, next): (NodeId, NodeId)) -> bool {
        next != me && self.connects(registry, me, (from, next))
    }
}

fn parts(registry: &Registry, me: NodeId) -> BTreeMap<NodeId, NodeId> {
    let mut parts = BTreeMap::new();
    for (first, _) in registry.all().filter(|(node, _)| *node != me) {
        let mut open = vec![first];
        while let Some(node) = open.pop() {
            if parts.contains_key(&node) {
                continue;
            }
            parts.insert(node, first);
            let Some(record) = registry.record(node) else { continue };
            let next = record.neighbours.keys().copied();
            // A neighbour whose own record is still on its way counts.
            let joined = |next| registry.record(next).is_none() || registry.linked(node, next);
            open.extend(next.filter(|&next| next != me && joined(next)));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::registry::EntryKey;
    use super::*;
    use crate::control::data::spec::HopInfo;
    use paceline_sched::Instant;

    const ME: NodeId = NodeId(0);

    fn record(version: u64, neighbours: &[u64]) -> Record {
        let hop = HopInfo::new(String::new(), None);
        let neighbours = neighbours.iter().map(|&to| (NodeId(to), hop.clone())).collect();
        Record { version, neighbours, ..Record::default() }
    }

    #[test]
    fn a_neighbour_delivers_only_records_from_its_part_of_the_network() {
        // 2 - 1 - 0 - 3 - 4, and 5 that nobody links to.
        let mut registry = Registry::new(ME, String::new());
        let lists: [(u64, &[u64]); 5] =
            [(1, &[0, 2]), (2, &[1]), (3, &[0, 4]), (4, &[3]), (5, &[4])];
        for (node, neighbours) in lists {
            let node = NodeId(node);
            registry.replace(Instant::ZERO, (node, node), (record(2, neighbours), 9)).unwrap();
        }
        let mut reach = Reach::default();
        let mut connects = |from, node| reach.connects(&registry, ME, (NodeId(from), NodeId(node)));
        assert!(connects(1, 1) && connects(1, 2) && connects(3, 4) && connects(4, 3));
        assert!(!connects(1, 3) && !connects(3, 2) && !connects(4, 5) && !connects(9, 1));
        // A record may name its neighbour before that one names it.
        let mut delivers = |from, neighbours: &[u64]| {
            let pair = (NodeId(from), NodeId(7));
            reach.may_deliver(&registry, ME, pair, &record(1, neighbours))
        };
        assert!(delivers(3, &[4]) && delivers(3, &[0, 3]));
        assert!(!delivers(3, &[2]) && !delivers(3, &[0]) && !delivers(3, &[]));
        let hop = HopInfo::new(String::new(), None);
        let mut changes = |from, node, change| {
            reach.may_change(&registry, ME, (NodeId(from), NodeId(node)), &change)
        };
        assert!(changes(3, 2, Change::HopUp(NodeId(4), hop)), "2 also joins the other part");
        let leaves = Change::Remove(EntryKey::Neighbour(NodeId(1)));
        assert!(!changes(3, 2, leaves.clone()));
        assert!(changes(1, 2, leaves));
    }
}
