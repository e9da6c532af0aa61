//! The counters of the streams that arrive at a node.

use crate::lookup::Lookup;
use crate::outlet::StreamKey;
use paceline_proto::reason::Drops;

/// Counters of the arrivals of one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrived {
    pub(super) whole: u64,
    pub(super) lost: Drops,
}

/// The counters of all streams. Their index spares a lookup per sample.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    counters: Vec<Arrived>,
    indices: Lookup<StreamKey, usize>,
}

impl Arrivals {
    /// Returns the index of a stream's counters.
    pub(super) fn index(&mut self, stream: StreamKey) -> usize {
        let next = self.counters.len();
        let index = *self.indices.entry(stream).or_insert(next);
        if index == next {
            self.counters.push(Arrived::default());
        }
        index
    }

    /// Returns the counters with this index.
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Arrived> {
        self.counters.get_mut(index)
    }

    /// Returns the counters of a stream, which are 0 before its first sample.
    pub(super) fn of(&self, stream: StreamKey) -> Arrived {
        let index = self.indices.get(&stream).and_then(|index| self.counters.get(*index));
        index.copied().unwrap_or_default()
    }
}
