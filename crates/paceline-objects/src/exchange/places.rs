//! The places of a contract: which objects of an observer have the promised service.

use crate::contract::ObjectContract;
use crate::ids::ObjectIndex;
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// How many times the weight of a promised object another must have to replace it, as a ratio.
const REPLACE: f64 = 1.25;

/// The promised places of one observer.
///
/// The objects with the greatest weights have them. The gap of the contract also holds for a place: an object that
/// takes the place of another waits until its gap has passed, so the promised traffic never exceeds its reservation.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    contract: Option<ObjectContract>,
    /// The last exchange of each place.
    places: Vec<Option<Instant>>,
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
    /// Sets the contract and the number of places, and returns whether that is a change. Objects keep their places as
    /// far as there are places; all have to be proposed again after a change.
    pub(super) fn set(&mut self, contract: Option<ObjectContract>, count: usize) -> bool {
        let count = if contract.is_some() { count } else { 0 };
        if self.contract == contract && self.places.len() == count {
            return false;
        }
        self.contract = contract;
        self.places.resize(count, None);
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
        self.contract.as_ref()
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

    /// Returns the place of an object.
    pub(super) fn place_of(&self, object: ObjectIndex) -> Option<usize> {
        self.candidates.get(&object).and_then(|candidate| candidate.place)
    }

    /// Sets the weight of an object of `bytes`, and removes the object without one. Objects larger than the
    /// contract's size have no place. Returns the objects whose place changed.
    pub(super) fn propose(
        &mut self,
        object: ObjectIndex,
        weight: Option<f64>,
        bytes: u64,
    ) -> Vec<ObjectIndex> {
        let Some(contract) = &self.contract else { return Vec::new() };
        let weight = weight.filter(|_| bytes <= u64::from(contract.bytes));
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
