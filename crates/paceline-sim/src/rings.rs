//! The queues between sources and a link, one per stream.

use paceline_proto::sample::RawSample;
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;
use std::collections::{BTreeSet, VecDeque};

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
    slots: Vec<Option<Ring>>,
    free: BTreeSet<u32>,
    /// Streams with a non-empty ring.
    pub(super) waiting: BTreeSet<StreamIndex>,
}

impl Rings {
    /// Returns the lowest unused index.
    pub(super) fn free_index(&self) -> StreamIndex {
        let beyond = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        StreamIndex(self.free.first().copied().unwrap_or(beyond))
    }

    /// Creates a ring at [`Self::free_index`].
    pub(super) fn open(&mut self) {
        match self.free.pop_first() {
            Some(index) => {
                if let Some(slot) = self.slots.get_mut(index as usize) {
                    *slot = Some(Ring::default());
                }
            }
            None => self.slots.push(Some(Ring::default())),
        }
    }

    pub(super) fn close(&mut self, index: StreamIndex) -> Option<Ring> {
        let ring = self.slots.get_mut(index.0 as usize)?.take()?;
        self.free.insert(index.0);
        self.waiting.remove(&index);
        Some(ring)
    }

    pub(super) fn get(&self, index: StreamIndex) -> Option<&Ring> {
        self.slots.get(index.0 as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, index: StreamIndex) -> Option<&mut Ring> {
        self.slots.get_mut(index.0 as usize)?.as_mut()
    }

    /// Returns the number of rings.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_index_is_reused() {
        let mut rings = Rings::default();
        (0..4).for_each(|_| rings.open());
        assert_eq!((rings.len(), rings.free_index()), (4, StreamIndex(4)));
        assert!(rings.close(StreamIndex(2)).is_some() && rings.close(StreamIndex(1)).is_some());
        assert!(rings.close(StreamIndex(1)).is_none() && rings.get(StreamIndex(2)).is_none());
        assert_eq!((rings.len(), rings.free_index()), (2, StreamIndex(1)));
        rings.open();
        assert!(rings.get(StreamIndex(1)).is_some() && rings.free_index() == StreamIndex(2));
    }
}
