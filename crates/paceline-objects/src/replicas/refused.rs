//! Owners of which something was refused, and when there may be room for it.

use super::Replicas;
use crate::ids::PeerId;

/// The objects and schemas of an owner that had no room.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refused {
    /// The most bytes in use when there was no room for more.
    used: Option<usize>,
    /// Whether it had too many objects.
    too_many: bool,
}

impl Replicas {
    /// The part of all bytes, or of the objects of an owner, that must be free again before it is asked to introduce its
    /// objects again.
    const FREED: usize = 32;

    /// Notes that there was no memory for something of an owner.
    pub(super) fn refuse(&mut self, owner: PeerId) {
        self.counts.over_share += 1;
        let used = self.budget.used();
        let refused = self.refused.entry(owner).or_default();
        refused.used = refused.used.max(Some(used));
    }

    /// Notes that an owner has too many objects.
    pub(super) fn refuse_object(&mut self, owner: PeerId) {
        self.counts.too_many += 1;
        self.refused.entry(owner).or_default().too_many = true;
    }

    /// Returns whether something of an owner was refused.
    pub(crate) fn has_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Takes the owners of which something was refused for which there may be room now.
    pub(crate) fn retries(&mut self) -> Vec<PeerId> {
        let (used, freed) = (self.budget.used(), self.budget.max() / Self::FREED);
        let objects = self.limit - self.limit.div_ceil(Self::FREED);
        let may = self.refused.iter().filter(|(owner, refused)| {
            let its = self.owners.get(owner).map_or(0, |table| table.objects.len());
            refused.used.is_some_and(|before| used + freed <= before)
                || (refused.too_many && its <= objects)
        });
        let may: Vec<_> = may.map(|(owner, _)| *owner).collect();
        for owner in &may {
            self.refused.remove(owner);
        }
        may
    }
}
