//! Windows are aligned by the source's sequence numbers, and upstream losses count as misses.

use super::*;
use crate::form::Rate;
use core::num::NonZeroU32;
use paceline_sched::LossTolerance;

const STREAM: StreamIndex = StreamIndex(0);

/// Returns a link with a stream that tolerates 1 loss in 3.
fn link(rate: Rate) -> (End, Instant) {
    let (mut a, mut b) = pair(LinkSpec::default());
    let mut now = at(10_000);
    talk(&mut now, &mut a, &mut b, 8);
    let (period, loss) = (Duration::from_millis(10), LossTolerance::new(1, 3).unwrap());
    let contract = Contract { period, deadline: period, loss, late: Late::Drop, jitter: period };
    let mut spec = to(node(2), Kind::Data, Some(contract));
    spec.form.rate = rate;
    assert!(a.link.open_stream(STREAM, spec));
    (a, now)
}

/// Returns the number of uncounted samples in the window, and the number of tolerated misses among them.
fn window(end: &End) -> (u32, u32) {
    let state = end.link.discipline.window(STREAM).unwrap();
    (state.y, state.x)
}

fn take(end: &mut End, now: Instant, seq: u64) {
    assert!(end.link.handle_sample(now, STREAM, sample(now, seq, 100)));
    let mut frame = FrameBuf::default();
    while end.link.poll_frame(now, &mut frame).is_some() {}
}

#[test]
fn a_stream_that_joins_within_a_window_misses_none_of_its_rest() {
    let (mut end, now) = link(Rate::ALL);
    take(&mut end, now, 7); // the second of 6, 7, 8
    assert_eq!(window(&end), (1, 0), "6 may have been missed elsewhere");
    take(&mut end, now, 8);
    assert_eq!(window(&end), (3, 1), "a new one");
}

#[test]
fn losses_before_this_link_count_as_misses() {
    let (mut end, now) = link(Rate::ALL);
    take(&mut end, now, 0);
    take(&mut end, now, 2);
    assert_eq!(window(&end), (3, 1), "0, 1 and 2 are counted");
    take(&mut end, now, 4);
    assert_eq!(window(&end), (1, 0), "3 is missed: 5 must arrive");
    // Complete windows have passed; the first sample of the current one is missed.
    take(&mut end, now, 16);
    assert_eq!(window(&end), (1, 0));
    assert_eq!(
        end.link.counters(STREAM).unwrap().violations,
        1,
        "two of 3, 4 and 5 did not arrive"
    );
}

#[test]
fn one_in_n_counts_only_requested_samples() {
    let (mut end, now) = link(Rate::every(NonZeroU32::new(4).unwrap()));
    take(&mut end, now, 5); // the second of 0, 4, 8 or its like
    assert_eq!(window(&end), (1, 0));
    take(&mut end, now, 13);
    assert_eq!(window(&end), (2, 1), "that at 9 is missed, which ends the window");
}

#[test]
fn a_new_contract_continues_the_count_at_the_current_sample() {
    let (mut end, now) = link(Rate::ALL);
    take(&mut end, now, 0);
    let mut spec = end.link.spec_of(STREAM).unwrap().clone();
    spec.contract = spec
        .contract
        .map(|contract| Contract { loss: LossTolerance::new(1, 5).unwrap(), ..contract });
    end.link.update_stream(now, STREAM, spec);
    take(&mut end, now, 1);
    assert_eq!(window(&end), (3, 0), "0 and 1 are counted, and 0 may have been missed");
}

/// Changes the contract to this deadline and tolerance.
fn change(end: &mut End, now: Instant, millis: u64, (x, y): (u32, u32)) {
    let mut spec = end.link.spec_of(STREAM).unwrap().clone();
    let (deadline, loss) = (Duration::from_millis(millis), LossTolerance::new(x, y).unwrap());
    spec.contract = spec.contract.map(|contract| Contract { deadline, loss, ..contract });
    end.link.update_stream(now, STREAM, spec);
}

#[test]
fn a_contract_with_the_same_tolerance_continues_its_window() {
    let (mut end, now) = link(Rate::ALL);
    change(&mut end, now, 10, (2, 5));
    take(&mut end, now, 0);
    change(&mut end, now, 20, (2, 5));
    assert_eq!(window(&end), (4, 2), "0 arrived");
    take(&mut end, now, 2);
    change(&mut end, now, 30, (2, 5));
    assert_eq!(window(&end), (2, 1), "1 is missed");
    take(&mut end, now, 4);
    assert_eq!(window(&end), (5, 2), "3 is missed, which ends the window");
    assert_eq!(end.link.counters(STREAM).unwrap().violations, 0);
}

/// A second subscription without tolerance came for a while. The window then allowed as many misses as if there had been
/// none.
#[test]
fn a_tolerance_that_comes_back_misses_none_of_the_present_window() {
    let (mut end, now) = link(Rate::ALL);
    change(&mut end, now, 10, (1, 10));
    take(&mut end, now, 0);
    take(&mut end, now, 2);
    assert_eq!(window(&end), (7, 0), "1 is missed");
    change(&mut end, now, 10, (0, 1));
    take(&mut end, now, 3);
    change(&mut end, now, 10, (1, 10));
    take(&mut end, now, 4);
    assert_eq!(window(&end), (5, 0));
    take(&mut end, now, 10);
    assert_eq!(window(&end).1, 1, "the next window");
}

#[test]
fn samples_missing_in_the_queue_count_as_misses_of_a_new_contract() {
    let (mut end, now) = link(Rate::ALL);
    change(&mut end, now, 10, (0, 1));
    for seq in [10, 12] {
        assert!(end.link.handle_sample(now, STREAM, sample(now, seq, 100)));
    }
    change(&mut end, now, 10, (1, 20));
    assert_eq!(window(&end), (9, 0), "0 to 9, and 11, are counted");
}

#[test]
fn sequence_numbers_may_have_any_value() {
    let (mut end, now) = link(Rate::ALL);
    for seq in [u64::MAX, u64::MAX, 0, u64::MAX - 1] {
        take(&mut end, now, seq);
        let spec = end.link.spec_of(STREAM).unwrap().clone();
        end.link.handle_sample(now, STREAM, sample(now, seq, 100));
        end.link.update_stream(now, STREAM, spec);
        assert!((1..=3).contains(&window(&end).0), "after {seq}");
    }
}
