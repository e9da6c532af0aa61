//! How many paths are asked at once.
//!
//! Thousands of requests over a thin link would wait in its queue for longer than anybody waits for an answer,
//! and then again, until nothing is ever answered in time. So the number that wait for an answer is bounded,
//! halves when answers stay away, and grows by one with each that comes, as TCP's window does (RFC 5681).

use paceline_sched::{Duration, Instant};

/// So many paths are asked and have not answered yet at most …
const MOST: usize = 128;
/// … and so many at once always may.
const LEAST: usize = 8;
/// What stays away within this counts as one.
const ONCE: Duration = Duration::from_secs(1);
/// Who waits for a turn looks again after this, if no answer came before.
pub(super) const TURN: Duration = Duration::from_millis(100);

/// How many may be asked now.
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

    /// So many have not answered yet.
    pub(super) fn count(&mut self, pending: usize) {
        self.pending = pending;
    }

    /// Takes a turn if there is one. Those who were asked before, `again`, do not keep the others from it.
    pub(super) fn take(&mut self, again: bool) -> bool {
        let most = if again { self.window / 2 } else { self.window };
        let may = self.pending < most;
        self.pending += usize::from(may);
        may
    }

    /// An answer came.
    pub(super) fn answered(&mut self) {
        self.window = (self.window + 1).min(MOST);
    }

    /// No answer came in time.
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
    fn silence_halves_and_answers_restore() {
        let mut turns = Turns::new();
        let mut now = Instant::from_millis(10_000);
        let taken = |turns: &mut Turns, again| {
            turns.count(0);
            (0..1_000).filter(|_| turns.take(again)).count()
        };
        assert_eq!((taken(&mut turns, false), taken(&mut turns, true)), (128, 64));
        (0..10).for_each(|_| turns.unanswered(now));
        assert_eq!(taken(&mut turns, false), 64, "they were asked together");
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
