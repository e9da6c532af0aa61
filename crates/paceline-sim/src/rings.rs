//! The queues between sources and a link, one per stream.

use paceline_proto::sample::RawSample;
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most samples queued between a source and its link, as in the shell's rings.
pub(super) const RING_MAX: usize = 512;

/// A stream's queue before its link.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// Queued samples, each with the time at which it was queued.
    pub(super) waiting: VecDeque<(Instant, RawSample)>,
    /// Samples that arrived, and samples dropped because the ring was full.
    pub(super) pushed: u64,
    pub(super) full: u64,
    /// Samples counted as lost upstream.
    pub(super) lost: u64,
}

/// The rings of a link, by stream.
#[derive(Debug, Default)]
pub(super) struct Rings {
    rings: BTreeMap<StreamIndex, Ring>,
    /// Streams with a non-empty ring.
    pub(super) waiting: BTreeSet<StreamIndex>,
}

impl Rings {
    /// Creates the ring of a new stream.
    pub(super) fn open(&mut self, index: StreamIndex) {
        self.rings.insert(index, Ring::default());
    }

    pub(super) fn close(&mut self, index: StreamIndex) -> Option<Ring> {
        self.waiting.remove(&index);
        self.rings.remove(&index)
    }

    pub(super) fn get(&self, index: StreamIndex) -> Option<&Ring> {
        self.rings.get(&index)
    }

    pub(super) fn get_mut(&mut self, index: StreamIndex) -> Option<&mut Ring> {
        self.rings.get_mut(&index)
    }

    /// Returns the number of rings.
    pub(super) fn len(&self) -> usize {
        self.rings.len()
    }
}
