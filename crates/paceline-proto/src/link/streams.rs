//! The streams of a link, by index.

use super::stream::{Stream, StreamSpec};
use crate::ids::NodeId;
use crate::reason::StreamCounters;
use crate::wire::STREAMS_MAX;
use crate::wire::segment::stream_id;
use paceline_sched::discipline::StreamIndex;

/// The open streams of a link, and the sum of the closed ones.
#[derive(Debug, Default)]
pub(super) struct Streams {
    slots: Vec<Option<Stream>>,
    /// The number of streams that have used each index.
    generations: Vec<u32>,
    /// The summed counters of closed streams.
    closed: StreamCounters,
}

impl Streams {
    /// Opens a stream whose hop is up or down. Returns `false` if the index is out of range or in use.
    pub(super) fn open(&mut self, index: StreamIndex, spec: StreamSpec, up: bool) -> bool {
        if index.0 >= STREAMS_MAX || self.get(index).is_some() {
            return false;
        }
        let place = index.0 as usize;
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
            self.generations.resize(place + 1, 0);
        }
        if let (Some(slot), Some(generation)) =
            (self.slots.get_mut(place), self.generations.get_mut(place))
        {
            *slot = Some(Stream::new(spec, stream_id(index.0, *generation), up));
            *generation = generation.wrapping_add(1);
        }
        true
    }

    /// Takes a stream that is being closed. Its final counters are added with [`Self::add_closed`].
    pub(super) fn take(&mut self, index: StreamIndex) -> Option<Stream> {
        self.slots.get_mut(index.0 as usize)?.take()
    }

    /// Adds the counters of a closed stream to the sum.
    pub(super) fn add_closed(&mut self, counters: &StreamCounters) {
        self.closed.merge(counters);
    }

    /// Returns the summed counters of closed streams.
    pub(super) const fn closed(&self) -> StreamCounters {
        self.closed
    }

    pub(super) fn get(&self, index: StreamIndex) -> Option<&Stream> {
        self.slots.get(index.0 as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, index: StreamIndex) -> Option<&mut Stream> {
        self.slots.get_mut(index.0 as usize)?.as_mut()
    }

    /// Returns all indexes up to the highest one that was ever used.
    pub(super) fn indexes(&self) -> impl Iterator<Item = StreamIndex> + use<> {
        (0..self.slots.len()).map(index_of)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (StreamIndex, &Stream)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(place, slot)| Some((index_of(place), slot.as_ref()?)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (StreamIndex, &mut Stream)> {
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(place, slot)| Some((index_of(place), slot.as_mut()?)))
    }

    /// Iterates over the streams to a hop.
    pub(super) fn to(&mut self, hop: NodeId) -> impl Iterator<Item = (StreamIndex, &mut Stream)> {
        self.iter_mut().filter(move |(_, stream)| stream.spec.hop == hop)
    }

    /// Returns `true` if the stream has a contract.
    pub(super) fn is_promised(&self, index: StreamIndex) -> bool {
        self.get(index).is_some_and(|stream| stream.spec.contract.is_some())
    }

    pub(super) fn is_background(&self, index: StreamIndex) -> bool {
        self.get(index).is_some_and(|stream| stream.spec.background)
    }
}

fn index_of(place: usize) -> StreamIndex {
    StreamIndex(u32::try_from(place).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Form;
    use crate::ids::PublisherId;
    use crate::sample::Kind;

    fn to(hop: u64) -> StreamSpec {
        let publisher = PublisherId { node: NodeId(1), index: 0 };
        StreamSpec::best_effort(publisher, NodeId(hop), Form::FULL, Kind::Data)
    }

    #[test]
    fn an_index_is_reused_under_another_number_on_the_wire() {
        let (mut streams, index) = (Streams::default(), StreamIndex(2));
        assert!(streams.open(index, to(2), true) && !streams.open(index, to(3), true));
        assert!(!streams.open(StreamIndex(STREAMS_MAX), to(2), true));
        let first = streams.take(index).unwrap();
        assert!(streams.get(index).is_none() && streams.open(index, to(3), false));
        let second = streams.get(index).unwrap();
        assert_ne!(first.id, second.id);
        assert_eq!(streams.indexes().count(), 3);
        assert_eq!(streams.to(NodeId(3)).map(|(at, _)| at).collect::<Vec<_>>(), [index]);
        assert_eq!(streams.to(NodeId(2)).count(), 0);
    }
}
