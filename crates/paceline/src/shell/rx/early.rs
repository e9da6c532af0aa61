//! Samples, and the news of lost ones, that arrive before the engine has installed their outputs.
//!
//! Control takes the way through the engine, so the first samples of a stream may be here before it.

use super::super::port::Port;
use super::super::sink::AtomicDrops;
use paceline_proto::control::SourceKey;
use paceline_proto::ingress::Ingress;
use paceline_proto::{DropReason, Kind, NodeId, Sample};
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// As many as a neighbour sends at once when it opens a publisher, and some more.
const SAMPLES_MAX: usize = 512;
/// Their bytes. One sample may always wait, whatever its length.
const BYTES_MAX: usize = 64 << 20;
/// How long they wait.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// A sample, or the news that samples were lost.
pub(super) enum Item {
    Sample(Sample),
    Lost(u64, DropReason, Option<Kind>),
}

impl Item {
    fn bytes(&self) -> usize {
        if let Self::Sample(sample) = self { sample.payload.len() } else { 0 }
    }

    /// Nobody wants it: counts it.
    pub(super) fn count(&self, drops: &AtomicDrops) {
        match self {
            Self::Sample(_) => drops.add(DropReason::NoRoute, 1),
            Self::Lost(samples, reason, _) => drops.add(*reason, *samples),
        }
    }

    /// Hands it to the outputs of its source.
    pub(super) fn offer(self, ingress: &mut Ingress<Port>, now: Instant) {
        match self {
            Self::Sample(sample) => {
                ingress.offer(sample, |output, sample| output.port.take(now, sample));
            }
            Self::Lost(samples, reason, kind) => {
                ingress.handle_lost(kind);
                ingress.outputs().iter().for_each(|o| o.port.count(reason, samples));
            }
        }
    }
}

/// An item that waits.
pub(super) struct Early {
    pub(super) at: Instant,
    pub(super) from: NodeId,
    pub(super) key: SourceKey,
    pub(super) item: Item,
}

/// Those that wait, oldest first.
#[derive(Default)]
pub(super) struct EarlySamples {
    waiting: VecDeque<Early>,
    bytes: usize,
}

impl EarlySamples {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Has an item wait. What is dropped to make room is counted.
    pub(super) fn push(&mut self, early: Early, drops: &AtomicDrops) {
        self.bytes += early.item.bytes();
        self.waiting.push_back(early);
        while self.waiting.len() > 1 && (self.waiting.len() > SAMPLES_MAX || self.bytes > BYTES_MAX)
        {
            let Some(place) = self.makes_room() else { break };
            self.remove(place, drops);
        }
    }

    /// Drops and counts those that have waited for too long.
    pub(super) fn expire(&mut self, now: Instant, drops: &AtomicDrops) {
        while self.waiting.front().is_some_and(|it| now.since(it.at) > WAIT_MAX) {
            self.remove(0, drops);
        }
    }

    /// Takes out the items of a source, in order.
    pub(super) fn take(&mut self, key: SourceKey) -> impl Iterator<Item = Item> + use<> {
        let all = std::mem::take(&mut self.waiting);
        let (its, others): (VecDeque<_>, VecDeque<_>) =
            all.into_iter().partition(|it| it.key == key);
        self.waiting = others;
        self.bytes -= its.iter().map(|it| it.item.bytes()).sum::<usize>();
        its.into_iter().map(|it| it.item)
    }

    /// Which of them makes room: the oldest of the neighbour that has most of them.
    fn makes_room(&self) -> Option<usize> {
        let mut counts: Vec<(NodeId, usize)> = Vec::new();
        for it in &self.waiting {
            match counts.iter_mut().find(|(node, _)| *node == it.from) {
                Some((_, count)) => *count += 1,
                None => counts.push((it.from, 1)),
            }
        }
        let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        self.waiting.iter().position(|it| it.from == most)
    }

    fn remove(&mut self, place: usize, drops: &AtomicDrops) {
        let Some(gone) = self.waiting.remove(place) else { return };
        self.bytes -= gone.item.bytes();
        gone.item.count(drops);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use paceline_proto::ingress::Stamper;
    use paceline_proto::{Encoding, Form, Kind, PublisherId, Timestamp};

    fn early(stamper: &mut Stamper, from: u64, bytes: usize) -> Early {
        let (now, captured) = (Instant::ZERO, Timestamp { nanos: 0, error: 0 });
        let payload = Bytes::from(vec![0; bytes]);
        let sample = stamper.stamp(now, captured, Kind::Data, Encoding::Bytes, payload);
        let publisher = PublisherId { node: NodeId(from), index: 0 };
        let (key, item) = (SourceKey { publisher, form: Form::FULL }, Item::Sample(sample));
        Early { at: now, from: NodeId(from), key, item }
    }

    fn take(samples: &mut EarlySamples, from: u64) -> Vec<u64> {
        let publisher = PublisherId { node: NodeId(from), index: 0 };
        let its = samples.take(SourceKey { publisher, form: Form::FULL });
        let seq = |item| if let Item::Sample(sample) = item { Some(sample.seq) } else { None };
        its.filter_map(seq).collect()
    }

    #[test]
    fn whoever_sends_most_makes_room() {
        let (mut samples, mut loud, mut quiet) = Default::default();
        let samples: &mut EarlySamples = &mut samples;
        let drops = AtomicDrops::default();
        samples.push(early(&mut quiet, 1, 10), &drops);
        for n in 0..SAMPLES_MAX + 9 {
            samples.push(early(&mut loud, 2, 10), &drops);
            let dropped = (n + 2).saturating_sub(SAMPLES_MAX) as u64;
            assert_eq!(drops.load().of(DropReason::NoRoute), dropped);
        }
        assert_eq!(take(samples, 1), [0]);
        assert!(take(samples, 2).into_iter().eq(10..SAMPLES_MAX as u64 + 9));
        assert_eq!((samples.bytes, samples.is_empty()), (0, true));
    }

    #[test]
    fn their_bytes_and_their_time_are_bounded() {
        let (mut samples, mut stamper) = (EarlySamples::default(), Stamper::default());
        let drops = AtomicDrops::default();
        let dropped = || drops.load().of(DropReason::NoRoute);
        samples.push(early(&mut stamper, 1, BYTES_MAX + 1), &drops);
        assert_eq!(dropped(), 0);
        samples.push(early(&mut stamper, 1, 1), &drops);
        assert_eq!(dropped(), 1);
        samples.expire(Instant::ZERO + WAIT_MAX, &drops);
        assert_eq!(dropped(), 1);
        samples.expire(Instant::ZERO + WAIT_MAX + WAIT_MAX, &drops);
        assert_eq!(dropped(), 2);
        assert_eq!((samples.bytes, samples.is_empty()), (0, true));
    }
}
