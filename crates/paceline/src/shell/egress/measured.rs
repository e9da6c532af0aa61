//! The measured capacity of the link, for the engine.

use super::super::rx::NeighbourInput;
use super::Egress;
use paceline_proto::capacity::AdmittedCapacity;
use paceline_sched::{Capacity, Instant};

impl Egress {
    /// Passes the capacity that admission may use to the engine, if it has changed.
    pub(super) fn report_capacity(&mut self, now: Instant) {
        let stated = self.link.stated();
        if stated.is_some_and(|(_, contradicted)| !contradicted) && !self.contradicted {
            return;
        }
        // It precedes later messages of the neighbours; one of them is enough, since the link is the same. Without one there is
        // nobody to measure with, and a change must not be lost.
        let up = self.link.hops().find(|(_, hop)| hop.is_up()).map(|(node, _)| node);
        let Some(node) = up else { return };
        let next = match stated {
            Some((stated, false)) => Some(self.confirmed(stated)),
            Some((stated, true)) => self.measured(now, Some(stated)),
            None => self.measured(now, None),
        };
        if let Some((capacity, measured)) = next {
            let input = NeighbourInput::Capacity { link: self.index, capacity, measured };
            self.rx.give_engine(node, input);
        }
    }

    /// Returns the measured capacity for contracts, if it has changed. `stated` is the one that the measurement contradicts.
    fn measured(&mut self, now: Instant, stated: Option<Capacity>) -> Option<(Capacity, bool)> {
        let found = self.link.estimate()?;
        let admitted = self.admitted.get_or_insert_with(|| AdmittedCapacity::new(None));
        let capacity = admitted.follow(now, &found)?;
        tracing::debug!("link {}: {capacity} for contracts of {found:?}", self.index);
        if let Some(stated) = stated.filter(|_| !self.contradicted) {
            tracing::warn!(
                "link '{}': contracts may use {capacity} as measured, not {stated} as stated, until both agree for 10 s. If it \
                 changes often, set capacity = \"auto ..{}bit\"",
                self.name,
                stated.bits_per_s()
            );
            self.contradicted = true;
        }
        Some((capacity, true))
    }

    /// Returns to the stated capacity.
    fn confirmed(&mut self, stated: Capacity) -> (Capacity, bool) {
        (self.contradicted, self.admitted) = (false, None);
        tracing::info!("link '{}': contracts may use {stated} as stated", self.name);
        (stated, false)
    }
}
