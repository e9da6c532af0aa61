//! Multicast groups: outputs to several neighbours select the same samples.

use super::Engine;
use paceline_proto::plan::{OutputPlan, Target};

impl Engine {
    /// Lets the outputs to neighbours that may receive groups select the same samples, whenever they began.
    pub(super) fn align_groups(&self, plans: &mut [OutputPlan]) {
        for plan in plans {
            let Target::Hop(hop) = plan.target else { continue };
            let link = self.ways.link(hop).and_then(|link| self.links.get(link));
            plan.aligned |= link.is_some_and(|link| link.config.multicast.is_some());
        }
    }
}
