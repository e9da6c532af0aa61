//! How long the frame that is being filled may become.
//!
//! A frame arrives when its end does, so what shares it with a sample waits for the others. What has a contract
//! waits for best effort no longer than the time of one frame at a hop: in the frame that it finds on the wire,
//! or, where it found less than one, in what fills its own up.

use super::{Link, StreamIndex, off_wire};
use paceline_sched::Instant;

/// How many bytes the frame may have, by what is put into it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    all: usize,
    best_effort: usize,
}

impl Limits {
    pub(super) const fn new(bytes: usize) -> Self {
        Self { all: bytes, best_effort: bytes }
    }

    /// For a segment with a contract, or for one of best effort.
    pub(super) fn of(self, promised: bool) -> usize {
        if promised { self.all } else { self.all.min(self.best_effort) }
    }

    /// The frame becomes no longer than this, nor than it was to become.
    pub(super) fn cut(&mut self, bytes: usize) {
        self.all = self.all.min(bytes);
    }

    /// Best effort makes it no longer than this.
    pub(super) fn cut_best_effort(&mut self, bytes: usize) {
        self.best_effort = self.best_effort.min(bytes);
    }
}

impl Link {
    /// How long best effort may make the frame in which the head of a stream ends, if it is put in now: what is
    /// left of the time of one frame since the head came. Nothing where that is not known.
    pub(super) fn shared_bytes(&self, now: Instant, index: StreamIndex) -> usize {
        let came = self.stream(index).and_then(|stream| stream.head_came);
        let Some((came, capacity)) = came.zip(self.spec.capacity) else { return 0 };
        let begins = now.max(self.pacer.free_at());
        let left = self.frame_time().saturating_sub(begins.since(came));
        usize::try_from(off_wire(capacity.bytes_in(left))).unwrap_or(usize::MAX)
    }

    pub(super) fn is_promised(&self, index: StreamIndex) -> bool {
        self.stream(index).is_some_and(|stream| stream.spec.contract.is_some())
    }
}
