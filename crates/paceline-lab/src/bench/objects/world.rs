//! Cars that drive, turn and brake, and the observers among them.

use paceline_objects::Motion;
use paceline_objects::motion::distance;
use paceline_sched::{Duration, Instant};
use paceline_sim::Random;

/// The time between two states of the world.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// The number of cars.
pub(super) const CARS: usize = 500;
/// The number of observers; they drive too.
pub(super) const OBSERVERS: usize = 5;
/// The edge of the square world in metres.
const EDGE: f64 = 2_000.0;

/// Returns a number from `low` to `high`.
fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    let drawn = u32::try_from(random.next() >> 32).unwrap_or_default();
    low + (high - low) * f64::from(drawn) / f64::from(u32::MAX)
}

#[derive(Clone, Debug)]
struct Car {
    position: [f64; 2],
    heading: f64,
    /// Metres per second.
    speed: f64,
    /// Radians per second.
    turn: f64,
    /// Metres per second squared.
    acceleration: f64,
    /// Seconds until the driver does something else.
    keeps: f64,
}

impl Car {
    fn new(random: &mut Random) -> Self {
        Self {
            position: [between(random, 0.0, EDGE), between(random, 0.0, EDGE)],
            heading: between(random, 0.0, std::f64::consts::TAU),
            speed: between(random, 5.0, 25.0),
            turn: 0.0,
            acceleration: 0.0,
            keeps: between(random, 0.0, 4.0),
        }
    }

    fn drive(&mut self, seconds: f64, random: &mut Random) {
        self.keeps -= seconds;
        if self.keeps <= 0.0 {
            // Half of the time straight on at a steady speed.
            let straight = between(random, 0.0, 1.0) < 0.5;
            self.turn = if straight { 0.0 } else { between(random, -0.4, 0.4) };
            self.acceleration = if straight { 0.0 } else { between(random, -3.0, 3.0) };
            self.keeps = between(random, 1.0, 5.0);
        }
        self.heading += self.turn * seconds;
        self.speed = (self.speed + self.acceleration * seconds).clamp(2.0, 30.0);
        let [east, north] = self.direction();
        let [x, y] = self.position;
        self.position = [x + east * self.speed * seconds, y + north * self.speed * seconds];
        let [x, y] = self.position;
        if !(0.0..=EDGE).contains(&x) || !(0.0..=EDGE).contains(&y) {
            // It turns back at the border.
            self.position = [x.clamp(0.0, EDGE), y.clamp(0.0, EDGE)];
            self.heading += std::f64::consts::PI;
        }
    }

    fn direction(&self) -> [f64; 2] {
        [self.heading.cos(), self.heading.sin()]
    }

    fn motion(&self, at: Instant) -> Motion {
        let ([x, y], [east, north]) = (self.position, self.direction());
        let velocity = [east * self.speed, north * self.speed, 0.0];
        Motion { position: [x, y, 0.0], velocity, at }
    }
}

/// The state of the world at one tick.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) now: Instant,
    pub(super) cars: Vec<Motion>,
    pub(super) observers: Vec<Motion>,
}

impl Scene {
    /// Returns the relevance of a car for an observer: 1 near it, and in proportion to the size at which an error of
    /// its position is seen far from it.
    pub(super) fn relevance(&self, observer: usize, car: usize) -> f64 {
        let [observer, car] = [self.observers.get(observer), self.cars.get(car)];
        let between = observer.zip(car).map(|(from, to)| distance(from.position, to.position));
        relevance(between.unwrap_or(f64::INFINITY))
    }
}

/// Returns the relevance of an object at a distance in metres.
pub(super) fn relevance(distance: f64) -> f64 {
    10.0 / (10.0 + distance)
}

/// Drives all cars for a time. Returns the scene at each tick; the same for the same seed.
pub(super) fn scenes(seconds: u64, seed: u64) -> Vec<Scene> {
    let mut random = Random::new(seed);
    let mut cars: Vec<_> = (0..CARS + OBSERVERS).map(|_| Car::new(&mut random)).collect();
    let mut now = Instant::from_millis(1_000);
    let ticks = seconds * 1_000_000_000 / TICK.as_nanos();
    let step = |_| {
        now += TICK;
        for car in &mut cars {
            car.drive(paceline_objects::motion::seconds(TICK), &mut random);
        }
        let motions: Vec<_> = cars.iter().map(|car| car.motion(now)).collect();
        let (observers, cars) = motions.split_at(OBSERVERS);
        Scene { now, cars: cars.to_vec(), observers: observers.to_vec() }
    };
    (0..ticks).map(step).collect()
}
