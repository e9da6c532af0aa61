//! The slot of one peer: its objects by the time of their next exchange, and those that wait for room by rank.

use super::pair::Queued;
use crate::ids::ObjectIndex;
use paceline_sched::Instant;
use std::collections::BTreeSet;

/// The objects of one peer in three orders. Every operation takes O(log n).
#[derive(Clone, Debug, Default)]
pub(super) struct SlotQueue {
    reserved: BTreeSet<(Instant, ObjectIndex)>,
    upcoming: BTreeSet<(Instant, ObjectIndex)>,
    ready: BTreeSet<(u64, ObjectIndex)>,
}

impl SlotQueue {
    /// Moves an object from one place to another.
    pub(super) fn requeue(&mut self, object: ObjectIndex, from: Queued, to: Queued) {
        if from == to {
            return;
        }
        match from {
            Queued::Nowhere => {}
            Queued::Reserved(at) => drop(self.reserved.remove(&(at, object))),
            Queued::Upcoming(at) => drop(self.upcoming.remove(&(at, object))),
            Queued::Ready(rank) => drop(self.ready.remove(&(rank, object))),
        }
        match to {
            Queued::Nowhere => {}
            Queued::Reserved(at) => drop(self.reserved.insert((at, object))),
            Queued::Upcoming(at) => drop(self.upcoming.insert((at, object))),
            Queued::Ready(rank) => drop(self.ready.insert((rank, object))),
        }
    }

    /// Returns the first promised object whose time has come.
    pub(super) fn first_reserved(&self, now: Instant) -> Option<ObjectIndex> {
        self.reserved.first().filter(|(at, _)| *at <= now).map(|(_, object)| *object)
    }

    /// Returns the first other object whose time has come.
    pub(super) fn first_upcoming(&self, now: Instant) -> Option<ObjectIndex> {
        self.upcoming.first().filter(|(at, _)| *at <= now).map(|(_, object)| *object)
    }

    /// Returns the object of the greatest rank among those that wait for room.
    pub(super) fn first_ready(&self) -> Option<ObjectIndex> {
        self.ready.last().map(|(_, object)| *object)
    }

    /// Returns the number of objects that wait for room.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Returns the earliest time of an object that has one; that of a promised one is not before `opens`.
    pub(super) fn next(&self, opens: Instant) -> Option<Instant> {
        let reserved = self.reserved.first().map(|(at, _)| opens.max(*at));
        let upcoming = self.upcoming.first().map(|(at, _)| *at);
        reserved.into_iter().chain(upcoming).min()
    }
}
