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
        let was_used = self.free.insert(index.0);
        debug_assert!(was_used, "{index:?} is free already");
    }

    /// Returns the number of free indexes.
    pub(super) fn room(&self) -> usize {
        self.free.len() + STREAMS_MAX.saturating_sub(self.next) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_index_is_the_next() {
        let mut slots = Slots::default();
        let all: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert!(all.iter().copied().eq((0..STREAMS_MAX).map(StreamIndex)));
        assert_eq!(slots.room(), 0);
        for index in [7, 3, 9] {
            slots.give_back(StreamIndex(index));
        }
        assert_eq!(slots.room(), 3);
        assert_eq!(slots.take(), Some(StreamIndex(3)));
        assert_eq!(slots.take(), Some(StreamIndex(7)));
    }
}
