//! Another participant of the world.

use super::ages::Ages;
use crate::contract::{DelayParts, PromisedService};
use crate::flight::{Flight, OpenExchanges};
use crate::ids::PeerId;
use crate::packet::{FragmentAck, ObserverView, PeerDescription, UpdateClass};
use crate::receipts::Receipts;
use paceline_sched::{Duration, Instant};

/// Another participant of the world.
#[derive(Debug)]
pub(super) struct Peer {
    /// Its description.
    pub(super) about: Option<PeerDescription>,
    /// When it was last heard.
    pub(super) heard: Instant,
    /// The ages of its packets.
    pub(super) ages: Ages,
    /// The number of its newest view.
    pub(super) view: Option<u32>,
    /// The times that its modules are charged.
    pub(super) parts: DelayParts,
    /// The service that its path has granted.
    pub(super) granted: Option<PromisedService>,
    /// The fragments on their way to it.
    pub(super) flights: PerClass<Flight>,
    /// Their exchanges.
    pub(super) open: OpenExchanges,
    /// How often this participant has begun to introduce its objects to it.
    run: u32,
    /// The received fragments, and their run.
    receipts: PerClass<Receipts>,
    heard_run: Option<u32>,
    /// How often this participant has forgotten its objects.
    generation: u32,
    /// The run at which all objects were demanded again. The number is repeated until another run begins, because a
    /// view can be lost.
    demanded: Option<Option<u32>>,
    /// How often it has forgotten the objects of this participant.
    known_generation: u32,
    /// When objects were introduced anew because of that.
    introduced: Option<Instant>,
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

/// A participant that is gone.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    generation: u32,
    run: u32,
    pub(super) about: Option<PeerDescription>,
    /// When it was last heard.
    pub(super) heard: Option<Instant>,
}

/// The kind of a fragment, by its numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Receipt {
    New,
    /// The first of a run: all replicas of its owner are out of date.
    Begins,
    Known,
}

impl Peer {
    /// The least time between two introductions of all objects. Later demands are repeated by the views.
    const INTRODUCED_AGAIN: Duration = Duration::from_millis(500);

    pub(super) fn new(remembered: &Remembered, now: Instant) -> Self {
        let Remembered { generation, run, .. } = *remembered;
        Self {
            about: None,
            heard: now,
            ages: Ages::new(now),
            view: None,
            parts: DelayParts::default(),
            granted: None,
            flights: PerClass { promised: Flight::new(now), best_effort: Flight::new(now) },
            open: OpenExchanges::default(),
            run,
            receipts: PerClass::default(),
            heard_run: None,
            generation,
            demanded: (generation > 0).then_some(None),
            known_generation: 0,
            introduced: None,
        }
    }

    /// Returns the part to remember when it is gone.
    pub(super) const fn remember(&self, about: Option<PeerDescription>) -> Remembered {
        Remembered {
            generation: self.generation.wrapping_add(1),
            run: self.run.wrapping_add(1),
            about,
            heard: Some(self.heard),
        }
    }

    pub(super) const fn run(&self) -> u32 {
        self.run
    }

    /// Begins to introduce objects to it anew.
    pub(super) fn begin(&mut self, now: Instant) {
        self.run = self.run.wrapping_add(1);
        self.flights = PerClass { promised: Flight::new(now), best_effort: Flight::new(now) };
        self.open = OpenExchanges::default();
    }

    /// Returns whether it has received a fragment since objects are introduced anew.
    pub(super) const fn has_begun(&self) -> bool {
        self.flights.promised.is_acknowledged() || self.flights.best_effort.is_acknowledged()
    }

    /// Returns its name; empty until its description has arrived.
    pub(super) fn name(&self) -> &str {
        self.about.as_ref().map_or("", |about| &about.name)
    }

    /// Takes the numbers of a fragment.
    pub(super) fn receive(&mut self, class: UpdateClass, run: u32, number: u32) -> Receipt {
        let before = self.heard_run;
        if before.is_some_and(|known| run != known && known.wrapping_sub(run) < u32::MAX / 2) {
            return Receipt::Known;
        }
        if before != Some(run) {
            self.receipts = PerClass::default();
            self.heard_run = Some(run);
        }
        let new = self.receipts.get(class).add(number);
        match before {
            Some(before) if before != run => Receipt::Begins,
            Some(_) | None if new => Receipt::New,
            Some(_) | None => Receipt::Known,
        }
    }

    /// Returns whether it has not yet begun to introduce its objects again.
    fn demands(&self) -> bool {
        self.demanded == Some(self.heard_run)
    }

    /// Returns whether it must be informed of new fragments, not only of an old demand.
    pub(super) fn has_news(&self) -> bool {
        self.receipts.promised.is_fresh() || self.receipts.best_effort.is_fresh()
    }

    /// Adds its acknowledgements.
    pub(super) fn acks(&mut self, owner: PeerId, acks: &mut Vec<FragmentAck>) {
        let demands = self.demands();
        for class in [UpdateClass::Promised, UpdateClass::BestEffort] {
            let ranges = self.receipts.get(class).report();
            let only = demands && class == UpdateClass::BestEffort;
            if let Some(ranges) = ranges.or_else(|| only.then(Vec::new)) {
                acks.push(FragmentAck {
                    owner,
                    class,
                    generation: self.generation,
                    run: self.heard_run.unwrap_or(0),
                    ranges,
                });
            }
        }
    }

    /// Takes its view, and returns whether it has forgotten this participant's objects.
    pub(super) fn report(&mut self, view: &ObserverView, own: PeerId, now: Instant) -> bool {
        let mut forgotten = false;
        for ack in view.acks.iter().filter(|ack| ack.owner == own) {
            let pauses = self.introduced.is_some_and(|at| now.since(at) < Self::INTRODUCED_AGAIN);
            if self.known_generation != ack.generation && !pauses {
                forgotten = true;
                self.introduced = Some(now);
                self.known_generation = ack.generation;
            }
            if ack.run == self.run {
                self.flights.get(ack.class).acknowledge(&ack.ranges, now, &mut self.open);
            }
        }
        forgotten
    }

    /// Demands that it introduces its objects again.
    pub(super) const fn forget_objects(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.demanded = Some(self.heard_run);
    }

    /// Loses fragments that have been on their way for too long, and returns when the next one is.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        let promised = self.flights.promised.expire(now, &mut self.open);
        let best_effort = self.flights.best_effort.expire(now, &mut self.open);
        promised.into_iter().chain(best_effort).min()
    }
}
