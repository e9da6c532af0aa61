//! The capacity of a link that contracts may use, as its measurement changes.

use paceline_proto::capacity::{AdmittedCapacity, CapacityFall, LinkCapacity};
use paceline_proto::link::{Link, RepairShare};
use paceline_sched::{Capacity, Instant};

/// A change of the capacity that contracts may use on a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CapacityChange {
    /// The capacity as measured.
    Measured(Capacity),
    /// The first measured capacity that contradicts the stated one.
    Contradicted {
        /// The capacity as measured.
        measured: Capacity,
        /// The capacity as stated.
        stated: Capacity,
    },
    /// The capacity as stated, because the measurement agrees again.
    Stated(Capacity),
    /// The measured capacity falls. Contracts keep the present one for now.
    Falls(CapacityFall),
    /// The share that is reserved for repairs, as the loss requires it.
    Repairs(RepairShare),
}

/// Follows the measurement of one link, for admission.
#[derive(Clone, Debug, Default)]
pub struct CapacityFollower {
    admitted: Option<AdmittedCapacity>,
    /// Admission does not use the stated capacity, because the measurement contradicts it.
    contradicted: bool,
    /// The share for repairs that was returned last.
    repairs: RepairShare,
}

impl CapacityFollower {
    /// Returns the follower of a link whose capacity is `measured`; `None` if it is stated, or if there is none.
    #[must_use]
    pub fn new(measured: Option<LinkCapacity>) -> Self {
        let admitted = measured.map(|range| AdmittedCapacity::new(range.guaranteed()));
        Self { admitted, ..Self::default() }
    }

    /// Returns true if the capacity of the link may differ from the stated one.
    #[must_use]
    pub fn may_change(&self, link: &Link) -> bool {
        let agrees = link.stated().is_some_and(|(_, contradicted)| !contradicted);
        self.contradicted || !agrees && link.is_measured()
    }

    /// Returns the next change. Call it after the link was served, while a neighbour is up: without one nobody is there to
    /// measure with, and nothing changes.
    pub fn poll(&mut self, now: Instant, link: &Link) -> Option<CapacityChange> {
        if !self.may_change(link) {
            return None;
        }
        let stated = link.stated();
        if let Some((stated, false)) = stated {
            *self = Self { repairs: self.repairs, ..Self::default() };
            return Some(CapacityChange::Stated(stated));
        }
        let repairs = link.repair_share().unwrap_or_default();
        if repairs != self.repairs {
            self.repairs = repairs;
            return Some(CapacityChange::Repairs(repairs));
        }
        let found = link.estimate()?;
        let admitted = self.admitted.get_or_insert_with(|| AdmittedCapacity::new(None));
        let Some(measured) = admitted.follow(now, &found) else {
            return admitted.poll_fall().map(CapacityChange::Falls);
        };
        Some(match stated.filter(|_| !self.contradicted) {
            Some((stated, _)) => {
                self.contradicted = true;
                CapacityChange::Contradicted { measured, stated }
            }
            None => CapacityChange::Measured(measured),
        })
    }
}
