//! Every object to everybody at the same rate.

use crate::bench::objects::budget::ByteBucket;
use crate::bench::objects::link::{Packet, bytes_of};
use crate::bench::objects::run::Method;
use crate::bench::objects::world::{CARS, OBSERVERS, Scene};

/// Every object to everybody at the same rate, as fast as the bytes permit.
pub(in crate::bench::objects) struct FixedRate {
    bucket: ByteBucket,
    next: usize,
    /// Whether one message reaches all observers.
    multicast: bool,
}

impl FixedRate {
    pub(in crate::bench::objects) fn new(multicast: bool) -> Self {
        let copies = if multicast { 1 } else { u64::try_from(OBSERVERS).unwrap_or(1) };
        Self { bucket: ByteBucket::part(copies), next: 0, multicast }
    }
}

impl Method for FixedRate {
    fn tick(&mut self, _scene: &Scene) -> Vec<Packet> {
        self.bucket.fill();
        let mut cars = Vec::new();
        while bytes_of(cars.len() + 1) <= self.bucket.left() && cars.len() < CARS {
            cars.push(self.next);
            self.next = (self.next + 1) % CARS;
        }
        let packets: Vec<_> = if self.multicast {
            Packet::of(None, &cars).collect()
        } else {
            (0..OBSERVERS).flat_map(|observer| Packet::of(Some(observer), &cars)).collect()
        };
        let copies = if self.multicast { 1 } else { u64::try_from(OBSERVERS).unwrap_or(1) };
        self.bucket.take(packets.iter().map(|packet| packet.bytes).sum::<u64>() / copies);
        packets
    }
}
