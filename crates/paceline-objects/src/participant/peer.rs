//! Another participant of the world.

use crate::flight::{Arrival, Flight};
use crate::ids::PeerId;
use crate::packet::{Ack, UpdateClass, View};
use crate::receipts::Receipts;
use paceline_sched::{Duration, Instant};

/// Another participant of the world.
#[derive(Debug)]
pub(super) struct Peer {
    /// Its name; empty until its description has arrived.
    pub(super) name: String,
    /// The number of its description.
    pub(super) revision: Option<u32>,
    /// When it was last heard.
    pub(super) heard: Instant,
    /// The number of its newest view.
    pub(super) view: Option<u32>,
    /// Whether it has an interest in objects.
    pub(super) observes: bool,
    /// The greatest time that it needs to apply a fragment.
    pub(super) cost: Duration,
    /// What it receives from this participant.
    pub(super) flights: PerClass<Flight>,
    /// What this participant receives from it.
    receipts: PerClass<Receipts>,
    /// How often this participant has forgotten its objects.
    generation: u32,
    /// Whether that number is to be reported even without receipts.
    report_generation: bool,
    /// How often it has forgotten the objects of this participant.
    known_generation: Option<u32>,
}

/// A value for each class of updates.
#[derive(Clone, Debug, Default)]
pub(super) struct PerClass<T> {
    pub(super) promised: T,
    pub(super) best_effort: T,
}

impl<T> PerClass<T> {
    pub(super) const fn get(&mut self, class: UpdateClass) -> &mut T {
        match class {
            UpdateClass::Promised => &mut self.promised,
            UpdateClass::BestEffort => &mut self.best_effort,
        }
    }
}

impl Peer {
    pub(super) fn new(generation: u32, now: Instant) -> Self {
        Self {
            name: String::new(),
            revision: None,
            heard: now,
            view: None,
            observes: false,
            cost: Duration::from_nanos(0),
            flights: PerClass { promised: Flight::new(now), best_effort: Flight::new(now) },
            receipts: PerClass::default(),
            generation,
            report_generation: generation > 0,
            known_generation: None,
        }
    }

    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }

    /// Takes the number of a fragment, and returns whether it is new.
    pub(super) fn receive(&mut self, class: UpdateClass, number: u32) -> bool {
        self.receipts.get(class).add(number)
    }

    /// Returns what is to be acknowledged to it.
    pub(super) fn acks(&mut self, owner: PeerId, acks: &mut Vec<Ack>) {
        let report = std::mem::take(&mut self.report_generation);
        for class in [UpdateClass::Promised, UpdateClass::BestEffort] {
            let ranges = self.receipts.get(class).report();
            let only = report && class == UpdateClass::BestEffort;
            if let Some(ranges) = ranges.or_else(|| only.then(Vec::new)) {
                acks.push(Ack { owner, class, generation: self.generation, ranges });
            }
        }
    }

    /// Takes its view, and returns whether it has forgotten this participant's objects.
    pub(super) fn report(
        &mut self,
        view: &View,
        own: PeerId,
        now: Instant,
        ends: &mut Vec<Arrival>,
    ) -> bool {
        let mut forgotten = false;
        for ack in view.acks.iter().filter(|ack| ack.owner == own) {
            let before = self.known_generation.replace(ack.generation);
            forgotten |= before.is_some_and(|before| before != ack.generation);
            self.flights.get(ack.class).acknowledge(&ack.ranges, now, ends);
        }
        forgotten
    }

    /// Loses fragments that have been on their way for too long, and returns when the next one is.
    pub(super) fn expire(&mut self, now: Instant, ends: &mut Vec<Arrival>) -> Option<Instant> {
        let promised = self.flights.promised.expire(now, ends);
        let best_effort = self.flights.best_effort.expire(now, ends);
        promised.into_iter().chain(best_effort).min()
    }
}
