//! A world of shared objects: cars that drive straight on and observers among them.

use paceline_objects::exchange::{ExchangeList, ExchangeSettings, ObjectFacts, Observer};
use paceline_objects::semantic::{FieldSource, SemanticFunction};
use paceline_objects::{GroupMask, Motion, ObjectIndex, PeerId};
use paceline_sched::{Duration, Instant};

/// The edge of the square world in metres.
const EDGE: f64 = 2_000.0;
const BYTES: [u32; 2] = [24, 12];

/// A world of cars and observers.
pub struct CarWorld {
    /// The owner of all cars.
    pub list: ExchangeList,
    cars: Vec<Motion>,
    state: u64,
    /// The time of the world.
    pub now: Instant,
}

impl CarWorld {
    /// Creates cars and observers, evenly at random, each observer with `range` metres.
    pub fn new(cars: u32, observers: u32, range: f64) -> Self {
        let cell = if range.is_finite() { range } else { EDGE };
        let settings = ExchangeSettings { cell, ..ExchangeSettings::default() };
        let now = Instant::from_millis(1);
        let mut world = Self { list: ExchangeList::new(settings), cars: Vec::new(), state: 1, now };
        for car in 0..cars {
            let motion = world.motion();
            world.cars.push(motion);
            let facts = facts(motion);
            world.list.create(ObjectIndex(car), &facts, now).expect("a new object");
        }
        for observer in 0..observers {
            let motion = world.motion();
            let observer_at = Observer { motion: Some(motion), view: Some(motion.velocity), range };
            let peer = PeerId(u128::from(observer));
            world.list.join(peer, observer_at, now).expect("a new observer");
        }
        world
    }

    /// Evaluates all pairs in range once, in batches over the time of a sweep. Returns the number of pairs.
    pub fn sweep(
        &mut self,
        function: &mut dyn SemanticFunction,
        fields: &(dyn FieldSource + Sync),
    ) -> usize {
        let mut pairs = 0;
        for _ in 0..100 {
            self.now += Duration::from_millis(1);
            while let Some(batch) = self.list.next_batch(self.now) {
                pairs += batch.pairs.len();
                let decided = batch.decide(function, fields).expect("terms in range");
                self.list.accept(&decided, self.now);
            }
        }
        pairs
    }

    /// Changes the motion of a car.
    pub fn change(&mut self, car: u32) {
        let motion = self.motion();
        let index = usize::try_from(car).unwrap_or_default();
        let Some(known) = self.cars.get_mut(index) else { return };
        known.position = known.position_at(self.now);
        known.velocity = motion.velocity;
        known.at = self.now;
        let facts = facts(*known);
        let changed = self.list.change(ObjectIndex(car), &facts, GroupMask::of(0), self.now);
        changed.expect("an object that exists");
    }

    /// Sends and delivers all updates that are due. Returns the number of updates.
    pub fn exchange(&mut self, budget: u64) -> usize {
        let mut updates = 0;
        while let Some(message) = self.list.poll(self.now, &budget, 1_400) {
            updates += message.updates.len();
            self.list.delivered(message.peer, message.number, self.now);
        }
        updates
    }

    fn motion(&mut self) -> Motion {
        let position = [self.random() * EDGE, self.random() * EDGE, 0.0];
        let velocity = [self.random() * 30.0 - 15.0, self.random() * 30.0 - 15.0, 0.0];
        Motion { position, velocity, at: self.now }
    }

    /// Returns a number from 0 to 1.
    fn random(&mut self) -> f64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn facts(motion: Motion) -> ObjectFacts<'static> {
    ObjectFacts { motion: Some(motion), motion_groups: GroupMask::of(0), group_bytes: &BYTES }
}
