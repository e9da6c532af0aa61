//! The bytes that a way to send objects may use.

use super::link::RATE;
use super::world::TICK;
use paceline_sched::Duration;

/// The share of the link that every way to send objects may use, in percent.
pub(super) const SHARE_PERCENT: u64 = 95;

/// A bucket of bytes that fills at a share of the link's rate. It may go below 0 by one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteBucket {
    tokens: i64,
    per_tick: i64,
}

impl ByteBucket {
    /// Returns a bucket with one of `parts` equal parts of the link.
    pub(super) fn part(parts: u64) -> Self {
        let ticks_per_second = Duration::from_secs(1).as_nanos() / TICK.as_nanos();
        let per_tick = RATE * SHARE_PERCENT / 100 / ticks_per_second / parts;
        Self { tokens: 0, per_tick: i64::try_from(per_tick).unwrap_or(i64::MAX) }
    }

    /// Adds the bytes of a tick; the bytes of at most two ticks are kept.
    pub(super) fn fill(&mut self) {
        self.tokens = (self.tokens + self.per_tick).min(2 * self.per_tick);
    }

    pub(super) fn left(&self) -> u64 {
        u64::try_from(self.tokens).unwrap_or_default()
    }

    pub(super) fn take(&mut self, bytes: u64) {
        self.tokens -= i64::try_from(bytes).unwrap_or(i64::MAX);
    }
}
