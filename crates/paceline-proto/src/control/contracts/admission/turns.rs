//! Limits the number of path requests in flight.
//!
//! Thousands of requests would queue on a thin link for longer than their timeout. The retries would queue
//! again, so no answer would ever arrive in time. Therefore the number of unanswered requests is limited by a
//! window. It halves when answers time out and grows by one with each answer, as in TCP congestion control
//! (RFC 5681).

use paceline_sched::{Duration, Instant};

/// The largest window, in requests.
const MOST: usize = 128;
/// The smallest window, in requests.
const LEAST: usize = 8;
/// All timeouts within this period halve the window only once.
const ONCE: Duration = Duration::from_secs(1);
/// The interval at which pairs without a slot try again, if no answer arrives earlier.
pub(super) const TURN: Duration = Duration::from_millis(100);

/// A congestion window for path requests.
#[derive(Debug)]
pub(super) struct Turns {
    window: usize,
    pending: usize,
    halved_at: Option<Instant>,
}

impl Turns {
    pub(super) const fn new() -> Self {
        Self { window: MOST, pending: 0, halved_at: None }
    }

    /// Sets the number of unanswered requests.
    pub(super) fn count(&mut self, pending: usize) {
        self.pending = pending;
    }

    /// Takes a slot of the window, if one is free. Repeated requests (`again`) may use only half of the
    /// window, so they do not block new ones.
    pub(super) fn take(&mut self, again: bool) -> bool {
        let most = if again { self.window / 2 } else { self.window };
        let may = self.pending < most;
        self.pending += usize::from(may);
        may
    }

    /// Returns a slot whose request was not sent.
    pub(super) fn give_back(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }

    /// Grows the window after an answer.
    pub(super) fn answered(&mut self) {
        self.window = (self.window + 1).min(MOST);
    }

    /// Halves the window after a timeout.
    pub(super) fn unanswered(&mut self, now: Instant) {
        if self.halved_at.is_none_or(|at| now >= at + ONCE) {
            self.window = (self.window / 2).max(LEAST);
            self.halved_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_halves_the_rate_and_answers_restore_it() {
        let mut turns = Turns::new();
        let mut now = Instant::from_millis(10_000);
        let taken = |turns: &mut Turns, again| {
            turns.count(0);
            (0..1_000).filter(|_| turns.take(again)).count()
        };
        assert_eq!((taken(&mut turns, false), taken(&mut turns, true)), (128, 64));
        (0..10).for_each(|_| turns.unanswered(now));
        assert_eq!(taken(&mut turns, false), 64, "they were asked in one batch");
        for _ in 0..10 {
            now += ONCE;
            turns.unanswered(now);
        }
        assert_eq!(taken(&mut turns, false), LEAST);
        (0..10).for_each(|_| turns.answered());
        assert_eq!(taken(&mut turns, false), LEAST + 10);
        (0..1_000).for_each(|_| turns.answered());
        assert_eq!(taken(&mut turns, false), MOST);
    }
}
