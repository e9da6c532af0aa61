//! The acknowledgement that the other end of a hop is owed.

use crate::wire::ack::Ack;
use paceline_sched::{Duration, Instant};

/// The acknowledgement of the other end's frames, and the time at which it is due.
#[derive(Debug)]
pub(super) struct Answer {
    ack: Option<Ack>,
    /// `ack` has not been sent yet.
    is_new: bool,
    due: Instant,
    /// The arrival time of the newest frame that `ack` covers.
    since: Instant,
    /// The longest delay, so that one acknowledgement answers several frames.
    within: Duration,
}

impl Answer {
    pub(super) const fn new(now: Instant, within: Duration) -> Self {
        Self { ack: None, is_new: false, due: Instant::FAR, since: now, within }
    }

    /// Returns the longest delay.
    pub(super) const fn within(&self) -> Duration {
        self.within
    }

    /// Sets the longest delay.
    pub(super) const fn set_within(&mut self, within: Duration) {
        self.within = within;
    }

    /// Forgets the frames of the other end, which has restarted.
    pub(super) const fn forget(&mut self) {
        self.ack = None;
    }

    /// Makes an answer due, with or without an acknowledgement.
    pub(super) const fn request(&mut self, now: Instant) {
        self.due = now;
    }

    /// Records the frames that have arrived. An answer that `is_requested` may wait if `may_wait` and a frame arrived in
    /// order: the other end should learn of a gap, which may be a loss, at once.
    pub(super) fn note(&mut self, now: Instant, ack: Ack, is_requested: bool, may_wait: bool) {
        let is_next = ack.end() == self.ack.map_or(0, |before| before.end()) + 1;
        let has_changed = self.ack != Some(ack);
        if has_changed {
            self.since = now;
        }
        self.is_new |= is_requested || has_changed;
        self.ack = Some(ack);
        if is_requested {
            let delay = if may_wait && is_next { self.within } else { Duration::ZERO };
            self.due = self.due.min(now + delay);
        }
    }

    /// Returns the time at which it is due; [`Instant::FAR`] if none was requested.
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Returns the acknowledgement, if it has not been sent.
    pub(super) const fn unsent(&self) -> Option<Ack> {
        if self.is_new { self.ack } else { None }
    }

    /// Returns the acknowledgement for a frame that is sent.
    pub(super) const fn take(&mut self) -> Option<Ack> {
        self.due = Instant::FAR;
        self.is_new = false;
        self.ack
    }

    /// Returns the time since the arrival of the newest frame that it covers.
    pub(super) fn held(&self, now: Instant) -> Duration {
        now.since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_waits_for_more_frames_unless_one_is_missing() {
        let at = Instant::from_millis;
        let within = Duration::from_millis(5);
        let mut answer = Answer::new(at(0), within);
        assert_eq!((answer.due(), answer.unsent()), (Instant::FAR, None));
        answer.note(at(10), Ack::of_all_below(1), true, true);
        answer.note(at(12), Ack::of_all_below(2), true, true);
        assert_eq!((answer.due(), answer.held(at(13))), (at(15), Duration::from_millis(1)));
        assert_eq!(answer.take(), Some(Ack::of_all_below(2)));
        // Frame 2 is missing: the first frame after it is answered at once, the following ones wait again.
        let gap = |ahead, newest| Ack::new(2, ahead, newest).unwrap();
        answer.note(at(20), gap(2, 0b1), true, true);
        assert_eq!((answer.due(), answer.take()), (at(20), Some(gap(2, 0b1))));
        answer.note(at(21), gap(3, 0b11), true, true);
        assert_eq!(answer.due(), at(26));
        // A frame that was overtaken, and a request that is repeated, are answered at once.
        answer.note(at(22), Ack::of_all_below(5), true, true);
        assert_eq!((answer.due(), answer.take()), (at(22), Some(Ack::of_all_below(5))));
        answer.note(at(23), Ack::of_all_below(5), true, true);
        assert_eq!((answer.due(), answer.unsent()), (at(23), Some(Ack::of_all_below(5))));
        answer.take();
        answer.note(at(24), Ack::of_all_below(6), true, false);
        assert_eq!(answer.due(), at(24), "it may not wait");
    }
}
