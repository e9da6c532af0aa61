//! How long the frame that is being filled may become.
//!
//! A frame arrives when its end does, so what shares it with a sample waits for the others. What has a contract
//! waits for best effort no longer than the time of one frame at a hop: in the frame that it finds on the wire,
//! or, where it found less than one, in what fills its own up.

use super::repair::Next;
use super::{Link, StreamIndex, off_wire, on_wire};
use crate::ids::NodeId;
use paceline_sched::{Instant, Scheduler};

/// What the headers of a frame and of a sample in it take.
const HEADS_BYTES: u64 = 64;
/// So many messages of control are looked at: there are rarely two.
const MESSAGES: usize = 8;

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

impl super::Neighbour {
    /// Bytes of control that wait, of the first few messages.
    fn control_waiting(&self) -> u64 {
        let messages: usize = self.control.iter().take(MESSAGES).map(bytes::Bytes::len).sum();
        messages.saturating_sub(self.control_sent) as u64
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

    /// Control for `node` stays out of the next frame, since with it the next sample with a contract would be late.
    /// Admission leaves control its share, but no sample the time for a whole message of it. One frame at a
    /// time: contracts that are too many for the link must not silence it.
    pub(super) fn gives_way(&mut self, now: Instant, node: NodeId) -> bool {
        if core::mem::take(&mut self.gave_way) || self.spec.capacity.is_none() {
            return false;
        }
        let Some((_, Next::Head(index))) = self.next_work(now) else { return false };
        let due = self.discipline.deadline(index);
        let Some((due, stream)) = due.zip(self.stream(index)) else { return false };
        let sample = stream.head_left() as u64;
        let waiting = self.neighbours.get(&node).map_or(0, super::Neighbour::control_waiting);
        // The sample may have to wait for a frame of its own.
        let wire = on_wire(waiting.min(self.frame_bytes)) + on_wire(sample + HEADS_BYTES);
        self.gave_way = now + self.pacer.wire_time(wire) > due;
        self.gave_way
    }

    pub(super) fn is_promised(&self, index: StreamIndex) -> bool {
        self.stream(index).is_some_and(|stream| stream.spec.contract.is_some())
    }
}
