//! Multicast groups: admission charges a stream once for all neighbours that receive its group.

use super::Engine;
use paceline_proto::NodeId;
use paceline_proto::plan::{OutputPlan, Target};
use paceline_sched::Instant;
use std::collections::BTreeSet;

impl Engine {
    /// Follows the neighbours on a link that receive groups.
    pub(super) fn follow_groups(&mut self, now: Instant, link: usize, nodes: BTreeSet<NodeId>) {
        let Ok(segment) = u32::try_from(link) else { return };
        self.segments.retain(|_, at| *at != segment);
        self.segments.extend(nodes.into_iter().map(|node| (node, segment)));
        self.control.set_multicast(now, &self.segments);
    }

    /// Lets the outputs to neighbours that may receive groups select the same samples, whenever they began.
    pub(super) fn align_groups(&self, plans: &mut [OutputPlan]) {
        for plan in plans {
            let Target::Hop(hop) = plan.target else { continue };
            let link = self.ways.link(hop).and_then(|link| self.links.get(link));
            plan.aligned |= link.is_some_and(|link| link.config.multicast.is_some());
        }
    }
}
