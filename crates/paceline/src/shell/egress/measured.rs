//! The measured capacity of the link, for the engine.

use super::super::rx::NeighbourInput;
use super::Egress;
use paceline_node::capacity::CapacityChange;
use paceline_sched::Instant;

impl Egress {
    /// Passes a change of the capacity that admission may use to the engine.
    pub(super) fn report_capacity(&mut self, now: Instant) {
        if !self.capacity.may_change(&self.link) {
            return;
        }
        // It precedes later messages of the neighbours; one of them is enough, since the link is the same. Without one there is
        // nobody to measure with, and a change must not be lost.
        let up = self.link.hops().find(|(_, hop)| hop.is_up()).map(|(node, _)| node);
        let Some(node) = up else { return };
        let Some(change) = self.capacity.poll(now, &self.link) else { return };
        self.log(&change);
        self.rx.give_engine(node, NeighbourInput::Capacity { link: self.index, change });
    }

    fn log(&self, change: &CapacityChange) {
        let (index, name) = (self.index, &self.name);
        match change {
            CapacityChange::Measured(measured) => {
                let found = self.link.estimate();
                tracing::debug!("link {index}: {measured} for contracts of {found:?}");
            }
            CapacityChange::Contradicted { measured, stated } => tracing::warn!(
                "link '{name}': contracts may use {measured} as measured, not {stated} as stated, until both agree for 10 s. If it \
                 changes often, set capacity = \"auto ..{}bit\"",
                stated.bits_per_s()
            ),
            CapacityChange::Stated(stated) => {
                tracing::info!("link '{name}': contracts may use {stated} as stated");
            }
            CapacityChange::Repairs(share) => {
                let (share, name) = (share.per_mille(), &self.name);
                tracing::info!(
                    "link '{name}': {share} ‰ of it are reserved for retransmission, as its loss requires"
                );
            }
            CapacityChange::Falls(fall) => tracing::debug!(
                "link {index}: {} bit/s for contracts, and {} bit/s less each second",
                fall.bits_per_s,
                fall.loses_per_s
            ),
        }
    }
}
