//! Length limits of the frame that is being filled.
//!
//! A frame is delivered when its end arrives, so a sample waits for all segments in its frame. A contracted
//! sample waits for best effort at most one frame's time per hop. It spends that time either on the frame
//! that it finds in transmission, or on best effort that fills up its own frame.

use super::{Link, StreamIndex};
use paceline_sched::Instant;

/// The maximum length of a frame in bytes, by kind of content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    all: usize,
    best_effort: usize,
}

impl Limits {
    pub(super) const fn new(bytes: usize) -> Self {
        Self { all: bytes, best_effort: bytes }
    }

    /// Returns the limit for a segment with a contract, or for one of best effort.
    pub(super) fn of(self, promised: bool) -> usize {
        if promised { self.all } else { self.all.min(self.best_effort) }
    }

    /// Lowers the limit for all segments.
    pub(super) fn cut(&mut self, bytes: usize) {
        self.all = self.all.min(bytes);
    }

    /// Lowers the limit for best-effort segments.
    pub(super) fn cut_best_effort(&mut self, bytes: usize) {
        self.best_effort = self.best_effort.min(bytes);
    }
}

impl Link {
    /// Returns the length up to which best effort may extend the frame in which the head of a stream ends. It
    /// is the rest of one frame's time since the head arrived; 0 if the arrival time is unknown.
    pub(super) fn shared_bytes(&self, now: Instant, index: StreamIndex) -> usize {
        let came = self.streams.get(index).and_then(|stream| stream.head_came);
        let Some(came) = came else { return 0 };
        let begins = now.max(self.pacer.free_at());
        let left = self.pacer.wire.frame_time().saturating_sub(begins.since(came));
        self.pacer.wire.frame_within(left).unwrap_or(0)
    }
}
