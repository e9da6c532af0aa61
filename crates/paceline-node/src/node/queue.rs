//! The queues between sources and a link, one per stream.

use paceline_proto::sample::RawSample;
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most samples that wait between a source and a stream of a link. A live node has a ring of this size there.
pub const STREAM_QUEUE_MAX: usize = 512;

/// The samples of a stream that wait for room in its link.
#[derive(Debug, Default)]
pub struct StreamQueue {
    /// Each with the time at which it was queued.
    pub(super) waiting: VecDeque<(Instant, RawSample)>,
    pub(super) pushed: u64,
    pub(super) lost: u64,
}

impl StreamQueue {
    /// Returns the number of samples that wait, at most [`STREAM_QUEUE_MAX`].
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of samples that sources have passed to the stream or reported as lost. The link has counted all of
    /// them but those that wait.
    #[must_use]
    pub const fn offered(&self) -> u64 {
        self.pushed + self.lost
    }
}

/// The queues of a link, by stream.
#[derive(Debug, Default)]
pub(super) struct StreamQueues {
    queues: BTreeMap<StreamIndex, StreamQueue>,
    /// Streams with a non-empty queue.
    pub(super) waiting: BTreeSet<StreamIndex>,
}

impl StreamQueues {
    /// Creates the queue of a new stream.
    pub(super) fn open(&mut self, index: StreamIndex) {
        self.queues.insert(index, StreamQueue::default());
    }

    pub(super) fn close(&mut self, index: StreamIndex) -> Option<StreamQueue> {
        self.waiting.remove(&index);
        self.queues.remove(&index)
    }

    pub(super) fn get(&self, index: StreamIndex) -> Option<&StreamQueue> {
        self.queues.get(&index)
    }

    pub(super) fn get_mut(&mut self, index: StreamIndex) -> Option<&mut StreamQueue> {
        self.queues.get_mut(&index)
    }

    pub(super) fn len(&self) -> usize {
        self.queues.len()
    }
}
