//! The queue depth of contracted samples, in bytes on the wire as admission counts them.
//!
//! Admission reserves the most bytes that contracts can have queued, and so does the reported figure count: a
//! sample from its arrival until its last byte is in a frame.

use super::stream::Stream;
use super::{Link, StreamIndex};

/// The queue depth of contracted samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Depth {
    /// At least the bytes in the queues. Samples that were dropped may still be included until a new maximum
    /// seems to be reached; then the queues are counted.
    queued: u64,
    greatest: u64,
}

impl Link {
    /// Returns the greatest number of bytes of contracted samples in the queues so far, with headers.
    #[must_use]
    pub const fn greatest_depth(&self) -> u64 {
        self.depth.greatest
    }

    /// Returns at least the bytes of contracted samples in the queues, with headers. Dropped samples may still be included
    /// until [`Self::count_depth`].
    #[must_use]
    pub const fn depth(&self) -> u64 {
        self.depth.queued
    }

    /// Counts the bytes of contracted samples in the queues, with headers.
    pub fn count_depth(&mut self) -> u64 {
        self.count_queues();
        self.depth.queued
    }

    /// Counts the last sample in the queue of a stream, which has just arrived.
    pub(super) fn count_queued(&mut self, index: StreamIndex) {
        let stream = self.streams.get(index).filter(|stream| stream.spec.contract.is_some());
        let Some(bytes) = stream.map(Stream::last_on_wire) else { return };
        self.depth.queued = self.depth.queued.saturating_add(bytes);
        if self.depth.queued > self.depth.greatest {
            self.count_queues();
            self.depth.greatest = self.depth.greatest.max(self.depth.queued);
        }
    }

    /// Counts that the head of a stream is about to leave its queue.
    pub(super) fn count_leaving(&mut self, index: StreamIndex) {
        let counts = |it: &&Stream| it.spec.contract.is_some() && !it.head_is_demoted();
        let stream = self.streams.get(index).filter(counts);
        let bytes = stream.map_or(0, Stream::head_on_wire);
        self.depth.queued = self.depth.queued.saturating_sub(bytes);
    }

    /// Counts the queues of all contracted streams.
    pub(super) fn count_queues(&mut self) {
        let contracted = self.streams.iter().filter(|(_, it)| it.spec.contract.is_some());
        self.depth.queued = contracted.map(|(_, stream)| stream.promised_on_wire()).sum();
    }
}
