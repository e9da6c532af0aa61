//! The exchange list of this project, with a contract for the most relevant objects.

use crate::bench::objects::budget::ByteBucket;
use crate::bench::objects::link::{LARGEST, Packet};
use crate::bench::objects::promise::{MOTION_BYTES, Promise, settings};
use crate::bench::objects::run::Method;
use crate::bench::objects::world::{CARS, OBSERVERS, Scene, TICK, relevance};
use paceline_objects::exchange::{Exchange, ExchangeClass, ExchangeList, ObjectFacts, Observer};
use paceline_objects::semantic::{ExchangeTerms, PairView};
use paceline_objects::{GroupMask, Motion, ObjectIndex, PeerId};
use paceline_sched::{Duration, Instant};

/// The longest time between two updates, as the heartbeat of dead reckoning.
pub(in crate::bench::objects) const REFRESH: Duration = Duration::from_secs(5);

/// The exchange list of one owner of all cars.
pub(in crate::bench::objects) struct OurExchange {
    list: ExchangeList,
    bucket: ByteBucket,
    /// The contract of each observer; `None` without one.
    promise: Option<Promise>,
    /// The tolerance of objects of relevance 1, in metres.
    tolerance: f64,
    began: bool,
}

impl OurExchange {
    pub(in crate::bench::objects) fn new(promise: Option<Promise>, tolerance: f64) -> Self {
        let list = ExchangeList::new(settings());
        Self { list, bucket: ByteBucket::part(1), promise, tolerance, began: false }
    }

    fn begin(&mut self, scene: &Scene) -> Result<(), paceline_objects::exchange::ExchangeError> {
        for (number, car) in scene.cars.iter().enumerate() {
            self.list.create(index(number), &facts(*car), scene.now)?;
        }
        let service = self.promise.map(|promise| promise.service());
        for (number, observer) in scene.observers.iter().enumerate() {
            self.list.join(peer(number), seeing(*observer), scene.now)?;
            self.list.promise(peer(number), service, scene.now)?;
        }
        Ok(())
    }

    fn change(&mut self, scene: &Scene) -> Result<(), paceline_objects::exchange::ExchangeError> {
        for (number, car) in scene.cars.iter().enumerate() {
            self.list.change(index(number), &facts(*car), GroupMask::of(0), scene.now)?;
        }
        for (number, observer) in scene.observers.iter().enumerate() {
            self.list.observe(peer(number), seeing(*observer))?;
        }
        Ok(())
    }

    fn evaluate(&mut self, now: Instant) {
        let terms = ExchangeTerms { refresh: REFRESH, ..ExchangeTerms::every(TICK) };
        let mut decide = |pair: &PairView<'_>| {
            let relevance = relevance(pair.facts.distance.unwrap_or(0.0));
            Some(terms.weight(relevance).tolerance(self.tolerance / relevance))
        };
        while let Some(batch) = self.list.next_batch(now) {
            if let Ok(decided) = batch.decide(&mut decide, &()) {
                self.list.accept(&decided, now);
            }
        }
    }
}

impl Method for OurExchange {
    fn tick(&mut self, scene: &Scene) -> Vec<Packet> {
        let done = if self.began { self.change(scene) } else { self.begin(scene) };
        debug_assert!(done.is_ok(), "{done:?}");
        self.began = true;
        self.evaluate(scene.now);
        self.bucket.fill();
        let mut packets = Vec::new();
        while let Some(message) = self.list.poll(scene.now, &self.bucket.left(), LARGEST) {
            self.bucket.take(message.bytes);
            packets.push(packet(&message));
        }
        packets
    }

    fn delay(&self) -> Duration {
        self.promise.map_or(Duration::ZERO, |promise| promise.each.delay)
    }

    fn delivered(&mut self, packet: &Packet, now: Instant) {
        if let Some(observer) = packet.observer {
            self.list.delivered(peer(observer), packet.number, now);
        }
    }

    fn lost(&mut self, packet: &Packet, now: Instant) {
        if let Some(observer) = packet.observer {
            self.list.lost(peer(observer), packet.number, now);
        }
    }
}

fn packet(message: &Exchange) -> Packet {
    let cars = message.updates.iter().map(|update| usize::try_from(update.object.0));
    let promised = message.class == ExchangeClass::Promised;
    let due = message.updates.iter().filter(|_| promised).map(|update| update.due);
    Packet {
        observer: usize::try_from(message.peer.0).ok().filter(|peer| *peer < OBSERVERS),
        cars: cars.filter_map(Result::ok).filter(|car| *car < CARS).collect(),
        bytes: message.bytes,
        promised: due.collect(),
        number: message.number,
    }
}

fn facts(motion: Motion) -> ObjectFacts<'static> {
    let motion_groups = GroupMask::of(0);
    ObjectFacts { motion: Some(motion), motion_groups, group_bytes: &[MOTION_BYTES] }
}

const fn seeing(motion: Motion) -> Observer {
    Observer { motion: Some(motion), view: None, range: f64::INFINITY }
}

fn index(car: usize) -> ObjectIndex {
    ObjectIndex(u32::try_from(car).unwrap_or(u32::MAX))
}

fn peer(observer: usize) -> PeerId {
    PeerId(u128::try_from(observer).unwrap_or(u128::MAX))
}
