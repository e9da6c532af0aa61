//! A FIFO of packets in flight.

use paceline_sched::Instant;
use std::collections::VecDeque;

/// A packet in flight.
#[derive(Clone, Debug)]
pub(super) struct Packet<T> {
    pub(super) arrives: Instant,
    /// Its position in the order of sending.
    pub(super) number: u64,
    pub(super) bytes: u64,
    pub(super) item: T,
}

impl<T> Packet<T> {
    pub(super) const fn new(arrives: Instant, number: u64, bytes: u64, item: T) -> Self {
        Self { arrives, number, bytes, item }
    }
}

/// Packets in the order of their arrival.
#[derive(Clone, Debug)]
pub(super) struct Line<T> {
    packets: VecDeque<Packet<T>>,
    last: Instant,
}

impl<T> Line<T> {
    pub(super) const fn new() -> Self {
        Self { packets: VecDeque::new(), last: Instant::ZERO }
    }

    /// Adds a packet, which arrives no earlier than those before it.
    pub(super) fn push(&mut self, mut packet: Packet<T>) {
        self.last = self.last.max(packet.arrives);
        packet.arrives = self.last;
        self.packets.push_back(packet);
    }

    /// Returns the arrival time and number of the first packet, which order two lines.
    pub(super) fn first(&self) -> (Instant, u64) {
        self.packets
            .front()
            .map_or((Instant::FAR, u64::MAX), |packet| (packet.arrives, packet.number))
    }

    pub(super) fn pop(&mut self) -> Option<Packet<T>> {
        self.packets.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Drops all packets, so that the next one need not wait for them.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.last = Instant::ZERO;
    }
}
