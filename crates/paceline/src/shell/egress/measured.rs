//! The measured capacity of the link, for the engine.

use super::super::rx::NeighbourInput;
use super::Egress;
use paceline_sched::Instant;

impl Egress {
    /// Passes the capacity that admission may use to the engine, if it has changed.
    pub(super) fn report_capacity(&mut self, now: Instant) {
        let Some(admitted) = &mut self.admitted else { return };
        // It precedes later messages of the neighbours; one of them is enough, since the link is the same. Without one there is
        // nobody to measure with, and a change must not be lost.
        let up = self.link.hops().find(|(_, hop)| hop.is_up()).map(|(node, _)| node);
        let (Some(node), Some(found)) = (up, self.link.estimate()) else { return };
        let Some(capacity) = admitted.follow(now, &found) else { return };
        tracing::debug!("link {}: {capacity} for contracts of {found:?}", self.index);
        self.rx.give_engine(node, NeighbourInput::Capacity { link: self.index, capacity });
    }
}
