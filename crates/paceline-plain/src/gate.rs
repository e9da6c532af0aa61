//! Limits the rate of the samples of one key.

use std::time::{Duration, Instant};

/// Admits one sample per period on average. A sample may arrive one period early, so a jittery
/// stream of the right rate is not thinned.
#[derive(Debug)]
pub(crate) struct Gate {
    period: Duration,
    due: Option<Instant>,
}

impl Gate {
    pub(crate) const fn new(period: Duration) -> Self {
        Self { period, due: None }
    }

    /// Returns true if a sample that arrives at `now` is admitted.
    pub(crate) fn passes(&mut self, now: Instant) -> bool {
        let due = self.due.unwrap_or(now).max(now);
        if due.saturating_duration_since(now) > self.period {
            return false;
        }
        self.due = Some(due + self.period);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of admitted samples of those arriving at these milliseconds, at 10 Hz.
    fn enter(times: impl Iterator<Item = u64>) -> usize {
        let start = Instant::now();
        let mut gate = Gate::new(Duration::from_millis(100));
        times.filter(|ms| gate.passes(start + Duration::from_millis(*ms))).count()
    }

    #[test]
    fn fast_samples_are_thinned_to_the_rate() {
        // 1,000 Hz for 10 s: two samples at once, then one per period.
        assert_eq!(enter(0..10_000), 101);
        assert_eq!(enter((0..10_000).step_by(33)), 101);
    }

    #[test]
    fn uneven_samples_at_the_rate_pass() {
        assert_eq!(enter((0..10_000).step_by(100)), 100);
        let uneven = (0..100u64).map(|n| n * 100 + if n % 2 == 0 { 0 } else { 90 });
        assert_eq!(enter(uneven), 100);
        assert_eq!(enter((0..10_000).step_by(250)), 40);
    }

    #[test]
    fn a_pause_saves_up_no_more_than_two() {
        let burst = (0..50u64).map(|n| 60_000 + n);
        assert_eq!(enter([0].into_iter().chain(burst)), 3);
    }
}
