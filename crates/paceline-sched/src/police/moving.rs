//! The instants of the last packets of a moving window.

use super::{Conformance, Moving};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec;

/// A ring of fixed size with the instants of charges in order.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    times: Box<[Instant]>,
    /// The next index to write; the oldest instant is there once the ring is full.
    next: u32,
    full: bool,
    last: Option<Instant>,
}

impl Ring {
    pub(super) fn new(packets: u32) -> Self {
        let length = usize::try_from(packets.max(1)).unwrap_or(1);
        let times = vec![Instant::ZERO; length].into_boxed_slice();
        Self { times, next: 0, full: false, last: None }
    }

    /// Checks that Xmin has passed since the last packet, and I since the oldest packet in the ring.
    pub(super) fn check(&self, moving: &Moving, now: Instant) -> Conformance {
        let after = |time: Instant, nanos: u64| u128::from(time.as_nanos()) + u128::from(nanos);
        let spaced = self.last.map_or(0, |last| after(last, moving.spacing.as_nanos()));
        let oldest = if self.full { self.times.get(self.slot()) } else { None };
        let left = oldest.map_or(0, |&oldest| after(oldest, moving.interval.as_nanos()));
        let earliest = spaced.max(left);
        if earliest <= u128::from(now.as_nanos()) {
            return Conformance::Conforms;
        }
        Conformance::at_nanos(earliest)
    }

    pub(super) fn push(&mut self, now: Instant) {
        let slot = self.slot();
        if let Some(time) = self.times.get_mut(slot) {
            *time = now;
        }
        let after = slot + 1;
        self.full |= after == self.times.len();
        self.next = if after == self.times.len() { 0 } else { self.next.saturating_add(1) };
        self.last = Some(now);
    }

    fn slot(&self) -> usize {
        usize::try_from(self.next).unwrap_or(0)
    }
}
