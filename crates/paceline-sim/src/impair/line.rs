//! A FIFO of packets in flight.

use paceline_sched::Instant;
use std::collections::VecDeque;

/// A packet in flight.
#[derive(Clone, Debug)]
pub(super) struct Held<T> {
    pub(super) arrives: Instant,
    /// Its position in the order of sending.
    pub(super) number: u64,
    pub(super) bytes: u64,
    pub(super) item: T,
}

impl<T> Held<T> {
    pub(super) const fn new(arrives: Instant, number: u64, bytes: u64, item: T) -> Self {
        Self { arrives, number, bytes, item }
    }
}

/// Packets in the order of their arrival.
#[derive(Clone, Debug)]
pub(super) struct Line<T> {
    held: VecDeque<Held<T>>,
    last: Instant,
}

impl<T> Line<T> {
    pub(super) const fn new() -> Self {
        Self { held: VecDeque::new(), last: Instant::ZERO }
    }

    /// Adds a packet, which arrives no earlier than those before it.
    pub(super) fn push(&mut self, mut packet: Held<T>) {
        self.last = self.last.max(packet.arrives);
        packet.arrives = self.last;
        self.held.push_back(packet);
    }

    /// Returns the arrival time and number of the first packet, which order two lines.
    pub(super) fn first(&self) -> (Instant, u64) {
        self.held.front().map_or((Instant::FAR, u64::MAX), |held| (held.arrives, held.number))
    }

    pub(super) fn pop(&mut self) -> Option<Held<T>> {
        self.held.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Drops all packets, so that the next one need not wait for them.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.last = Instant::ZERO;
    }
}
