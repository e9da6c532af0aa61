use super::early::{BYTES_MAX, CROWDED_MAX, EarlyItem, EarlyItems, SAMPLES_MAX, WAIT_MAX};
use super::*;
use bytes::Bytes;
use paceline_proto::form::Rate;
use paceline_proto::ingress::{Output, Stamper};
use paceline_proto::memory::MemoryKind;
use paceline_proto::plan::{OutputPlan, Target};
use paceline_proto::receive::Lost;
use paceline_proto::{DropReason, Drops, Encoding, Kind, Timestamp};
use std::num::NonZeroU32;

const HOP: NodeId = NodeId(1);
const OTHER: NodeId = NodeId(4);
const PUBLISHER: PublisherId = PublisherId { node: NodeId(2), index: 0 };
const NOW: Instant = Instant::from_millis(5_000);

/// A driver whose ports are numbers: the samples that left by each, the drops of each, and the drops of the node.
#[derive(Default)]
struct Left {
    samples: BTreeMap<usize, Vec<u64>>,
    drops: BTreeMap<usize, Drops>,
    unrouted: Drops,
}

impl Outputs<usize> for Left {
    fn offer(&mut self, now: Instant, ingress: &mut Ingress<usize>, sample: RawSample) {
        ingress.offer(now, sample, |output, sample| {
            let Ok(sample) = sample else { return false };
            self.samples.entry(output.port).or_default().push(sample.seq);
            true
        });
    }

    fn count(&mut self, output: &mut Output<usize>, reason: DropReason, samples: u64) {
        self.drops.entry(output.port).or_default().add(reason, samples);
    }

    fn count_unrouted(&mut self, _: PublisherId, reason: DropReason, samples: u64) {
        self.unrouted.add(reason, samples);
    }
}

/// The arrivals of a node, and the samples that left.
#[derive(Default)]
struct Node {
    arrivals: ArrivingStreams<usize>,
    left: Left,
}

impl Node {
    /// Adds a change of a stream: one output, which ends with the first sample of `until`. It is new if `port` is given.
    fn change(&mut self, key: SourceKey, until: Option<SourceKey>, port: Option<usize>) {
        self.change_at((NOW, key), vec![HOP], until, port);
    }

    fn change_at(
        &mut self,
        (at, key): (Instant, SourceKey),
        from: Vec<NodeId>,
        until: Option<SourceKey>,
        port: Option<usize>,
    ) {
        let until = until.map(|key| key.form);
        let plan = OutputPlan { until, ..OutputPlan::new(Target::Hop(NodeId(3)), source(6).form) };
        let (is_replaced, entry) = (until.is_some(), Vec::new());
        let change = Arrangement { key, at, period: None, from, entry, is_replaced };
        self.arrivals.arrange(at, change).install(&[plan], |_| port, |_, _| ());
    }

    fn settle(&mut self) {
        self.arrivals.settle(NOW, &mut self.left);
    }

    fn take<const N: usize>(&mut self, items: [(SourceKey, ArrivedItem); N]) {
        items.into_iter().for_each(|(key, item)| self.take_from(NOW, HOP, key, item));
    }

    fn take_from(&mut self, now: Instant, from: NodeId, key: SourceKey, item: ArrivedItem) {
        let waits = || Some(Charge::uncounted(MemoryKind::Samples));
        self.arrivals.handle_item(now, (from, key), item, waits, &mut self.left);
    }

    fn left(&self, port: usize) -> &[u64] {
        self.left.samples.get(&port).map_or(&[], Vec::as_slice)
    }

    fn drops(&self, port: usize) -> Drops {
        self.left.drops.get(&port).copied().unwrap_or_default()
    }
}

/// Returns the stream that carries one in `n` samples of the publisher.
fn source(n: u32) -> SourceKey {
    let rate = NonZeroU32::new(n).map_or(Rate::ALL, Rate::every);
    SourceKey { publisher: PUBLISHER, form: Form { rate, ..Form::FULL } }
}

fn sample(key: SourceKey, seq: u64) -> (SourceKey, ArrivedItem) {
    let sample = RawSample { seq, published_at: NOW, ..RawSample::default() };
    (key, ArrivedItem::Sample(sample))
}

fn unseen(key: SourceKey, samples: u64) -> (SourceKey, ArrivedItem) {
    (key, ArrivedItem::Lost(Lost::unseen(samples, DropReason::QueueFull)))
}

#[test]
fn an_early_sample_of_a_successor_ends_the_replaced_output() {
    let ([old, new], mut node) = ([source(3), source(2)], Node::default());
    node.change(old, None, Some(0));
    node.settle();
    node.take([sample(old, 0), sample(new, 6)]);
    node.change(new, None, Some(1));
    node.change(old, Some(new), None);
    node.settle();
    // The two streams arrive on separate paths, so the successor may be faster or slower.
    node.take([sample(old, 6), sample(new, 12), sample(old, 12)]);
    assert_eq!((node.left(0), node.left(1)), (&[0][..], &[6, 12][..]));
}

#[test]
fn an_early_sample_of_a_slow_successor_leaves_once() {
    let ([old, new], mut node) = ([source(3), source(2)], Node::default());
    node.change(old, None, Some(0));
    node.take([sample(old, 0), sample(new, 6), sample(old, 6)]);
    node.change(old, Some(new), None);
    node.change(new, None, Some(1));
    node.settle();
    node.take([sample(new, 12), sample(old, 12)]);
    assert_eq!((node.left(0), node.left(1)), (&[0, 6][..], &[12][..]));
}

#[test]
fn a_sample_of_an_earlier_request_does_not_end_the_replaced_output() {
    let ([old, new], mut node) = ([source(3), source(2)], Node::default());
    node.change(old, None, Some(0));
    node.take([sample(new, 2)]);
    node.change(old, Some(new), None);
    node.change_at((NOW + Duration::from_nanos(1), new), vec![HOP], None, Some(1));
    node.settle();
    node.take([sample(old, 9)]);
    assert_eq!((node.left(0), node.left(1)), (&[9][..], &[2][..]));
}

#[test]
fn early_losses_of_a_successor_are_not_counted_until_it_replaces_the_output() {
    let ([old, new], mut node) = ([source(3), source(2)], Node::default());
    node.change(old, None, Some(0));
    node.take([unseen(new, 4)]);
    node.change(new, None, Some(1));
    node.change(old, Some(new), None);
    node.settle();
    node.take([sample(old, 6), sample(new, 12), unseen(new, 1)]);
    assert_eq!((node.left(0), node.left(1)), (&[6][..], &[12][..]));
    assert_eq!(node.drops(1).of(DropReason::QueueFull), 1);
    assert_eq!(node.left.unrouted.total(), 0);
}

/// The successor carried the sample, too.
#[test]
fn a_sample_that_a_replaced_output_does_not_take_is_not_lost_by_it() {
    let ([old, new], mut node) = ([source(3), source(2)], Node::default());
    node.change(old, None, Some(0));
    node.change(old, Some(new), None);
    node.change(new, None, Some(1));
    let lost = |seq| {
        let (begun, reason) = (Some((seq, Kind::Data)), DropReason::DeadlineMissed);
        (old, ArrivedItem::Lost(Lost { samples: 1, reason, begun }))
    };
    node.take([sample(new, 12), lost(12)]);
    assert_eq!((node.left(1), node.drops(0).total()), (&[12][..], 0));
    node.take([lost(6)]);
    assert_eq!(node.drops(0).total(), 1);
}

#[test]
fn only_neighbours_on_the_paths_may_send_and_those_before_a_change_for_two_seconds() {
    let (key, mut node) = (source(1), Node::default());
    let at = |millis| NOW + Duration::from_millis(millis);
    let take = |node: &mut Node, millis, from| {
        let (key, item) = sample(key, millis);
        node.take_from(at(millis), from, key, item);
    };
    // A forged sample that waits is recognised, too.
    take(&mut node, 0, OTHER);
    node.change_at((at(0), key), vec![HOP], None, Some(0));
    node.settle();
    take(&mut node, 6, OTHER);
    assert_eq!((node.left(0).len(), node.left.unrouted.of(DropReason::NoRoute)), (0, 2));
    take(&mut node, 12, HOP);
    node.change_at((at(20), key), vec![OTHER], None, None);
    take(&mut node, 1_998, HOP);
    take(&mut node, 2_004, OTHER);
    take(&mut node, 2_022, HOP);
    assert_eq!(node.left(0), [12, 1_998, 2_004]);
    assert_eq!(node.left.unrouted.of(DropReason::NoRoute), 3);
    // The link to the neighbour on the path before returns, and shows that samples were lost.
    let lost = |from, samples| (from, unseen(key, samples).1);
    for (from, item) in [lost(HOP, 5), lost(NodeId(9), 7)] {
        node.take_from(at(9_000), from, key, item);
    }
    assert_eq!(node.drops(0).of(DropReason::QueueFull), 5);
    assert_eq!(node.left.unrouted.of(DropReason::QueueFull), 7);
}

fn early(stamper: &mut Stamper, from: u64, bytes: usize) -> EarlyItem {
    let captured = Timestamp { nanos: 0, error: 0 };
    let payload = Bytes::from(vec![0; bytes]);
    let sample = stamper.stamp(NOW, captured, Kind::Data, Encoding::Bytes, payload);
    let publisher = PublisherId { node: NodeId(from), index: 0 };
    let (key, item) = (SourceKey { publisher, form: Form::FULL }, ArrivedItem::Sample(sample));
    EarlyItem {
        at: NOW,
        from: NodeId(from),
        key,
        item,
        charge: Charge::uncounted(MemoryKind::Samples),
    }
}

/// Returns the number of samples lost before the buffered ones, and the sequence numbers of those.
fn take(items: &mut EarlyItems, from: u64) -> (u64, Vec<u64>) {
    let publisher = PublisherId { node: NodeId(from), index: 0 };
    let (mut lost, mut waited) = (0, Vec::new());
    let key = SourceKey { publisher, form: Form::FULL };
    let waiting = items.waiting(publisher);
    for item in items.take(key, |_, _| true, &mut Left::default()) {
        match item {
            ArrivedItem::Sample(sample) => waited.push(sample.seq),
            ArrivedItem::Lost(gone) => {
                assert_eq!((gone.reason, waited.len()), (DropReason::QueueFull, 0));
                lost += gone.samples;
            }
        }
    }
    assert_eq!(lost + waited.len() as u64, waiting);
    (lost, waited)
}

#[test]
fn the_largest_sender_makes_room() {
    let (mut items, mut left) = (EarlyItems::default(), Left::default());
    let (mut loud, mut quiet) = (Stamper::default(), Stamper::default());
    items.push(early(&mut quiet, 1, 10), &mut left);
    for _ in 0..SAMPLES_MAX + 9 {
        items.push(early(&mut loud, 2, 10), &mut left);
    }
    assert_eq!(take(&mut items, 1), (0, vec![0]));
    assert_eq!(take(&mut items, 2), (10, (10..SAMPLES_MAX as u64 + 9).collect()));
    assert_eq!(left.unrouted.total(), 0, "each is counted at its subscriber");
    assert!(items.is_empty() && items.expires_at() == Instant::FAR);
}

#[test]
fn the_neighbour_with_the_most_bytes_makes_room_for_them() {
    let (mut items, mut left) = (EarlyItems::default(), Left::default());
    let (mut large, mut honest) = (Stamper::default(), Stamper::default());
    for _ in 0..100 {
        items.push(early(&mut honest, 1, 10), &mut left);
    }
    items.push(early(&mut large, 2, BYTES_MAX - 500), &mut left);
    assert_eq!(take(&mut items, 1), (0, (0..100).collect()));
    assert_eq!(take(&mut items, 2), (1, Vec::new()));
    items.push(early(&mut honest, 1, 10), &mut left);
    items.push(early(&mut large, 2, 1_000), &mut left);
    assert_eq!(items.give_back(NodeId(2), 10, &mut left), 1_000);
    assert_eq!(take(&mut items, 1), (0, vec![100]));
}

#[test]
fn streams_with_dropped_samples_are_bounded() {
    let (mut items, mut left) = (EarlyItems::default(), Left::default());
    for from in 0..1_000 {
        let item = early(&mut Stamper::default(), from, 10);
        items.crowd_out(item, &mut left);
    }
    assert_eq!(left.unrouted.total(), 1_000 - CROWDED_MAX as u64);
}

#[test]
fn early_samples_are_bounded_in_bytes_and_time() {
    let (mut items, mut stamper, mut left) =
        (EarlyItems::default(), Stamper::default(), Left::default());
    let publisher = PublisherId { node: NodeId(1), index: 0 };
    items.push(early(&mut stamper, 1, BYTES_MAX + 1), &mut left);
    items.push(early(&mut stamper, 1, 1), &mut left);
    assert_eq!(items.waiting(publisher), 2, "one of them is dropped");
    items.expire(NOW + WAIT_MAX, &mut left);
    assert_eq!(left.unrouted.total(), 0);
    let ends = items.expires_at();
    assert!(ends > NOW + WAIT_MAX);
    items.expire(ends, &mut left);
    let dropped = |reason| left.unrouted.of(reason);
    assert_eq!((dropped(DropReason::NoRoute), dropped(DropReason::QueueFull)), (1, 1));
    assert!(items.is_empty());
}
