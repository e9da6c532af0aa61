//! Samples and loss reports that arrive before the engine has installed their outputs.
//!
//! Control messages pass through the engine, so the first samples of a stream can be faster.

use super::super::drops::AtomicDrops;
use super::super::port::{self, Port};
use bytes::Bytes;
use paceline_proto::ingress::{Ingress, OutputKey};
use paceline_proto::memory::Charge;
use paceline_proto::plan::SourceKey;
use paceline_proto::receive::Lost;
use paceline_proto::{DropReason, Drops, NodeId, RawSample};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// The limit of buffered samples: slightly more than a neighbour sends at once for a new publisher.
const SAMPLES_MAX: usize = 512;
/// The limit of buffered bytes, within the memory for neighbours. One sample of any length always fits.
const BYTES_MAX: usize = 64 << 20;
/// Shorter samples are copied, so that they do not keep the frames of others in memory.
const COPIED_BYTES_MAX: usize = 64 << 10;
/// The limit of sources with dropped samples that can still be reported to subscribers.
const CROWDED_MAX: usize = 64;
/// The longest buffering.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// A sample or a loss report.
pub(super) enum Item {
    Sample(RawSample),
    Lost(Lost),
}

impl Item {
    fn bytes(&self) -> usize {
        if let Self::Sample(sample) = self { sample.payload.len() } else { 0 }
    }

    /// Returns the item without memory of the frame in which it has arrived.
    pub(super) fn unshared(self) -> Self {
        match self {
            Self::Sample(sample) if sample.payload.len() < COPIED_BYTES_MAX => {
                let payload = Bytes::copy_from_slice(&sample.payload);
                Self::Sample(RawSample { payload, ..sample })
            }
            Self::Sample(_) | Self::Lost(_) => self,
        }
    }

    /// Counts the item as dropped at the node.
    pub(super) fn count(&self, drops: &AtomicDrops) {
        match self {
            Self::Sample(_) => drops.add(DropReason::NoRoute, 1),
            Self::Lost(lost) => drops.add(lost.reason, lost.samples),
        }
    }

    /// Delivers the item to the outputs of its source, a loss not to those of `except`.
    pub(super) fn offer(self, ingress: &mut Ingress<Port>, now: Instant, except: &[OutputKey]) {
        match self {
            Self::Sample(sample) => {
                port::offer(
                    ingress,
                    |_| true,
                    (now, sample),
                    |port, sample| port.take(now, sample),
                );
            }
            Self::Lost(lost) => {
                ingress.handle_lost(lost.kind());
                let outputs = ingress.outputs_mut().iter_mut();
                let outputs =
                    outputs.filter(|output| output.loses(&lost) && !except.contains(&output.key));
                outputs.for_each(|output| output.port.count(lost.reason, lost.samples));
            }
        }
    }
}

/// A buffered item.
pub(super) struct Early {
    pub(super) at: Instant,
    pub(super) from: NodeId,
    pub(super) key: SourceKey,
    pub(super) item: Item,
    /// The memory of the sample.
    #[expect(dead_code, reason = "counts the memory until the item is dropped")]
    pub(super) charge: Charge,
}

/// The samples of one source that were dropped for lack of room.
struct Crowded {
    /// The time of the last drop.
    at: Instant,
    drops: Drops,
}

/// The buffered items, oldest first.
#[derive(Default)]
pub(super) struct EarlySamples {
    waiting: VecDeque<Early>,
    bytes: usize,
    /// Drops that are counted at subscriptions which start in time, and otherwise at the node.
    crowded: BTreeMap<SourceKey, Crowded>,
}

impl EarlySamples {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.crowded.is_empty()
    }

    /// Buffers an item. If there is no room, drops the oldest item of the neighbour with the most
    /// items, or with the most bytes if those are too many.
    pub(super) fn push(&mut self, early: Early, drops: &AtomicDrops) {
        self.bytes += early.item.bytes();
        self.waiting.push_back(early);
        while self.waiting.len() > 1 && (self.waiting.len() > SAMPLES_MAX || self.bytes > BYTES_MAX)
        {
            let Some(gone) = self.makes_room().and_then(|place| self.remove(place)) else { break };
            self.crowd_out(gone, drops);
        }
    }

    /// Drops items of a neighbour, oldest first, until at least `bytes` are free or none is left. Returns the bytes
    /// that it has freed.
    pub(super) fn give_back(&mut self, from: NodeId, bytes: usize, drops: &AtomicDrops) -> usize {
        let before = self.bytes;
        let next = |it: &Early| it.from == from && it.item.bytes() > 0;
        while before - self.bytes < bytes
            && let Some(place) = self.waiting.iter().position(next)
            && let Some(gone) = self.remove(place)
        {
            self.crowd_out(gone, drops);
        }
        before - self.bytes
    }

    /// Records an item dropped for lack of room.
    fn crowd_out(&mut self, gone: Early, drops: &AtomicDrops) {
        if !self.crowded.contains_key(&gone.key) && self.crowded.len() >= CROWDED_MAX {
            return gone.item.count(drops);
        }
        let new = || Crowded { at: gone.at, drops: Drops::default() };
        let its = self.crowded.entry(gone.key).or_insert_with(new);
        its.at = its.at.max(gone.at);
        match gone.item {
            Item::Sample(_) => its.drops.add(DropReason::QueueFull, 1),
            Item::Lost(lost) => its.drops.add(lost.reason, lost.samples),
        }
    }

    /// Drops and counts expired items.
    pub(super) fn expire(&mut self, now: Instant, drops: &AtomicDrops) {
        while self.waiting.front().is_some_and(|it| now.since(it.at) > WAIT_MAX) {
            self.remove(0).iter().for_each(|gone| gone.item.count(drops));
        }
        self.crowded.retain(|_, its| {
            let waits = now.since(its.at) <= WAIT_MAX;
            if !waits {
                its.drops.iter().for_each(|(reason, samples)| drops.add(reason, samples));
            }
            waits
        });
    }

    /// Removes and returns the items of a source from accepted neighbours, in order, preceded by loss
    /// reports for dropped ones. Counts the items of others.
    pub(super) fn take(
        &mut self,
        key: SourceKey,
        accepts: impl Fn(NodeId) -> bool,
        drops: &AtomicDrops,
    ) -> Vec<Item> {
        let all = std::mem::take(&mut self.waiting);
        let (its, others): (VecDeque<_>, VecDeque<_>) =
            all.into_iter().partition(|it| it.key == key);
        self.waiting = others;
        self.bytes -= its.iter().map(|it| it.item.bytes()).sum::<usize>();
        let crowded = self.crowded.remove(&key).map(|its| its.drops).unwrap_or_default();
        let lost =
            crowded.iter().map(|(reason, samples)| Item::Lost(Lost::unseen(samples, reason)));
        let (its, forged): (VecDeque<_>, VecDeque<_>) =
            its.into_iter().partition(|it| accepts(it.from));
        forged.iter().for_each(|it| it.item.count(drops));
        lost.chain(its.into_iter().map(|it| it.item)).collect()
    }

    /// Returns the item to drop: the oldest of the neighbour with the most items, or bytes.
    fn makes_room(&self) -> Option<usize> {
        let by_bytes = self.bytes > BYTES_MAX;
        let mut counts: Vec<(NodeId, usize)> = Vec::new();
        for it in &self.waiting {
            let weight = if by_bytes { it.item.bytes() } else { 1 };
            match counts.iter_mut().find(|(node, _)| *node == it.from) {
                Some((_, count)) => *count += weight,
                None => counts.push((it.from, weight)),
            }
        }
        let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        let frees = |it: &Early| it.from == most && (!by_bytes || it.item.bytes() > 0);
        self.waiting.iter().position(frees)
    }

    fn remove(&mut self, place: usize) -> Option<Early> {
        let gone = self.waiting.remove(place)?;
        self.bytes -= gone.item.bytes();
        Some(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::ingress::Stamper;
    use paceline_proto::memory::MemoryKind;
    use paceline_proto::{Encoding, Form, Kind, PublisherId, Timestamp};

    fn early(stamper: &mut Stamper, from: u64, bytes: usize) -> Early {
        let (now, captured) = (Instant::ZERO, Timestamp { nanos: 0, error: 0 });
        let payload = Bytes::from(vec![0; bytes]);
        let sample = stamper.stamp(now, captured, Kind::Data, Encoding::Bytes, payload);
        let publisher = PublisherId { node: NodeId(from), index: 0 };
        let (key, item) = (SourceKey { publisher, form: Form::FULL }, Item::Sample(sample));
        let charge = Charge::uncounted(MemoryKind::Samples);
        Early { at: now, from: NodeId(from), key, item, charge }
    }

    /// Returns the number of samples lost before the buffered ones, and the sequence numbers of
    /// those.
    fn take(samples: &mut EarlySamples, from: u64) -> (u64, Vec<u64>) {
        let publisher = PublisherId { node: NodeId(from), index: 0 };
        let (mut lost, mut waited) = (0, Vec::new());
        for item in samples.take(
            SourceKey { publisher, form: Form::FULL },
            |_| true,
            &AtomicDrops::default(),
        ) {
            match item {
                Item::Sample(sample) => waited.push(sample.seq),
                Item::Lost(gone) => {
                    assert_eq!((gone.reason, waited.len()), (DropReason::QueueFull, 0));
                    lost += gone.samples;
                }
            }
        }
        (lost, waited)
    }

    #[test]
    fn the_largest_sender_makes_room() {
        let (mut samples, mut loud, mut quiet) = Default::default();
        let samples: &mut EarlySamples = &mut samples;
        let drops = AtomicDrops::default();
        samples.push(early(&mut quiet, 1, 10), &drops);
        for _ in 0..SAMPLES_MAX + 9 {
            samples.push(early(&mut loud, 2, 10), &drops);
        }
        assert_eq!(take(samples, 1), (0, vec![0]));
        assert_eq!(take(samples, 2), (10, (10..SAMPLES_MAX as u64 + 9).collect()));
        assert_eq!(drops.load().total(), 0, "each is counted at its subscriber");
        assert_eq!((samples.bytes, samples.is_empty()), (0, true));
    }

    #[test]
    fn the_neighbour_with_the_most_bytes_makes_room_for_them() {
        let mut samples = EarlySamples::default();
        let (mut large, mut honest) = (Stamper::default(), Stamper::default());
        let drops = AtomicDrops::default();
        for _ in 0..100 {
            samples.push(early(&mut honest, 1, 10), &drops);
        }
        samples.push(early(&mut large, 2, BYTES_MAX - 500), &drops);
        assert_eq!(take(&mut samples, 1), (0, (0..100).collect()));
        assert_eq!(take(&mut samples, 2), (1, Vec::new()));
        samples.push(early(&mut honest, 1, 10), &drops);
        samples.push(early(&mut large, 2, 1_000), &drops);
        assert_eq!(samples.give_back(NodeId(2), 10, &drops), 1_000);
        assert_eq!(take(&mut samples, 1), (0, vec![100]));
    }

    #[test]
    fn sources_with_dropped_samples_are_bounded() {
        let (mut samples, drops) = (EarlySamples::default(), AtomicDrops::default());
        for from in 0..1_000 {
            let item = early(&mut Stamper::default(), from, 10);
            samples.crowd_out(item, &drops);
        }
        assert_eq!(samples.crowded.len(), CROWDED_MAX);
        assert_eq!(drops.load().total(), 1_000 - CROWDED_MAX as u64);
    }

    #[test]
    fn early_samples_are_bounded_in_bytes_and_time() {
        let (mut samples, mut stamper) = (EarlySamples::default(), Stamper::default());
        let drops = AtomicDrops::default();
        let dropped = |reason| drops.load().of(reason);
        samples.push(early(&mut stamper, 1, BYTES_MAX + 1), &drops);
        assert_eq!(samples.waiting.len(), 1);
        samples.push(early(&mut stamper, 1, 1), &drops);
        assert_eq!(samples.waiting.len(), 1);
        samples.expire(Instant::ZERO + WAIT_MAX, &drops);
        assert_eq!(drops.load().total(), 0);
        samples.expire(Instant::ZERO + WAIT_MAX + WAIT_MAX, &drops);
        assert_eq!((dropped(DropReason::NoRoute), dropped(DropReason::QueueFull)), (1, 1));
        assert_eq!((samples.bytes, samples.is_empty()), (0, true));
    }
}
