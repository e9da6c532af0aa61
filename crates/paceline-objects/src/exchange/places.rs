//! The places of a contract: which objects of an observer have the promised service.

use crate::contract::{ObjectContract, PromisedService, parts};
use crate::ids::ObjectIndex;
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// How many times the weight of a promised object another must have to replace it, as a ratio.
const REPLACE: f64 = 1.25;

/// The promised places of one observer.
///
/// The objects with the greatest weights have them. The gap of the contract also holds for a place: an object that
/// takes the place of another waits until its gap has passed, and messages are as far apart as the traffic of the
/// service states, so the promised traffic never exceeds its reservation.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    service: Option<PromisedService>,
    /// The last exchange of each place, also of those without a service: a new one begins with their gaps.
    places: Vec<Option<Instant>>,
    /// The earliest time of the next message.
    opens: Instant,
    free: BTreeSet<usize>,
    candidates: BTreeMap<ObjectIndex, Candidate>,
    inside: BTreeSet<(u64, ObjectIndex)>,
    outside: BTreeSet<(u64, ObjectIndex)>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    weight: f64,
    place: Option<usize>,
}

impl Places {
    /// Sets the service, and returns whether that is a change. Objects keep their places as far as there are places;
    /// all have to be proposed again after a change.
    pub(super) fn set(&mut self, service: Option<PromisedService>) -> bool {
        if self.service == service {
            return false;
        }
        self.service = service;
        let count = service.map_or(0, |service| service.objects);
        if self.places.len() < count {
            self.places.resize(count, None);
        }
        let candidates = std::mem::take(&mut self.candidates);
        self.inside.clear();
        self.outside.clear();
        self.free = (0..count).collect();
        for (object, candidate) in candidates {
            let place = candidate.place.filter(|place| *place < count);
            if let Some(place) = place {
                self.free.remove(&place);
            }
            self.add(object, Candidate { place, ..candidate });
        }
        true
    }

    pub(super) fn contract(&self) -> Option<&ObjectContract> {
        self.service.as_ref().map(|service| &service.each)
    }

    /// Returns the earliest time of the next message.
    pub(super) const fn opens(&self) -> Instant {
        self.opens
    }

    /// Notes that a message of `bytes` without its header left, which is split into fragments of at most `room` bytes.
    pub(super) fn left(&mut self, bytes: u64, (room, head): (u64, u64), now: Instant) {
        let Some(PromisedService { traffic, .. }) = &self.service else { return };
        let fragments = if bytes <= room {
            1
        } else {
            parts(bytes.saturating_sub(head), traffic.groups.into(), room.saturating_sub(head))
        };
        self.opens = now + traffic.spacing.mul_div(fragments, 1);
    }

    /// Returns the last exchange of a place.
    pub(super) fn last(&self, place: usize) -> Option<Instant> {
        self.places.get(place).copied().flatten()
    }

    /// Notes an exchange of a place.
    pub(super) fn exchanged(&mut self, place: usize, now: Instant) {
        if let Some(last) = self.places.get_mut(place) {
            *last = Some(now);
        }
    }

    pub(super) fn place_of(&self, object: ObjectIndex) -> Option<usize> {
        self.candidates.get(&object).and_then(|candidate| candidate.place)
    }

    /// Sets the weight of an object with groups of these sizes, and removes the object without one. Objects that the
    /// reserved traffic does not cover have no place. Returns the objects whose place changed.
    pub(super) fn propose(
        &mut self,
        object: ObjectIndex,
        weight: Option<f64>,
        group_bytes: &[u32],
    ) -> Vec<ObjectIndex> {
        let Some(service) = &self.service else { return Vec::new() };
        let weight = weight.filter(|_| service.covers(group_bytes));
        let before = self.candidates.get(&object).copied();
        let Some(weight) = weight else {
            let Some(before) = before else { return Vec::new() };
            self.remove(object, before);
            let mut changed = self.settle();
            if before.place.is_some() {
                changed.push(object);
            }
            return changed;
        };
        let place = before.and_then(|before| before.place);
        if let Some(before) = before {
            if before.weight.to_bits() == weight.to_bits() {
                return self.settle();
            }
            self.set_of(before).remove(&(before.weight.to_bits(), object));
        }
        self.add(object, Candidate { weight, place });
        self.settle()
    }

    fn set_of(&mut self, candidate: Candidate) -> &mut BTreeSet<(u64, ObjectIndex)> {
        if candidate.place.is_some() { &mut self.inside } else { &mut self.outside }
    }

    fn add(&mut self, object: ObjectIndex, candidate: Candidate) {
        self.set_of(candidate).insert((candidate.weight.to_bits(), object));
        self.candidates.insert(object, candidate);
    }

    fn remove(&mut self, object: ObjectIndex, candidate: Candidate) {
        self.set_of(candidate).remove(&(candidate.weight.to_bits(), object));
        self.candidates.remove(&object);
        if let Some(place) = candidate.place {
            self.free.insert(place);
        }
    }

    /// Fills free places and replaces objects of much lower weight. Returns the objects whose place changed.
    fn settle(&mut self) -> Vec<ObjectIndex> {
        let mut changed = Vec::new();
        while let Some((bits, object)) = self.outside.last().copied() {
            let weight = f64::from_bits(bits);
            if self.free.is_empty() {
                let Some((lowest, other)) = self.inside.first().copied() else { break };
                let lowest = f64::from_bits(lowest);
                if weight <= lowest * REPLACE {
                    break;
                }
                let place = self.place_of(other);
                self.remove(other, Candidate { weight: lowest, place });
                self.add(other, Candidate { weight: lowest, place: None });
                changed.push(other);
            }
            let Some(place) = self.free.pop_first() else { break };
            self.outside.remove(&(bits, object));
            self.add(object, Candidate { weight, place: Some(place) });
            changed.push(object);
        }
        changed
    }
}
