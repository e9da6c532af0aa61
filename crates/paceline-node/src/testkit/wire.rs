//! One direction of a link.

use super::TestLink;
use bytes::Bytes;
use paceline_proto::NodeId;
use paceline_sched::Instant;
use std::collections::VecDeque;

/// Bytes that the layers below add to each frame. Links assume a little more.
const OVERHEAD: u64 = 72;

/// A node and the index of its link.
pub(super) type End = (NodeId, usize);

/// The frames of one direction of a link.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) from: End,
    pub(super) to: End,
    link: TestLink,
    is_cut: bool,
    /// The end of the last frame's transmission.
    free_at: Instant,
    in_flight: VecDeque<(Instant, Bytes)>,
    /// The state of the random numbers, which is never zero.
    chance: u64,
}

impl Wire {
    pub(super) fn new(from: End, to: End, link: TestLink, seed: u64) -> Self {
        let (is_cut, free_at, in_flight) = (false, Instant::ZERO, VecDeque::new());
        let chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { from, to, link, is_cut, free_at, in_flight, chance }
    }

    pub(super) fn joins(&self, a: NodeId, b: NodeId) -> bool {
        let ends = (self.from.0, self.to.0);
        ends == (a, b) || ends == (b, a)
    }

    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) fn cut(&mut self) {
        self.is_cut = true;
        self.in_flight.clear();
    }

    pub(super) const fn restore(&mut self) {
        self.is_cut = false;
    }

    pub(super) fn send(&mut self, now: Instant, frame: Bytes) {
        if self.is_cut || self.loses() {
            return;
        }
        let begin = self.free_at.max(now);
        let bytes = frame.len() as u64 + OVERHEAD;
        self.free_at = self.link.capacity.map_or(begin, |rate| begin + rate.time_for(bytes));
        self.in_flight.push_back((self.free_at + self.link.delay, frame));
    }

    /// Returns true if the next frame is lost.
    const fn loses(&mut self) -> bool {
        // Xorshift, by Marsaglia.
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance % 1_000_000 < self.link.loss_ppm as u64
    }

    pub(super) fn arrives_at(&self) -> Instant {
        self.in_flight.front().map_or(Instant::FAR, |(at, _)| *at)
    }

    /// Returns a frame that has arrived.
    pub(super) fn receive(&mut self, now: Instant) -> Option<Bytes> {
        (self.arrives_at() <= now).then(|| self.in_flight.pop_front())?.map(|(_, frame)| frame)
    }
}
