//! The backlog of samples that can no longer arrive in time, which a link drops in bounded portions.

use super::stream::Queued;
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;
use std::collections::VecDeque;

/// The maximum number of late samples that a link drops per iteration. Video pictures that depend on them may
/// be dropped in addition, at most the queue of one stream.
pub const MISSES_PER_TURN: usize = 512;

/// The progress of an iteration with late samples.
#[derive(Debug)]
pub(super) struct Backlog {
    /// The number of samples that this iteration may still drop.
    left: usize,
    /// The iteration ended with misses left.
    behind: bool,
    /// The start of the iteration.
    begun: Instant,
    /// Counted samples of closed or down streams that are not yet freed.
    gone: Vec<VecDeque<Queued>>,
    /// Streams whose head missed its deadline here and stays queued, each once.
    late: Vec<StreamIndex>,
}

impl Default for Backlog {
    fn default() -> Self {
        let (left, behind, begun) = (MISSES_PER_TURN, false, Instant::ZERO);
        Self { left, behind, begun, gone: Vec::new(), late: Vec::new() }
    }
}

impl Backlog {
    /// Starts an iteration with a new portion.
    pub(super) fn begin_turn(&mut self, now: Instant) {
        (self.left, self.begun) = (MISSES_PER_TURN, now);
        for _ in 0..MISSES_PER_TURN {
            let Some(last) = self.gone.last_mut() else { return };
            if last.pop_front().is_none() {
                self.gone.pop();
            }
        }
    }

    /// Returns `true` if the iteration ended with misses left.
    pub(super) const fn is_behind(&self) -> bool {
        self.behind
    }

    /// Notes whether misses are left.
    pub(super) const fn set_behind(&mut self, behind: bool) {
        self.behind = behind;
    }

    /// Returns `true` if the iteration may drop another sample.
    pub(super) const fn has_room(&self) -> bool {
        self.left > 0
    }

    /// Counts one dropped sample. If the portion is used up, returns `false` and notes that misses are left.
    pub(super) const fn take_one(&mut self) -> bool {
        self.behind |= self.left == 0;
        let has_room = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_room
    }

    /// Counts dropped samples against the portion, without an effect on whether misses are left.
    pub(super) const fn spend(&mut self, samples: usize) {
        self.left = self.left.saturating_sub(samples);
    }

    /// Adds a stream whose head missed its deadline here and stays queued.
    pub(super) fn note_late(&mut self, index: StreamIndex) {
        self.late.push(index);
    }

    /// Returns the stream at `place` of those with a late head.
    pub(super) fn late_at(&self, place: usize) -> Option<StreamIndex> {
        self.late.get(place).copied()
    }

    /// Removes the stream at `place` from those with a late head; the last one takes its place.
    pub(super) fn forget_late(&mut self, place: usize) {
        self.late.swap_remove(place);
    }

    /// Takes samples that are already counted, to free them in portions.
    pub(super) fn free_later(&mut self, gone: VecDeque<Queued>) {
        if !gone.is_empty() {
            self.gone.push(gone);
        }
    }

    /// Returns `true` if the next iteration is due at once.
    pub(super) const fn is_due(&self) -> bool {
        self.behind || !self.gone.is_empty()
    }

    /// Counts dropped samples against the portion. If they exceed it, the next iteration is due at once.
    pub(super) const fn note_dropped(&mut self, samples: usize) {
        self.behind |= samples > self.left;
        self.left = self.left.saturating_sub(samples);
    }

    /// Starts an iteration if time has passed, for callers that only poll for frames.
    pub(super) fn continue_turn(&mut self, now: Instant) {
        if now > self.begun {
            self.begin_turn(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_drops_a_portion_and_the_next_one_another() {
        let mut backlog = Backlog::default();
        assert!((0..MISSES_PER_TURN).all(|_| backlog.take_one()));
        assert!(!backlog.has_room() && !backlog.is_due());
        assert!(!backlog.take_one());
        assert!(backlog.is_behind() && backlog.is_due());
        backlog.continue_turn(Instant::ZERO);
        assert!(!backlog.has_room(), "no time has passed");
        backlog.continue_turn(Instant::from_millis(1));
        assert!(backlog.has_room());
    }

    #[test]
    fn only_samples_beyond_the_portion_leave_it_behind() {
        let mut backlog = Backlog::default();
        backlog.note_dropped(MISSES_PER_TURN);
        assert!(!backlog.is_behind());
        backlog.note_dropped(1);
        assert!(backlog.is_behind());
    }
}
