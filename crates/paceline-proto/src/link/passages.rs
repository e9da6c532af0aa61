//! Ages of single samples at arrival and departure, recorded for traced streams.

use super::Link;
use crate::ids::PublisherId;
use paceline_sched::discipline::StreamIndex;
use std::collections::VecDeque;

/// The number of recorded samples per stream; older ones are discarded.
pub const PASSAGES_MAX: usize = 1_024;

/// The record of one sample on a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Passage {
    /// The publisher's sequence number.
    pub seq: u64,
    /// The age on arrival at the link, in nanoseconds.
    pub came_ns: u64,
    /// The age when its last byte left, in nanoseconds; `None` while it is queued and if it was dropped.
    pub left_ns: Option<u64>,
}

/// The last samples of a stream, in order of arrival.
#[derive(Debug)]
pub(super) struct Passages(VecDeque<Passage>);

impl Passages {
    fn new() -> Self {
        Self(VecDeque::with_capacity(PASSAGES_MAX))
    }

    pub(super) fn came(&mut self, seq: u64, came_ns: u64) {
        if self.0.len() >= PASSAGES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Passage { seq, came_ns, left_ns: None });
    }

    pub(super) fn left(&mut self, seq: u64, left_ns: u64) {
        // The sample is usually near the end: few later samples have arrived.
        if let Some(passage) = self.0.iter_mut().rev().find(|passage| passage.seq == seq) {
            passage.left_ns = Some(left_ns);
        }
    }
}

impl Link {
    /// Starts or stops recording for the open streams of a publisher.
    pub fn trace(&mut self, publisher: PublisherId, on: bool) {
        let streams = self.streams.iter_mut().map(|(_, stream)| stream);
        for stream in streams.filter(|stream| stream.spec.publisher == publisher) {
            match on {
                true => _ = stream.passages.get_or_insert_with(|| Box::new(Passages::new())),
                false => stream.passages = None,
            }
        }
    }

    /// Iterates over the recorded samples of a traced stream, oldest first. Empty for a stream that is not
    /// traced.
    pub fn passages(&self, index: StreamIndex) -> impl Iterator<Item = &Passage> {
        let traced = self.streams.get(index).and_then(|stream| stream.passages.as_ref());
        traced.into_iter().flat_map(|passages| &passages.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_samples_are_kept_with_their_departure_times() {
        let mut passages = Passages::new();
        for seq in 0..PASSAGES_MAX as u64 + 2 {
            passages.came(seq, 10 * seq);
        }
        passages.left(0, 5); // forgotten
        passages.left(7, 99);
        assert_eq!(passages.0.len(), PASSAGES_MAX);
        let first = Passage { seq: 2, came_ns: 20, left_ns: None };
        assert_eq!(passages.0.front(), Some(&first));
        let left: Vec<_> = passages.0.iter().filter(|it| it.left_ns.is_some()).collect();
        assert_eq!(left, [&Passage { seq: 7, came_ns: 70, left_ns: Some(99) }]);
    }
}
