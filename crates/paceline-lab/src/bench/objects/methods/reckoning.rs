//! Dead reckoning as in DIS (IEEE 1278.1): an object is sent to everybody if its extrapolation is wrong by more than
//! a threshold, or after the time of a heartbeat.

use crate::bench::objects::link::Packet;
use crate::bench::objects::run::Method;
use crate::bench::objects::world::{CARS, OBSERVERS, Scene, TICK};
use paceline_objects::Motion;
use paceline_objects::motion::distance;
use paceline_sched::Duration;

/// The heartbeat of DIS.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Dead reckoning with one threshold for all objects.
pub(in crate::bench::objects) struct DeadReckoning {
    /// The greatest error in metres.
    threshold: f64,
    sent: Vec<Option<Motion>>,
    multicast: bool,
}

impl DeadReckoning {
    pub(in crate::bench::objects) fn new(threshold: f64, multicast: bool) -> Self {
        Self { threshold, sent: vec![None; CARS], multicast }
    }
}

impl Method for DeadReckoning {
    fn tick(&mut self, scene: &Scene) -> Vec<Packet> {
        let mut cars = Vec::new();
        for (number, (car, sent)) in scene.cars.iter().zip(&mut self.sent).enumerate() {
            // The first heartbeats are spread over the time of one.
            let tick = scene.now.as_nanos() / TICK.as_nanos();
            let first =
                sent.is_none() && tick % TICKS_PER_HEARTBEAT == number as u64 % TICKS_PER_HEARTBEAT;
            let wrong = sent.is_some_and(|sent| {
                let error = distance(car.position, sent.position_at(scene.now));
                error > self.threshold || scene.now.since(sent.at) >= HEARTBEAT
            });
            if first || wrong {
                *sent = Some(*car);
                cars.push(number);
            }
        }
        if self.multicast {
            Packet::of(None, &cars).collect()
        } else {
            (0..OBSERVERS).flat_map(|observer| Packet::of(Some(observer), &cars)).collect()
        }
    }
}

/// A heartbeat in ticks.
const TICKS_PER_HEARTBEAT: u64 = HEARTBEAT.as_nanos() / TICK.as_nanos();
