use super::super::installation::Installation;
use super::super::port::{Announcements, Port, RingEnd, ring};
use super::super::wake::Waker;
use super::*;
use event_listener::Event;
use paceline_proto::form::Rate;
use paceline_proto::plan::{OutputPlan, Target};
use paceline_proto::receive::Lost;
use paceline_proto::video::GroupBudget;
use paceline_proto::{DropReason, Encoding, Form, Kind, PublisherId, RawSample, Timestamp};
use paceline_sched::discipline::StreamIndex;
use std::num::NonZeroU32;

const HOP: NodeId = NodeId(1);
const PUBLISHER: PublisherId = PublisherId { node: NodeId(2), index: 0 };

/// Returns the stream that carries one in `n` samples of the publisher.
fn source(n: u32) -> SourceKey {
    let rate = NonZeroU32::new(n).map_or(Rate::ALL, Rate::every);
    SourceKey { publisher: PUBLISHER, form: Form { rate, ..Form::FULL } }
}

fn new_ring() -> (Port, RingEnd) {
    let link = Announcements {
        ready: ArrayQueue::new(8),
        waker: Arc::new(Waker::default()),
        room: Event::new(),
    };
    let (port, end) = ring(StreamIndex(0), Arc::new(link));
    (Port::Ring(port), end)
}

/// Posts an output of the stream `key` to one other neighbour, which ends with the first sample of
/// `until`. It is new if `port` is given.
fn post(to: &RxSources, key: SourceKey, until: Option<SourceKey>, port: Option<Port>) {
    post_at(to, (key, Instant::ZERO), until, port);
}

fn post_at(
    to: &RxSources,
    (key, at): (SourceKey, Instant),
    until: Option<SourceKey>,
    port: Option<Port>,
) {
    let until = until.map(|key| key.form);
    let plan = OutputPlan { until, ..OutputPlan::new(Target::Hop(NodeId(3)), source(6).form) };
    let (groups, outputs) = (GroupBudget::default(), vec![(plan, port)]);
    let installation = Some(Installation { period: None, groups, outputs });
    to.changes.post(RxChange { source: key, from: vec![HOP], at, entry: Vec::new(), installation });
}

fn sample(SourceKey { publisher, form }: SourceKey, seq: u64) -> Received {
    let sample = RawSample {
        seq,
        captured: Timestamp::default(),
        shift: 0,
        published_at: Instant::ZERO,
        doubt: Duration::ZERO,
        kind: Kind::Data,
        encoding: Encoding::Bytes,
        payload: Bytes::new(),
        attachment: None,
    };
    Received::Sample { publisher, form, sample }
}

fn receive<const N: usize>(at: &RxSources, received: [Received; N]) {
    at.hand_over(Instant::ZERO, HOP, received.into_iter(), |_| {
        Some(Charge::uncounted(MemoryKind::Samples))
    });
}

fn taken(ring: &mut RingEnd) -> Vec<u64> {
    std::iter::from_fn(|| ring.consumer.pop().ok()).map(|(_, sample)| sample.seq).collect()
}

#[test]
fn an_early_sample_of_a_successor_ends_the_replaced_output() {
    let ([old, new], rx) = ([source(3), source(2)], RxSources::default());
    let ((old_port, mut old_end), (new_port, mut new_end)) = (new_ring(), new_ring());
    post(&rx, old, None, Some(old_port));
    receive(&rx, [sample(old, 0)]);
    receive(&rx, [sample(new, 6)]);
    post(&rx, new, None, Some(new_port));
    post(&rx, old, Some(new), None);
    // The two streams arrive on separate paths, so the successor may be faster or slower.
    receive(&rx, [sample(old, 6), sample(new, 12), sample(old, 12)]);
    assert_eq!((taken(&mut old_end), taken(&mut new_end)), (vec![0], vec![6, 12]));
}

#[test]
fn an_early_sample_of_a_slow_successor_leaves_once() {
    let ([old, new], rx) = ([source(3), source(2)], RxSources::default());
    let ((old_port, mut old_end), (new_port, mut new_end)) = (new_ring(), new_ring());
    post(&rx, old, None, Some(old_port));
    receive(&rx, [sample(old, 0), sample(new, 6), sample(old, 6)]);
    post(&rx, old, Some(new), None);
    post(&rx, new, None, Some(new_port));
    receive(&rx, [sample(new, 12), sample(old, 12)]);
    assert_eq!((taken(&mut old_end), taken(&mut new_end)), (vec![0, 6], vec![12]));
}

#[test]
fn a_sample_of_an_earlier_request_does_not_end_the_replaced_output() {
    let ([old, new], rx) = ([source(3), source(2)], RxSources::default());
    let ((old_port, mut old_end), (new_port, mut new_end)) = (new_ring(), new_ring());
    post(&rx, old, None, Some(old_port));
    receive(&rx, [sample(new, 2)]);
    post(&rx, old, Some(new), None);
    post_at(&rx, (new, Instant::from_nanos(1)), None, Some(new_port));
    receive(&rx, [sample(old, 9)]);
    assert_eq!((taken(&mut old_end), taken(&mut new_end)), (vec![9], vec![2]));
}

#[test]
fn early_losses_of_a_successor_are_not_counted_until_it_replaces_the_output() {
    let ([old, new], rx) = ([source(3), source(2)], RxSources::default());
    let ((old_port, mut old_end), (new_port, mut new_end)) = (new_ring(), new_ring());
    post(&rx, old, None, Some(old_port));
    let SourceKey { publisher, form } = new;
    let lost = |samples| {
        let lost = Lost::unseen(samples, DropReason::QueueFull);
        Received::Lost { publisher, form, lost }
    };
    receive(&rx, [lost(4)]);
    post(&rx, new, None, Some(new_port));
    post(&rx, old, Some(new), None);
    receive(&rx, [sample(old, 6), sample(new, 12), lost(1)]);
    assert_eq!((taken(&mut old_end), taken(&mut new_end)), (vec![6], vec![12]));
    assert_eq!(new_end.shared.drops.load().of(DropReason::QueueFull), 1);
    assert_eq!(rx.drops.load().total(), 0);
}

/// The successor carried the sample, too.
#[test]
fn a_sample_that_a_replaced_output_does_not_take_is_not_lost_by_it() {
    let ([old, new], rx) = ([source(3), source(2)], RxSources::default());
    let ((old_port, old_end), (new_port, mut new_end)) = (new_ring(), new_ring());
    post(&rx, old, None, Some(old_port));
    post(&rx, old, Some(new), None);
    post(&rx, new, None, Some(new_port));
    let SourceKey { publisher, form } = old;
    let lost = |seq| {
        let begun = Some((seq, Kind::Data));
        let lost = Lost { samples: 1, reason: DropReason::DeadlineMissed, begun };
        Received::Lost { publisher, form, lost }
    };
    receive(&rx, [sample(new, 12), lost(12)]);
    assert_eq!((taken(&mut new_end), old_end.shared.drops.load().total()), (vec![12], 0));
    receive(&rx, [lost(6)]);
    assert_eq!(old_end.shared.drops.load().total(), 1);
}
