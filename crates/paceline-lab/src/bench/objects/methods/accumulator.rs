//! Priorities that accumulate (Fiedler, "State Synchronization"; the rule of naia): each tick adds to an object's
//! priority, those with the greatest are sent as far as the bytes permit, and begin at 0 again.

use crate::bench::objects::budget::ByteBucket;
use crate::bench::objects::link::{Packet, bytes_of};
use crate::bench::objects::run::Method;
use crate::bench::objects::world::{CARS, OBSERVERS, Scene};
use paceline_objects::Motion;
use paceline_objects::motion::distance;

/// The priority of an object that accumulates.
#[derive(Clone, Copy, Debug)]
pub(in crate::bench::objects) enum Priority {
    /// A power of the relevance.
    Relevance(f64),
    /// The relevance times the present error of the replica.
    Error,
}

/// One observer's priorities.
struct View {
    bucket: ByteBucket,
    sums: Vec<f64>,
    sent: Vec<Option<Motion>>,
}

/// Priorities that accumulate.
pub(in crate::bench::objects) struct Accumulator {
    priority: Priority,
    views: Vec<View>,
}

impl Accumulator {
    pub(in crate::bench::objects) fn new(priority: Priority) -> Self {
        let view = || View {
            bucket: ByteBucket::part(u64::try_from(OBSERVERS).unwrap_or(1)),
            sums: vec![0.0; CARS],
            sent: vec![None; CARS],
        };
        Self { priority, views: (0..OBSERVERS).map(|_| view()).collect() }
    }
}

impl Method for Accumulator {
    fn tick(&mut self, scene: &Scene) -> Vec<Packet> {
        let mut packets = Vec::new();
        for (observer, view) in self.views.iter_mut().enumerate() {
            view.bucket.fill();
            view.accumulate(self.priority, scene, observer);
            let cars = view.greatest();
            for car in &cars {
                if let (Some(sum), Some(sent)) = (view.sums.get_mut(*car), view.sent.get_mut(*car))
                {
                    *sum = 0.0;
                    *sent = scene.cars.get(*car).copied();
                }
            }
            let sent: Vec<_> = Packet::of(Some(observer), &cars).collect();
            view.bucket.take(sent.iter().map(|packet| packet.bytes).sum());
            packets.extend(sent);
        }
        packets
    }
}

impl View {
    fn accumulate(&mut self, priority: Priority, scene: &Scene, observer: usize) {
        let cars = self.sums.iter_mut().zip(&self.sent).zip(&scene.cars).enumerate();
        for (number, ((sum, sent), car)) in cars {
            let relevance = scene.relevance(observer, number);
            *sum += match priority {
                Priority::Relevance(power) => relevance.powf(power),
                Priority::Error => {
                    let error = |sent: Motion| distance(car.position, sent.position_at(scene.now));
                    relevance * sent.map_or(100.0, error)
                }
            };
        }
    }

    /// Returns the objects of the greatest priority that fit the bytes.
    fn greatest(&self) -> Vec<usize> {
        let mut order: Vec<_> = self.sums.iter().copied().enumerate().collect();
        order.sort_unstable_by(|(_, one), (_, other)| other.total_cmp(one));
        let fits = (0..=CARS).rev().find(|count| bytes_of(*count) <= self.bucket.left());
        let order = order.iter().filter(|(_, sum)| *sum > 0.0);
        order.take(fits.unwrap_or(0)).map(|(car, _)| *car).collect()
    }
}
