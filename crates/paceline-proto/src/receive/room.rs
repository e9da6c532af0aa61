//! The memory that the receiver of a neighbour uses, and what it drops when others need it.

use super::{Received, Receiver, STREAM_COST};
use crate::memory::{Charge, MemoryKind, MemoryShare};
use crate::reason::DropReason;
use crate::wire::SAMPLE_BYTES_MAX;
use paceline_sched::Instant;

/// The maximum number of bytes of unfinished samples of a neighbour, whatever the memory of the node.
const SAMPLES_BYTES_MAX: usize = 2 * SAMPLE_BYTES_MAX;

/// The time of a sample and its stream, if there is one.
pub(super) type Begun = Option<(Instant, u32)>;

/// The bytes that a receiver counts as used. By default no share counts them.
#[derive(Debug)]
pub(super) struct Room {
    samples: Charge,
    pinned: Charge,
    most: usize,
}

impl Default for Room {
    fn default() -> Self {
        let [samples, pinned] = [MemoryKind::Samples, MemoryKind::Pinned].map(Charge::uncounted);
        Self { samples, pinned, most: SAMPLES_BYTES_MAX }
    }
}

impl Room {
    /// Returns the most bytes of samples that the neighbour may have unfinished.
    pub(super) const fn for_samples(&self) -> usize {
        self.most
    }

    /// Returns true if `bytes` more may be pinned.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        self.pinned.fits(bytes)
    }
}

/// The sample that a receiver drops first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Victim {
    /// The one that has waited longest: another neighbour needs the memory.
    Oldest,
    /// The one that has begun last: the memory has no room for it.
    Newest,
}

impl Receiver {
    /// Returns a receiver whose memory counts against `share`.
    #[must_use]
    pub fn within(share: &MemoryShare) -> Self {
        let [samples, pinned] =
            [MemoryKind::Samples, MemoryKind::Pinned].map(|kind| share.charge(kind, 0));
        let most = SAMPLES_BYTES_MAX.min(share.limit());
        Self { room: Room { samples, pinned, most }, ..Self::default() }
    }

    /// Counts the memory that is used now.
    pub(super) fn count(&mut self) {
        let control = self.control.as_ref().map_or(0, |(total, _)| *total);
        let pinned = control + self.streams.len() * STREAM_COST;
        let repaired = self.mender.as_ref().map_or((0, 0), |mender| mender.cost());
        self.room.samples.set(self.unfinished_bytes + repaired.0);
        self.room.pinned.set(pinned + repaired.1);
    }

    /// Drops unfinished samples until at least `bytes` are free or none is left. Returns the bytes that it has freed.
    /// The drops are reported as any others.
    pub fn give_back(
        &mut self,
        bytes: usize,
        victim: Victim,
        mut found: impl FnMut(Received),
    ) -> usize {
        let used = |it: &Self| {
            it.unfinished_bytes + it.mender.as_ref().map_or(0, |mender| mender.cost().0)
        };
        let before = used(self);
        while before - used(self) < bytes && self.drop_next(victim, &mut found) {}
        self.count();
        before - used(self)
    }

    /// Drops a sample; returns false if none is left.
    fn drop_next(&mut self, victim: Victim, found: &mut impl FnMut(Received)) -> bool {
        // Samples that are whole, or without content, wait behind missing ones.
        self.drop_one(victim, found)
            || victim == Victim::Newest && self.drop_one(Victim::Oldest, found)
    }

    fn drop_one(&mut self, victim: Victim, found: &mut impl FnMut(Received)) -> bool {
        let (oldest, newest) = self.unfinished();
        let (repaired_oldest, repaired_newest) =
            self.mender.as_ref().map_or((None, None), |mender| mender.ages());
        let (reason, ordered, repaired) = match victim {
            Victim::Oldest => (DropReason::QueueFull, oldest, repaired_oldest),
            Victim::Newest => (DropReason::TooLarge, newest, repaired_newest),
        };
        let first = match (ordered, repaired) {
            (Some(ordered), Some(repaired)) if victim == Victim::Oldest => ordered.0 <= repaired.0,
            (Some(ordered), Some(repaired)) => ordered.0 >= repaired.0,
            (ordered, _) => ordered.is_some(),
        };
        match (ordered.filter(|_| first), repaired, &mut self.mender) {
            (Some((_, stream)), ..) => self.give_up(stream, reason, found),
            (None, Some((_, place)), Some(mender)) if victim == Victim::Oldest => {
                mender.drop_oldest(place, found);
            }
            (None, Some((_, place)), Some(mender)) => mender.refuse_newest(place, found),
            _ => return false,
        }
        true
    }

    /// Returns the unfinished samples that began first and last on a carrier that keeps order, as their times and streams.
    fn unfinished(&self) -> (Begun, Begun) {
        let begun = || {
            let all = self.streams.iter().flatten();
            all.filter_map(|it| it.unfinished.as_ref().map(|unfinished| (unfinished.since, it.id)))
        };
        (begun().min(), begun().max())
    }
}
