//! The leaves among the neighbours, by identity: nodes of one certificate or account count as one.

use super::Access;
use crate::control::data::ids::PairKey;
use crate::control::membership::allowance::Allowance;
use crate::control::membership::graph::Tree;
use crate::control::membership::registry::Registry;
use crate::ids::NodeId;
use crate::rights::PeerName;
use std::collections::{BTreeMap, BTreeSet};

impl Access {
    /// Returns the allowance of pairs for a round, in which those with a contract stay.
    pub(in crate::control) fn allowance(
        &self,
        registry: &Registry,
        tree: &Tree,
        reserved: BTreeSet<PairKey>,
    ) -> Allowance {
        let mut allowance = Allowance::new(reserved);
        let mut identities = BTreeMap::new();
        let mine = registry.record(registry.me()).into_iter().flat_map(|mine| &mine.neighbours);
        for (&leaf, _) in mine.filter(|(node, hop)| hop.leaf && tree.reaches(**node)) {
            let name = self.rule_name(registry, leaf);
            let identity = *identities.entry(name).or_insert_with(|| {
                let rights = self.rights(registry, leaf).unwrap_or_default();
                allowance.add_identity(rights, self.over.contains(&leaf))
            });
            allowance.add_node(leaf, leaf, identity);
            for node in self.processes(registry, leaf) {
                allowance.add_node(leaf, node, identity);
            }
        }
        allowance
    }

    /// Returns the processes of the host of a neighbour that are no neighbours themselves.
    pub(super) fn processes<'r>(
        &'r self,
        registry: &'r Registry,
        hop: NodeId,
    ) -> impl Iterator<Item = NodeId> + 'r {
        let others = registry.record(hop).into_iter().flat_map(|record| record.neighbours.keys());
        let own =
            move |node: &NodeId| registry.is_own(hop, *node) && !self.peers.contains_key(node);
        others.copied().filter(own)
    }

    /// Notes the neighbours whose identities have too many pairs in this round.
    pub(in crate::control) fn note_over(&mut self, allowance: &Allowance) {
        self.over = allowance.over();
    }

    /// Returns the identity that a neighbour has proven: its certificate, or another account of this host.
    pub(in crate::control) fn proven(&self, node: NodeId) -> Option<PeerName> {
        let counts = |peer: &&PeerName| matches!(peer, PeerName::Certified(_) | PeerName::User(_));
        self.peers.get(&node).filter(counts).cloned()
    }

    /// Returns the neighbours with the identity of `from`, which count as one.
    pub(in crate::control) fn same_identity(&self, from: NodeId) -> BTreeSet<NodeId> {
        let identity = self.peers.get(&from);
        let same = |(_, peer): &(&NodeId, &PeerName)| Some(*peer) == identity;
        self.peers.iter().filter(same).map(|(node, _)| *node).chain([from]).collect()
    }
}
