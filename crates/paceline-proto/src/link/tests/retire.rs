//! Retirement of streams that another stream replaces.

use super::*;
use crate::form::Rate;
use crate::reason::DropReason;
use paceline_sched::{Capacity, Policy};
use std::num::NonZeroU32;

const NEW: StreamIndex = StreamIndex(1);
const OTHER: StreamIndex = StreamIndex(2);
/// The bytes that a link of 1 Mbit/s sends in about 10 ms.
const FRAME: usize = 1_000;

fn every(n: u32) -> Form {
    Form { rate: Rate::Every(NonZeroU32::new(n).unwrap()), ..Form::FULL }
}

fn contract(period: u64, deadline: u64) -> Contract {
    let contract = Contract::every(Duration::from_millis(period)).unwrap();
    contract.with_deadline(Duration::from_millis(deadline)).unwrap()
}

fn promised() -> Contract {
    contract(20, 300)
}

/// Returns a slow link that is up.
fn thin() -> (Instant, End, End) {
    let capacity = Capacity::from_bits_per_s(1_000_000).unwrap();
    let policy = Policy::Vds;
    let (mut a, mut b) = pair(LinkSpec { capacity: Some(capacity), policy, ..LinkSpec::default() });
    let mut now = at(1_000);
    talk(&mut now, &mut a, &mut b, 4);
    (now, a, b)
}

fn open(a: &mut End, index: StreamIndex, form: Form, contract: Option<Contract>) {
    let spec = StreamSpec { form, ..to(node(2), Kind::Data, contract) };
    assert!(a.link.open_stream(index, spec));
}

fn push(a: &mut End, now: Instant, index: StreamIndex, seqs: core::ops::Range<u64>) {
    seqs.for_each(|seq| assert!(a.link.handle_sample(now, index, sample(now, seq, FRAME))));
}

#[test]
fn queued_samples_are_sent_before_later_samples() {
    let (mut now, mut a, mut b) = thin();
    open(&mut a, STREAM, every(2), Some(promised()));
    push(&mut a, now, STREAM, 0..3);
    open(&mut a, NEW, every(4), None);
    a.link.retire_stream(now, STREAM);
    assert!(!a.link.is_settled(STREAM));
    assert!(a.link.spec_of(STREAM).unwrap().contract.is_none());
    talk(&mut now, &mut a, &mut b, 4);
    push(&mut a, now, NEW, 3..5);
    talk(&mut now, &mut a, &mut b, 4);
    assert_eq!(b.got, [0, 1, 2, 3, 4]);
    assert!(a.link.is_settled(STREAM));
    let counters = a.link.close_stream(STREAM).unwrap();
    assert_eq!((counters.sent, counters.drops.total()), (3, 0));
}

#[test]
fn no_sample_follows_a_newer_one() {
    for (old, new) in [(None, Some(promised())), (Some(promised()), Some(promised())), (None, None)]
    {
        let (mut now, mut a, mut b) = thin();
        open(&mut a, STREAM, every(2), old);
        push(&mut a, now, STREAM, 0..10);
        open(&mut a, NEW, every(4), new);
        a.link.retire_stream(now, STREAM);
        // A sample of another publisher does not count as a newer one.
        let its = PublisherId { node: node(1), index: 7 };
        let spec = StreamSpec { publisher: its, ..to(node(2), Kind::Data, Some(promised())) };
        assert!(a.link.open_stream(OTHER, spec));
        push(&mut a, now, OTHER, 100..101);
        push(&mut a, now, NEW, 10..12);
        talk(&mut now, &mut a, &mut b, 8);
        b.got.retain(|seq| *seq != 100);
        assert!(b.got.is_sorted() && b.got.ends_with(&[10, 11]), "{old:?} {new:?} {:?}", b.got);
        assert!(a.link.is_settled(STREAM), "{old:?} {new:?}");
        let counters = a.link.close_stream(STREAM).unwrap();
        assert_eq!(counters.offered, counters.sent + counters.drops.total());
        let superseded = counters.drops.of(DropReason::Superseded);
        assert_eq!(superseded, counters.drops.total(), "{old:?} {new:?}");
        assert_eq!(b.lost, 0, "{old:?} {new:?}");
    }
}

#[test]
fn a_new_contract_does_not_wait_for_the_old_one() {
    let (mut now, mut a, mut b) = thin();
    open(&mut a, STREAM, every(2), Some(promised()));
    push(&mut a, now, STREAM, 0..10);
    a.link.retire_stream(now, STREAM);
    let its = PublisherId { node: node(1), index: 7 };
    // By deadline, the retired samples would be served first.
    let later = contract(500, 400);
    let spec = StreamSpec { publisher: its, ..to(node(2), Kind::Data, Some(later)) };
    assert!(a.link.open_stream(OTHER, spec));
    push(&mut a, now, OTHER, 100..101);
    now += Duration::from_millis(1);
    a.poll(now);
    a.sent.drain(..).for_each(|frame| b.hear(now, frame));
    assert_eq!(b.got.first(), Some(&100), "{:?}", b.got);
}

#[test]
fn a_started_sample_is_aborted_for_a_newer_one() {
    let (mut now, mut a, mut b) = thin();
    open(&mut a, STREAM, every(2), None);
    assert!(a.link.handle_sample(now, STREAM, sample(now, 0, 20 * FRAME)));
    a.poll(now);
    open(&mut a, NEW, every(4), Some(promised()));
    a.link.retire_stream(now, STREAM);
    push(&mut a, now, NEW, 1..2);
    talk(&mut now, &mut a, &mut b, 8);
    assert_eq!((&b.got[..], b.lost), (&[1][..], 1));
    assert!(a.link.is_settled(STREAM));
    let counters = a.link.close_stream(STREAM).unwrap();
    assert_eq!((counters.sent, counters.drops.of(DropReason::Superseded)), (0, 1));
}

#[test]
fn a_queue_under_a_contract_may_need_the_bound_of_its_path() {
    let (_, mut a, _) = thin();
    let seconds = Duration::from_secs;
    let slow = StreamSpec {
        upstream: seconds(2),
        slack: seconds(1),
        ..to(node(2), Kind::Data, Some(contract(20, 5_000)))
    };
    assert!(a.link.open_stream(STREAM, slow));
    open(&mut a, NEW, every(2), Some(promised()));
    assert_eq!(a.link.hand_over_max(STREAM), seconds(8));
    assert_eq!(a.link.hand_over_max(NEW), seconds(4));
}
