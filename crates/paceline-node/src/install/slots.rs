//! The stream indexes of a link.

use paceline_proto::wire::STREAMS_MAX;
use paceline_sched::discipline::StreamIndex;
use std::collections::BTreeSet;

/// The stream indexes of a link. The lowest free one is the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    free: BTreeSet<u32>,
    /// No index from here on was used yet.
    next: u32,
}

impl Slots {
    /// Takes a free index; `None` if all are in use.
    pub(super) fn take(&mut self) -> Option<StreamIndex> {
        if let Some(index) = self.free.pop_first() {
            return Some(StreamIndex(index));
        }
        let index = StreamIndex(self.next);
        (index.0 < STREAMS_MAX).then(|| {
            self.next += 1;
            index
        })
    }

    pub(super) fn give_back(&mut self, index: StreamIndex) {
        self.free.insert(index.0);
    }

    /// Returns the number of free indexes.
    pub(super) fn room(&self) -> usize {
        self.free.len() + STREAMS_MAX.saturating_sub(self.next) as usize
    }
}
