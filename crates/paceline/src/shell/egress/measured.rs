//! The measured capacity of the link, for the engine.

use super::super::rx::NeighbourInput;
use super::Egress;
use paceline_proto::NodeId;
use paceline_proto::capacity::{AdmittedCapacity, CapacityEstimate};
use paceline_sched::{Capacity, Instant};

impl Egress {
    /// Passes the capacity that admission may use to the engine, if it has changed.
    pub(super) fn report_capacity(&mut self, now: Instant) {
        let found = self.link.estimate();
        if found.is_none() && self.contradicted.is_none() {
            return;
        }
        // It precedes later messages of the neighbours; one of them is enough, since the link is the same. Without one there is
        // nobody to measure with, and a change must not be lost.
        let up = self.link.hops().find(|(_, hop)| hop.is_up()).map(|(node, _)| node);
        let Some(node) = up else { return };
        match (found, self.contradicted) {
            (Some(found), _) => self.report_measured(now, node, &found),
            (None, Some(stated)) => self.report_confirmed(node, stated),
            (None, None) => {}
        }
    }

    fn report_measured(&mut self, now: Instant, node: NodeId, found: &CapacityEstimate) {
        let is_doubt = self.link.contradicted();
        if self.is_stated && is_doubt.or(self.contradicted).is_none() {
            return;
        }
        let admitted = self.admitted.get_or_insert_with(|| AdmittedCapacity::new(None));
        let Some(capacity) = admitted.follow(now, found) else { return };
        tracing::debug!("link {}: {capacity} for contracts of {found:?}", self.index);
        if let Some(stated) = is_doubt.filter(|_| self.contradicted.is_none()) {
            tracing::warn!(
                "link '{}': it has {capacity} for contracts, not {stated} as stated; contracts may use what is measured until \
                 both agree for 10 s. If it changes often, set capacity = \"auto ..{}bit\"",
                self.name,
                stated.bits_per_s()
            );
            self.contradicted = Some(stated);
        }
        let input = NeighbourInput::Capacity { link: self.index, capacity, measured: true };
        self.rx.give_engine(node, input);
    }

    /// Returns to the stated capacity.
    fn report_confirmed(&mut self, node: NodeId, stated: Capacity) {
        (self.contradicted, self.admitted) = (None, None);
        tracing::info!("link '{}': it has {stated} as stated again", self.name);
        let input =
            NeighbourInput::Capacity { link: self.index, capacity: stated, measured: false };
        self.rx.give_engine(node, input);
    }
}
