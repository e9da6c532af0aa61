//! Traffic limits for the neighbours of a link, independent of their hop state.

use super::lock;
use crate::status::MutedStatus;
use paceline_proto::NodeId;
use paceline_proto::guard::{Flood, Guard, Hearing};
use paceline_sched::Instant;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The limit of nodes with their own budget on a link. All others share one.
const NODES_MAX: usize = 1_024;

/// The budgets of a link's neighbours.
#[derive(Debug, Default)]
pub(super) struct Guards {
    nodes: Mutex<BTreeMap<NodeId, Arc<Mutex<Guard>>>>,
    others: Arc<Mutex<Guard>>,
}

impl Guards {
    /// Returns the budget of a node. It survives reconnections.
    pub(super) fn of(&self, node: NodeId) -> Arc<Mutex<Guard>> {
        let mut nodes = lock(&self.nodes);
        if nodes.len() >= NODES_MAX && !nodes.contains_key(&node) {
            return self.others.clone();
        }
        nodes.entry(node).or_default().clone()
    }

    /// Charges a neighbour for a piece of `bytes`; returns true if it is accepted. Logs a new mute.
    pub(super) fn hears(
        guard: &Mutex<Guard>,
        (link, from): (usize, NodeId),
        flood: Flood,
        now: Instant,
        bytes: usize,
    ) -> bool {
        let hearing = lock(guard).take(flood, now, bytes);
        if hearing == Hearing::Muted {
            Self::warn((link, from), flood);
        }
        hearing == Hearing::Heard
    }

    /// Logs a new mute.
    pub(super) fn warn((link, from): (usize, NodeId), flood: Flood) {
        let (sent, until) = match flood {
            Flood::Control => {
                ("more control messages than any node needs to", "its messages are accepted")
            }
            Flood::Unasked => ("samples without a subscriber here", "its samples are accepted"),
            Flood::Malformed => ("invalid frames", "its frames are read"),
        };
        crate::warn_limited!(
            "neighbour {from} on link {link} is muted: it sends {sent}; {until} again a few seconds after this stops"
        );
    }

    /// Returns the neighbours that are or were muted.
    pub(super) fn muted(&self, now: Instant) -> Vec<MutedStatus> {
        let nodes = lock(&self.nodes);
        let all = nodes.iter().map(|(node, guard)| (*node, *lock(guard)));
        let rows = all.flat_map(|(node, guard)| {
            Flood::ALL.map(|flood| MutedStatus {
                peer: node,
                flood,
                muted: guard.is_muted(flood, now),
                times: guard.counters(flood).muted,
                dropped: guard.counters(flood).dropped,
            })
        });
        rows.filter(|row| row.times > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_persist_and_nodes_beyond_the_bound_share_one() {
        let guards = Guards::default();
        let now = Instant::from_millis(5_000);
        let take = |node| lock(&guards.of(NodeId(node))).take(Flood::Control, now, 0);
        while take(7) == Hearing::Heard {}
        assert_eq!(take(7), Hearing::Dropped, "it reappeared");
        assert_eq!(take(8), Hearing::Heard);
        let [row] = &guards.muted(now)[..] else { panic!("one is muted") };
        assert_eq!((row.peer, row.flood), (NodeId(7), Flood::Control));
        assert_eq!((row.muted, row.times, row.dropped), (true, 1, 2));
        let all: Vec<_> = (0..5_000).map(|node| guards.of(NodeId(node))).collect();
        assert!(Arc::ptr_eq(&all[3_000], &all[4_000]) && !Arc::ptr_eq(&all[3], &all[4]));
        assert_eq!(lock(&guards.nodes).len(), NODES_MAX);
    }
}
