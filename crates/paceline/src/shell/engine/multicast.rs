//! Multicast groups: outputs to several neighbours select the same samples, and planners know which neighbours share them.

use super::Engine;
use paceline_proto::NodeId;
use paceline_proto::control::WayChange;
use paceline_proto::plan::{OutputPlan, Target};
use paceline_sched::Instant;
use std::collections::BTreeSet;
use std::sync::PoisonError;

impl Engine {
    /// Lets the outputs to neighbours that may receive groups select the same samples, whenever they began.
    pub(super) fn align_groups(&self, mut plans: Vec<OutputPlan>) -> Vec<OutputPlan> {
        for plan in &mut plans {
            let Target::Hop(hop) = plan.target else { continue };
            let link = self.ways.link(hop).and_then(|link| self.links.get(link));
            plan.aligned |= link.is_some_and(|link| link.config.multicast.is_some());
        }
        plans
    }

    /// Announces the neighbours that receive multicast groups, if they have changed.
    pub(super) fn follow_able(&mut self, now: Instant) {
        let mut able: BTreeSet<(usize, NodeId)> = BTreeSet::new();
        for (at, link) in self.links.iter().enumerate() {
            if link.config.multicast.is_some() {
                let snapshot = link.handle.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
                able.extend(snapshot.able.iter().map(|node| (at, *node)));
            }
        }
        let before = std::mem::replace(&mut self.able, able);
        let changed: Vec<(usize, NodeId)> =
            before.symmetric_difference(&self.able).copied().collect();
        for (at, node) in changed {
            if self.ways.link(node) == Some(at) {
                self.change_way(now, node, WayChange::Up(at));
            }
        }
    }
}
