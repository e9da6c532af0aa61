//! The current group of pictures of a video, for receivers that join in its middle.

use crate::memory::{Memory, MemoryKind, MemoryShare};
use crate::sample::{Kind, RawSample};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of units of a group: 10 s at 60 Hz.
const UNITS_MAX: usize = 600;
/// The maximum size of the payloads of a group, in bytes.
const BYTES_MAX: usize = 16 << 20;
/// The maximum size of the payloads of all groups that share a budget of its own, in bytes.
const ALL_BYTES_MAX: usize = 128 << 20;

/// The payload bytes of all groups of a node. Groups beyond the limit are not stored.
#[derive(Clone, Debug)]
pub struct GroupBudget {
    used: Arc<AtomicUsize>,
    most: usize,
    share: Option<MemoryShare>,
}

impl GroupBudget {
    /// Returns the budget of a node: a quarter of its memory for neighbours, which counts the groups as kept.
    #[must_use]
    pub fn within(memory: &Memory) -> Self {
        let (most, share) = (memory.kept_max(), Some(memory.own_share()));
        Self { used: Arc::default(), most, share }
    }

    /// Reserves `bytes`; returns false if there is no room.
    fn take(&self, bytes: usize) -> bool {
        let room = |used: usize| used.checked_add(bytes).filter(|&after| after <= self.most);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok();
        if taken {
            self.share.iter().for_each(|share| share.replace(MemoryKind::Kept, 0, bytes));
        }
        taken
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.share.iter().for_each(|share| share.replace(MemoryKind::Kept, bytes, 0));
    }
}

impl Default for GroupBudget {
    /// Returns a budget of 128 MiB that counts nowhere else.
    fn default() -> Self {
        Self { used: Arc::default(), most: ALL_BYTES_MAX, share: None }
    }
}

/// The units of a video that a decoder needs to join now: the last key picture and the reference pictures
/// since then.
///
/// It is empty before the first key picture, after a reference was lost, and if it would exceed 600 units,
/// 16 MiB or the [budget](GroupBudget) of the node. Then a receiver joins at the next key picture.
#[derive(Debug, Default)]
pub struct Group {
    budget: GroupBudget,
    units: Vec<RawSample>,
    bytes: usize,
    /// The sequence number of the last added sample.
    newest: Option<u64>,
    /// The number of key pictures so far, which identifies the group.
    number: u64,
}

impl Group {
    /// Returns an empty group whose units count against `budget`.
    #[must_use]
    pub fn new(budget: GroupBudget) -> Self {
        let mut group = Self::default();
        group.budget = budget;
        group
    }

    /// Counts the units against this budget.
    pub fn set_budget(&mut self, budget: &GroupBudget) {
        if Arc::ptr_eq(&self.budget.used, &budget.used) {
            return;
        }
        self.budget.give_back(self.bytes);
        self.budget = budget.clone();
        if !self.budget.take(self.bytes) {
            self.bytes = 0;
            self.units.clear();
        }
    }

    /// Adds the next sample of the video, in decoding order. Samples other than key and reference pictures
    /// change nothing, and neither do samples that were added before.
    pub fn add(&mut self, sample: &RawSample) {
        if self.newest.is_some_and(|newest| sample.seq <= newest) {
            return;
        }
        self.newest = Some(sample.seq);
        match sample.kind {
            Kind::VideoI => {
                self.clear();
                self.number += 1;
                self.store(sample);
            }
            Kind::VideoP if !self.units.is_empty() => self.store(sample),
            Kind::VideoP
            | Kind::VideoB
            | Kind::VideoLeading
            | Kind::Data
            | Kind::State
            | Kind::Picture
            | Kind::Audio => {}
        }
    }

    fn store(&mut self, sample: &RawSample) {
        let bytes = sample.payload.len();
        let fits = self.units.len() < UNITS_MAX && self.bytes.saturating_add(bytes) <= BYTES_MAX;
        if fits && self.budget.take(bytes) {
            self.bytes += bytes;
            self.units.push(sample.clone());
        } else {
            self.clear();
        }
    }

    /// Records that a sample before the next one was lost: of `kind` if known.
    pub fn handle_lost(&mut self, kind: Option<Kind>) {
        if kind.is_none_or(|kind| matches!(kind, Kind::VideoI | Kind::VideoP)) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.budget.give_back(std::mem::take(&mut self.bytes));
        self.units.clear();
    }

    /// Returns the units before the sample `seq`.
    fn before(&self, seq: u64) -> &[RawSample] {
        let len = self.units.partition_point(|unit| unit.seq < seq);
        self.units.get(..len).unwrap_or_default()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The progress of a receiver that may join in the middle of a group.
///
/// It receives the group's units in portions, one portion before each sample of the source. Reference pictures
/// that the source publishes meanwhile wait in the group for their turn.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Joining {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    /// It has received nothing.
    #[default]
    New,
    /// It has received a part of a group.
    Behind(Behind),
    /// It receives every sample.
    Live,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Behind {
    /// The number of the group.
    group: u64,
    /// The number of units that it has received, and the number that were published before it joined.
    given: usize,
    older: usize,
    /// The number of reference pictures that wait or waited in the group.
    deferred: usize,
}

impl Behind {
    /// Returns the number of samples that the receiver has missed if it receives no more of the group.
    const fn missed(&self) -> u64 {
        (self.deferred - self.given.saturating_sub(self.older)) as u64
    }
}

/// The treatment of a sample of the source by a receiver that may be joining.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// All units before the sample were delivered, so it can be decoded.
    Follow,
    /// The sample waits in the group.
    Defer,
    /// The sample cannot be decoded yet, and does not wait.
    Skip,
    /// The receiver starts with the next key picture. This many deferred samples are lost to it.
    Wait(u64),
}

impl Joining {
    /// Returns the progress of a receiver that starts with a key picture of the source.
    #[must_use]
    pub const fn live() -> Self {
        Self { state: State::Live }
    }

    /// Returns true if the receiver receives every sample, so that [`Self::step`] has nothing to do.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        matches!(self.state, State::Live)
    }

    /// Returns the units to deliver before the next sample of the source, at most `room`, and the treatment of
    /// that sample. Without a sample, the treatment is that of a picture that no other refers to.
    ///
    /// Call this for each sample of the source, before [`Group::add`].
    pub fn step<'g>(
        &mut self,
        group: &'g Group,
        next: Option<&RawSample>,
        room: usize,
    ) -> (&'g [RawSample], Next) {
        let before = group.before(next.map_or(u64::MAX, |sample| sample.seq));
        let kind = next.map_or(Kind::VideoB, |sample| sample.kind);
        if self.is_live() || kind == Kind::VideoI || before.is_empty() {
            let missed = self.give_up();
            if kind != Kind::VideoI && missed == 0 && before.is_empty() {
                self.state = State::New;
            }
            return (&[], Next::Wait(missed));
        }
        let mut behind = match self.state {
            State::Behind(behind) if behind.group == group.number => behind,
            State::New | State::Live | State::Behind(_) => {
                Behind { group: group.number, given: 0, older: before.len(), deferred: 0 }
            }
        };
        let units = before.get(behind.given..).unwrap_or_default();
        let units = units.get(..room.min(units.len())).unwrap_or_default();
        behind.given += units.len();
        if behind.given >= before.len() {
            self.state = State::Live;
            return (units, Next::Follow);
        }
        behind.deferred += usize::from(kind == Kind::VideoP);
        self.state = State::Behind(behind);
        (units, if kind == Kind::VideoP { Next::Defer } else { Next::Skip })
    }

    /// Ends the joining, for instance after a unit was not delivered: the receiver starts with the next key
    /// picture. Returns the number of deferred samples that are lost to it.
    pub fn give_up(&mut self) -> u64 {
        match std::mem::replace(&mut self.state, State::Live) {
            State::Behind(behind) => behind.missed(),
            State::New | State::Live => 0,
        }
    }
}

#[cfg(test)]
#[path = "group/tests.rs"]
mod tests;
