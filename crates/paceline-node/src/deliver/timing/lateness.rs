//! The counters of samples with release times, and the lateness of their last wake-ups.

use paceline_sched::Duration;
use std::collections::VecDeque;

/// The wake-ups that are kept.
const WAKES: usize = 512;

/// The lateness of the last wake-ups, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Lateness(VecDeque<u64>);

impl Lateness {
    pub(super) fn add(&mut self, late: Duration) {
        if self.0.len() >= WAKES {
            self.0.pop_front();
        }
        self.0.push_back(late.as_nanos());
    }

    /// Returns the 99th percentile; zero without a wake-up.
    pub(super) fn p99(&self) -> std::time::Duration {
        let mut sorted: Vec<u64> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * 99).div_ceil(100).saturating_sub(1);
        std::time::Duration::from_nanos(sorted.get(rank).copied().unwrap_or_default())
    }
}

/// Counters of samples with release times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacedCounts {
    /// Samples that have left.
    pub(super) released: u64,
    /// Samples that arrived after their release time.
    pub(super) late: u64,
    /// Samples that left before their release time, because too many waited.
    pub(super) early: u64,
    /// Jumps of time stamps.
    pub(super) jumps: u64,
    /// Samples that left too late by more than the largest jitter, or whose age was not known so exactly.
    pub(super) beyond: u64,
    /// The largest error of a measured age.
    pub(super) doubt: Option<Duration>,
}
