//! Retirement of streams that another stream replaces.

use super::*;
use crate::form::Rate;
use crate::ids::SubscriptionId;
use crate::reason::DropReason;
use paceline_sched::{Capacity, Policy};
use std::num::NonZeroU32;
use std::sync::Arc;

const NEW: StreamIndex = StreamIndex(1);
const OTHER: StreamIndex = StreamIndex(2);
/// The bytes that a link of 1 Mbit/s sends in about 10 ms.
const FRAME: usize = 1_000;

fn every(n: u32) -> Form {
    Form { rate: Rate::every(NonZeroU32::new(n).unwrap()), ..Form::FULL }
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

/// Opens a stream with a contract for these subscriptions.
fn open_for(a: &mut End, index: StreamIndex, (form, deadline): (Form, u64), ids: &[u32]) {
    let spec = StreamSpec {
        form,
        subscriptions: subscriptions(ids),
        ..to(node(2), Kind::Data, Some(contract(20, deadline)))
    };
    assert!(a.link.open_stream(index, spec));
}

fn subscriptions(ids: &[u32]) -> Arc<[SubscriptionId]> {
    ids.iter().map(|&index| SubscriptionId { node: node(3), index }).collect()
}

#[test]
fn a_subscription_that_moves_to_another_stream_receives_its_samples_in_order() {
    // Subscription 1 moves to a stream with a shorter deadline, which serves subscription 2, too. The old stream ends, ends
    // with a later sample, or continues for subscription 3; or the new stream has no subscription of the old one.
    for (case, moves) in [("closes", 1), ("ends", 1), ("continues", 1), ("apart", 4)] {
        let (mut now, mut a, mut b) = thin();
        open_for(&mut a, STREAM, (every(2), 20_000), &[1, 3]);
        push(&mut a, now, STREAM, 0..6);
        open_for(&mut a, NEW, (Form::FULL, 2_000), &[moves, 9]);
        let spec = a.link.spec_of(STREAM).unwrap().clone();
        match case {
            "closes" => a.link.hand_over(STREAM),
            "ends" => a.link.update_stream(now, STREAM, StreamSpec { ends: true, ..spec }),
            _ => {
                let spec = StreamSpec { subscriptions: subscriptions(&[3]), ..spec };
                a.link.update_stream(now, STREAM, spec);
            }
        }
        a.link.handle_timeout(now);
        push(&mut a, now, NEW, 6..8);
        if case == "continues" {
            push(&mut a, now, STREAM, 6..8);
        }
        talk(&mut now, &mut a, &mut b, 12);
        let first_new = b.got.iter().position(|seq| *seq == 6).unwrap();
        let older = b.got.iter().take(first_new).filter(|seq| **seq < 6).count();
        if case == "apart" {
            assert!(older < 6, "{case}: {:?}", b.got);
        } else {
            assert_eq!(older, 6, "{case}: {:?}", b.got);
        }
        if case == "continues" {
            assert_eq!(b.got, [0, 1, 2, 3, 4, 5, 6, 7, 6, 7], "later samples are independent");
        }
    }
}
