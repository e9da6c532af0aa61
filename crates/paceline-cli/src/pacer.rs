//! Absolute sample times, so that errors do not accumulate.

use std::time::{Duration, Instant};

/// The times `start + k / hz`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    start: Instant,
    hz: f64,
    slot: u64,
}

impl Pacer {
    /// Creates a pacer whose first sample is due at `start`.
    pub(crate) const fn new(start: Instant, hz: f64) -> Self {
        Self { start, hz, slot: 0 }
    }

    /// Returns the due time of the next sample.
    pub(crate) fn due(&self) -> Instant {
        self.at(self.slot)
    }

    /// Advances to the following sample time.
    pub(crate) const fn advance(&mut self) {
        self.slot += 1;
    }

    /// Skips the missed sample times except the last; returns the number of skipped times.
    pub(crate) fn skip_missed(&mut self, now: Instant) -> u64 {
        let from = self.slot;
        while self.at(self.slot + 1) <= now {
            self.slot += 1;
        }
        self.slot - from
    }

    /// Restarts at `now` if the next sample is overdue by a period or more.
    pub(crate) fn restart_if_behind(&mut self, now: Instant) {
        if self.at(self.slot + 1) <= now {
            *self = Self::new(now, self.hz);
        }
    }

    fn at(&self, slot: u64) -> Instant {
        // Exact to a nanosecond for 2^53 samples.
        #[expect(clippy::cast_precision_loss, reason = "below 2^53 samples there is none")]
        let seconds = slot as f64 / self.hz;
        self.start + Duration::from_secs_f64(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_adds_up() {
        let start = Instant::now();
        let mut pacer = Pacer::new(start, 30.0);
        for _ in 0..30 * 3_600 {
            pacer.advance();
        }
        let drift = pacer.due().duration_since(start).abs_diff(Duration::from_secs(3_600));
        assert!(drift < Duration::from_micros(1), "{drift:?}");
    }

    #[test]
    fn moments_that_are_over_are_left_out_and_counted() {
        let start = Instant::now();
        let mut pacer = Pacer::new(start, 100.0);
        assert_eq!(pacer.skip_missed(start), 0);
        assert_eq!(pacer.skip_missed(start + Duration::from_micros(9_900)), 0);
        assert_eq!(pacer.skip_missed(start + Duration::from_millis(35)), 3);
        assert_eq!(pacer.due(), start + Duration::from_millis(30));
        pacer.restart_if_behind(start + Duration::from_millis(35));
        assert_eq!(pacer.due(), start + Duration::from_millis(30));
        pacer.restart_if_behind(start + Duration::from_millis(75));
        assert_eq!(pacer.due(), start + Duration::from_millis(75));
    }
}
