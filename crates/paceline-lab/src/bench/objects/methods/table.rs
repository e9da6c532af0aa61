//! A table of rates by distance.

use crate::bench::objects::link::Packet;
use crate::bench::objects::run::Method;
use crate::bench::objects::world::{CARS, OBSERVERS, Scene};
use paceline_objects::motion::{distance, seconds};
use paceline_sched::Instant;

/// The borders of the table in metres.
const BORDERS: [f64; 6] = [25.0, 50.0, 100.0, 200.0, 400.0, 800.0];

/// A table of rates by distance: each border divides the rate.
pub(in crate::bench::objects) struct DistanceTable {
    /// The rate of the nearest objects per second.
    nearest: f64,
    /// By which each border divides the rate.
    divisor: f64,
    last: Vec<Vec<Option<Instant>>>,
}

impl DistanceTable {
    pub(in crate::bench::objects) fn new(nearest: f64, divisor: f64) -> Self {
        Self { nearest, divisor, last: vec![vec![None; CARS]; OBSERVERS] }
    }

    fn rate(nearest: f64, divisor: f64, scene: &Scene, observer: usize, car: usize) -> f64 {
        let pair = scene.observers.get(observer).zip(scene.cars.get(car));
        let far = pair.map_or(f64::INFINITY, |(from, to)| distance(from.position, to.position));
        BORDERS.iter().filter(|border| far > **border).fold(nearest, |rate, _| rate / divisor)
    }
}

impl Method for DistanceTable {
    fn tick(&mut self, scene: &Scene) -> Vec<Packet> {
        let mut packets = Vec::new();
        let (nearest, divisor) = (self.nearest, self.divisor);
        for (observer, last) in self.last.iter_mut().enumerate() {
            let mut cars = Vec::new();
            for (car, last) in last.iter_mut().enumerate() {
                let rate = Self::rate(nearest, divisor, scene, observer, car);
                // The first updates are spread over the time of one.
                let due = match *last {
                    Some(last) => seconds(scene.now.since(last)) * rate >= 1.0 - 1e-9,
                    None => {
                        let fraction = super::super::super::stats::count(car * 37 % CARS);
                        let share = fraction / super::super::super::stats::count(CARS);
                        let passed = seconds(scene.now.since(Instant::from_millis(1_000)));
                        passed * rate >= share
                    }
                };
                if due {
                    *last = Some(scene.now);
                    cars.push(car);
                }
            }
            packets.extend(Packet::of(Some(observer), &cars));
        }
        packets
    }
}
