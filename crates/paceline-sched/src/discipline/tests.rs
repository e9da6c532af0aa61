use super::*;
use crate::contract::{Contract, Late, LossTolerance};
use crate::time::Duration;
use std::string::ToString;
use std::vec::Vec;

const A: StreamIndex = StreamIndex(0);
const B: StreamIndex = StreamIndex(1);
const C: StreamIndex = StreamIndex(2);
const D: StreamIndex = StreamIndex(3);
const POLICIES: [Policy; 15] = Policy::ALL;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Returns the instant just after `millis`.
fn past(millis: u64) -> Instant {
    at(millis) + Duration::from_nanos(1)
}

fn every(period: u64) -> Contract {
    Contract::every(ms(period)).unwrap()
}

fn loss(x: u32, y: u32) -> LossTolerance {
    LossTolerance::new(x, y).unwrap()
}

fn head(arrived: u64, service: u64) -> Head {
    Head::whole(at(arrived), ms(service), 1)
}

/// Serves one sample of each stream at once, with these deadlines and arrivals and a period of a second, and returns the order
/// at `now`.
pub(super) fn served(policy: Policy, now: Instant, streams: &[(Duration, Instant)]) -> Vec<u32> {
    let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
    for (index, &(deadline, arrived)) in (0..).map(StreamIndex).zip(streams) {
        link.join(index, Some(Contract { deadline, ..every(1_000) }));
        link.handle_head(index, Head::whole(arrived, Duration::from_nanos(1), 1));
    }
    let mut order = Vec::new();
    while let Some(stream) = link.pick(now) {
        let _ = link.handle_served(stream, 1, now);
        order.push(stream.0);
    }
    order
}

fn left(service: u64) -> Left {
    Left { service: ms(service), segment: 1, last: true }
}

fn link(policy: Policy, contracts: &[Option<Contract>]) -> Discipline {
    let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
    for (stream, &contract) in (0..).zip(contracts) {
        link.join(StreamIndex(stream), contract);
    }
    link
}

/// Returns the streams of the next `count` segments, none of them the last of its sample.
fn segments(link: &mut Discipline, now: Instant, count: usize) -> Vec<StreamIndex> {
    let mut next = || {
        let stream = link.pick(now)?;
        link.handle_segment(stream, 1, left(1));
        Some(stream)
    };
    (0..count).filter_map(|_| next()).collect()
}

#[test]
fn policies_have_names() {
    for policy in POLICIES {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    assert_eq!("EDF".parse::<Policy>(), Err(UnknownPolicy));
    assert!(UnknownPolicy.to_string().ends_with(", hfsc, rcsp, stop-and-go or rpq"));
    assert_eq!(Policy::default(), Policy::Vds);
}

#[test]
fn contracted_heads_precede_best_effort_and_the_round_is_fair() {
    for policy in [Policy::DWCS, Policy::Vds] {
        let mut link = link(policy, &[None, None, Some(every(10))]);
        link.handle_head(A, head(0, 9));
        link.handle_head(B, head(0, 9));
        assert_eq!(segments(&mut link, at(0), 5), [A, B, A, B, A]);
        link.handle_head(C, head(0, 9));
        assert_eq!(segments(&mut link, at(0), 3), [C, C, C]);
        assert_eq!(link.handle_served(C, 1, at(9)), Service { on_time: true, violated: false });
        assert_eq!(segments(&mut link, at(9), 3), [B, A, B]);
        // Ahead of its period by no more than its relative deadline, C precedes best effort.
        link.handle_head(C, head(9, 9));
        assert_eq!(link.deadline(C), Some(at(20)));
        assert_eq!(segments(&mut link, at(9), 2), [C, C]);
        link.handle_served(C, 1, at(9));
        // Ahead by more, it is served at the end of the round robin until then.
        link.handle_head(C, head(9, 9));
        assert_eq!(link.deadline(C), Some(at(30)));
        assert_eq!(link.next_change(at(9)), Some(at(10)));
        // No call was made yet, so the period that has begun is due at once.
        assert_eq!(link.next_change(at(10)), Some(past(10)));
        let mut later = link.clone();
        assert_eq!(later.poll_missed(at(10)), None);
        assert_eq!(later.next_change(at(10)), Some(at(20)), "its period");
        assert_eq!(segments(&mut link, at(9), 5), [A, B, C, A, B]);
        assert_eq!(segments(&mut link, at(10), 2), [C, C]);
    }
}

#[test]
fn the_background_is_served_round_robin_when_no_other_stream_waits() {
    for policy in POLICIES {
        let mut link = link(policy, &[None, Some(every(10))]);
        link.join(C, ServiceClass::Background);
        link.join(D, ServiceClass::Background);
        link.handle_head(D, head(0, 5));
        link.handle_head(C, head(0, 5));
        assert_eq!((link.window(C), link.deadline(C)), (None, None));
        assert_eq!(segments(&mut link, at(0), 3), [D, C, D]);
        link.handle_head(A, head(1, 1));
        link.handle_head(B, head(1, 1));
        let first = link.pick(at(1)).unwrap();
        link.handle_served(first, 1, at(2));
        let second = link.pick(at(2)).unwrap();
        // B, ahead of its period, is not behind the background either.
        link.handle_served(second, 1, at(3));
        link.handle_head(B, head(3, 1));
        assert_eq!(segments(&mut link, at(3), 1), [B], "{policy}");
        link.suspend(B);
        assert_eq!(segments(&mut link, at(4), 2), [C, D]);
        link.suspend(C);
        assert_eq!(segments(&mut link, at(4), 2), [D, D]);
        link.resume(B);
        link.resume(C);
        assert_eq!(link.pick(at(4)), Some(B));
        assert!(!link.remove_head(C));
        assert!(link.handle_served(D, 1, at(5)).on_time);
        link.handle_served(B, 1, at(6));
        assert_eq!(link.pick(at(6)), None);
    }
}

#[test]
fn a_work_conserving_link_does_not_wait_for_periods() {
    let mut link = Discipline::new(Policy::DWCS, Eligibility::WorkConserving);
    link.join(A, Some(every(10)));
    link.join(B, None);
    link.handle_head(B, head(0, 1));
    link.handle_head(A, head(0, 1));
    link.handle_served(A, 1, at(1));
    link.handle_head(A, head(0, 1));
    assert_eq!((link.pick(at(1)), link.deadline(A)), (Some(A), Some(at(20))));
}

#[test]
fn a_virtual_deadline_orders_streams() {
    // One of four samples may miss: three services in four periods, the first 40/3 ms after the window
    // began.
    let asked = [Some(every(10).with_loss(loss(1, 4))), Some(every(30)), None];
    let spread = Instant::from_nanos(40_000_000 / 3);
    for (policy, expected) in [(Policy::Vds, spread), (Policy::Edf, at(10)), (Policy::DWCS, at(10))]
    {
        let mut link = link(policy, &asked);
        assert_eq!(link.virtual_deadline(A), None, "{policy}: no head");
        [A, B, C].into_iter().for_each(|stream| link.handle_head(stream, head(0, 1)));
        let due = [A, B, C].map(|stream| link.virtual_deadline(stream));
        assert_eq!(due, [Some(expected), Some(at(30)), None], "{policy}");
        // The next sample arrives a period too early, and waits for its period.
        link.handle_served(A, 1, at(1));
        link.handle_head(A, head(1, 1));
        assert_eq!(link.virtual_deadline(A), Some(Instant::FAR), "{policy}");
    }
    let mut spent = link(Policy::Vds, &[Some(every(10).with_loss(loss(1, 2)))]);
    spent.handle_head(A, head(0, 1));
    spent.handle_served(A, 1, at(1));
    spent.handle_head(A, head(10, 1));
    assert_eq!(spent.virtual_deadline(A), Some(Instant::FAR), "its window owes nothing more");
}

#[test]
fn vds_serves_satisfied_streams_last_but_before_best_effort() {
    let contract = every(10).with_loss(loss(1, 2));
    let mut link = link(Policy::Vds, &[Some(contract), Some(every(30)), None]);
    link.handle_head(A, head(0, 1));
    link.handle_served(A, 1, at(1));
    assert_eq!(link.window(A), Some(WindowState { x: 1, y: 1, tagged: false }));
    for stream in [A, B, C] {
        link.handle_head(stream, head(10, 1));
    }
    let mut order = Vec::new();
    while let Some(stream) = link.pick(at(10)) {
        link.handle_served(stream, 1, at(11));
        order.push(stream);
    }
    assert_eq!(order, [B, A, C]);
}

#[test]
fn fifo_serves_whole_samples_in_order_of_arrival() {
    let mut link = link(Policy::Fifo, &[None, Some(every(10)), None]);
    link.handle_head(C, head(1, 5));
    link.handle_head(B, head(1, 5));
    link.handle_head(A, head(0, 5));
    assert_eq!(segments(&mut link, at(1), 3), [A, A, A]);
    link.handle_served(A, 1, at(5));
    // Equal arrivals: C was announced first.
    assert_eq!(segments(&mut link, at(5), 2), [C, C]);
    link.handle_served(C, 1, at(6));
    assert_eq!(link.poll_missed(at(6)), None);
    let miss = Miss { stream: B, dropped: true, violated: true };
    assert_eq!((link.poll_missed(past(6)), link.pick(past(6))), (Some(miss), None));
}

#[test]
fn periods_are_consecutive_and_restart_after_a_pause() {
    let mut link = link(Policy::DWCS, &[Some(every(10).with_jitter(ms(2)))]);
    let mut deadline = |arrived| {
        link.handle_head(A, head(arrived, 1));
        let deadline = link.deadline(A);
        link.handle_served(A, 1, at(arrived));
        deadline
    };
    assert_eq!(deadline(0), Some(at(10)));
    // Within the jitter: released at once, but the next release does not move earlier.
    assert_eq!(deadline(8), Some(at(18)));
    assert_eq!(deadline(17), Some(at(28)));
    assert_eq!(deadline(100), Some(at(110)));
}

#[test]
fn a_head_is_missed_just_after_its_latest_start() {
    for policy in POLICIES {
        let mut link = link(policy, &[Some(every(10)), Some(every(5).with_loss(loss(1, 2)))]);
        link.handle_head(A, head(0, 7));
        link.handle_head(B, head(0, 4));
        assert_eq!(link.next_change(at(0)), Some(past(1)));
        assert_eq!(link.poll_missed(at(1)), None);
        let missed = |stream, violated| Some(Miss { stream, dropped: true, violated });
        assert_eq!(link.poll_missed(past(3)), missed(B, false));
        assert_eq!(link.poll_missed(past(3)), missed(A, true));
        assert_eq!(link.poll_missed(past(3)), None);
        assert_eq!((link.pick(past(3)), link.next_change(past(3))), (None, None));
        link.handle_head(B, head(3, 4));
        assert_eq!(link.deadline(B), Some(at(10)));
        // Not polled, but served too late: the second of two misses violates the window.
        assert_eq!(link.handle_served(B, 1, at(11)), Service { on_time: false, violated: true });
    }
}

#[test]
fn a_late_sent_sample_is_counted_once() {
    let contract = every(10).with_loss(loss(1, 2)).with_late(Late::Send);
    for policy in POLICIES {
        let mut link = link(policy, &[Some(contract)]);
        link.handle_head(A, head(0, 3));
        let miss = Miss { stream: A, dropped: false, violated: false };
        assert_eq!(link.poll_missed(past(7)), Some(miss));
        assert_eq!(link.deadline(A), Some(at(20)));
        assert_eq!(link.poll_missed(past(17)), None);
        assert_eq!((link.deadline(A), link.pick(past(17))), (Some(at(30)), Some(A)));
        // On time for its postponed deadline, but not for its own.
        assert_eq!(link.handle_served(A, 1, at(21)), Service { on_time: false, violated: false });
        // The next sample has its own period; only one sample of the window of two is counted.
        link.handle_head(A, head(10, 3));
        assert_eq!(link.deadline(A), Some(at(20)));
        assert!(link.remove_head(A));
        assert!(!link.remove_head(A));
    }
}

#[test]
fn a_day_of_stall_costs_one_step() {
    let contract = every(1).with_late(Late::Send).with_loss(loss(2, 3));
    for policy in POLICIES {
        let mut link = link(policy, &[Some(contract)]);
        link.handle_head(A, head(0, 1));
        let now = Instant::ZERO + Duration::from_secs(86_400);
        assert!(link.poll_missed(now).is_some_and(|miss| !miss.violated));
        assert_eq!(link.poll_missed(now), None);
        assert_eq!(link.deadline(A), Some(now + ms(1)));
        if let Policy::Dwcs { adjustment, .. } = policy {
            // Two of them use up x', the others increase y' from 1.
            let (y, tagged) = (86_400_000 - 2 + 1, adjustment == RuleSet::Later);
            assert_eq!(link.window(A), Some(WindowState { x: 0, y, tagged }));
        } else {
            assert_eq!(link.window(A), Some(WindowState { x: 1, y: 2, tagged: false }));
        }
    }
}

#[test]
fn a_withdrawn_sample_counts_as_missed_once() {
    for policy in POLICIES {
        let mut link = link(policy, &[Some(every(10).with_late(Late::Send)), None]);
        link.handle_head(A, head(0, 1));
        assert!(link.remove_head(A));
        link.handle_head(A, head(10, 1));
        assert!(link.poll_missed(at(20)).is_some_and(|miss| miss.violated));
        assert!(!link.remove_head(A));
        link.handle_head(B, head(0, 1));
        assert!(!link.remove_head(B));
        assert_eq!((link.pick(at(20)), link.next_change(at(20))), (None, None));
    }
}

#[test]
fn invalid_calls_change_nothing() {
    for policy in POLICIES {
        let mut link = link(policy, &[Some(every(10)), None]);
        let unknown = StreamIndex(u32::MAX);
        link.leave(unknown);
        link.handle_head(unknown, head(0, 1));
        link.handle_segment(unknown, 1, left(1));
        link.handle_segment(A, 1, left(1));
        let nothing = Service { on_time: true, violated: false };
        assert_eq!(link.handle_served(unknown, 1, at(99)), nothing);
        assert_eq!(link.handle_served(A, 1, at(99)), nothing);
        assert!(!link.remove_head(unknown));
        assert_eq!((link.window(unknown), link.window(B)), (None, None));
        assert_eq!((link.deadline(unknown), link.deadline(A)), (None, None));
        assert_eq!((link.pick(at(0)), link.next_change(at(0))), (None, None));
        link.handle_head(A, head(0, 1));
        link.handle_head(A, head(5, 1));
        assert_eq!(link.deadline(A), Some(at(10)));
    }
}

#[test]
fn a_removed_stream_is_forgotten_and_rejoins_fresh() {
    for policy in POLICIES {
        let mut link = link(policy, &[Some(every(10)), None]);
        link.handle_head(A, head(0, 1));
        link.handle_head(B, head(0, 1));
        link.handle_served(A, 1, at(1));
        link.handle_head(A, head(1, 1));
        link.leave(A);
        link.leave(A);
        assert_eq!((link.pick(at(1)), link.next_change(at(1))), (Some(B), None));
        link.join(A, Some(every(10)));
        link.handle_head(A, head(2, 1));
        assert_eq!(link.deadline(A), Some(at(12)));
        link.join(A, None);
        assert_eq!((link.deadline(A), link.pick(at(2))), (None, Some(B)));
        link.join(B, None);
        assert_eq!(link.pick(at(2)), None);
    }
}

#[test]
fn the_last_instant_is_handled() {
    for policy in POLICIES {
        let far = Contract { period: Duration::MAX, late: Late::Send, ..every(1) };
        let none = Contract { period: Duration::ZERO, late: Late::Send, ..every(1) };
        let mut link = link(policy, &[Some(far), Some(none)]);
        link.handle_head(A, Head::whole(at(1), Duration::MAX, 1));
        link.handle_head(B, Head::whole(at(1), Duration::MAX, 1));
        for now in [at(2), Instant::FAR] {
            while link.poll_missed(now).is_some() {}
            assert!(link.pick(now).is_some());
            assert_eq!(link.next_change(now), None);
        }
    }
}

#[test]
fn a_skipped_sample_counts_as_missed() {
    for policy in POLICIES {
        let mut link = link(policy, &[Some(every(10).with_loss(loss(1, 4))), None]);
        assert!(!link.handle_skipped(B) && !link.handle_skipped(C), "nothing was promised");
        link.handle_head(A, head(0, 2));
        assert!(!link.handle_skipped(A), "one miss is tolerated");
        assert_eq!(link.window(A).map(|window| window.x), Some(0));
        // The head, whose rank has changed, is still there and has its own period.
        assert_eq!((link.pick(at(0)), link.deadline(A)), (Some(A), Some(at(10))));
        assert!(link.handle_skipped(A), "two are not");
        assert!(!link.handle_skipped(A), "a window is violated once");
        assert_eq!(link.handle_served(A, 1, at(2)), Service { on_time: true, violated: false });
        // Four were counted, so the next window is whole.
        assert!(!link.handle_skipped(A) && link.handle_skipped(A));
        assert_eq!(link.pick(at(3)), None);
    }
}

#[test]
fn static_priority_ignores_rates() {
    let mut link = link(Policy::StaticPriority, &[Some(every(10)), None, None]);
    link.join(B, Terms::new(ServiceClass::BestEffort).with_rate(1_000_000));
    link.join(C, Terms::new(ServiceClass::BestEffort).with_priority(u32::MAX));
    for stream in [B, C, A] {
        link.handle_head(stream, head(0, 1));
    }
    let mut order = Vec::new();
    while let Some(stream) = link.pick(at(0)) {
        link.handle_served(stream, 1, at(0));
        order.push(stream);
    }
    assert_eq!(order, [A, C, B]);
}

#[test]
fn a_sample_longer_than_its_deadline_is_missed_at_the_origin_of_the_clock_too() {
    for policy in POLICIES {
        let mut link = link(policy, &[Some(every(10))]);
        link.handle_head(A, head(0, 11));
        let miss = Miss { stream: A, dropped: true, violated: true };
        assert_eq!((link.poll_missed(at(0)), link.poll_missed(at(0))), (Some(miss), None));
    }
}

#[test]
fn a_period_that_ends_after_the_last_instant_never_begins() {
    let without_periods = [Policy::Fifo, Policy::Drr, Policy::Wf2qPlus, Policy::Hfsc];
    for policy in POLICIES.into_iter().filter(|policy| !without_periods.contains(policy)) {
        let mut link = link(policy, &[Some(Contract { period: Duration::MAX, ..every(1) }), None]);
        link.handle_head(A, head(0, 1));
        link.handle_served(A, 1, at(1));
        link.handle_head(B, head(1, 2));
        link.handle_head(A, head(1, 1));
        let last = Instant::FAR - Duration::from_nanos(1);
        assert_eq!((link.pick(at(1)), link.next_change(at(1))), (Some(B), None), "{policy}");
        assert_eq!((link.poll_missed(last), link.pick(last)), (None, Some(B)), "{policy}");
    }
}

#[test]
fn a_suspended_head_that_gets_shorter_stays_suspended() {
    for policy in POLICIES {
        let mut link = link(policy, &[Some(every(10)), Some(every(10))]);
        link.handle_head(A, head(0, 2));
        link.suspend(A);
        link.handle_left(A, left(1));
        assert_eq!(link.pick(at(0)), None, "{policy}");
        link.handle_segment(A, 1, left(1));
        assert_eq!(link.pick(at(0)), None, "{policy}");
        link.handle_served(A, 1, at(1));
        link.handle_head(A, head(1, 1));
        assert_eq!(link.pick(at(1)), None, "{policy}");
        link.resume(A);
        assert_eq!(link.pick(at(1)), Some(A), "{policy}");
    }
}

#[test]
fn a_new_capacity_keeps_the_service_order() {
    let terms = Terms::new(ServiceClass::BestEffort).with_rate(1_000);
    for policy in POLICIES {
        let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
        for stream in [A, B, C] {
            link.join(stream, terms);
            link.handle_head(stream, head(0, 9));
        }
        let first = link.pick(at(0)).unwrap();
        let mut other = link.clone();
        for stream in [A, B, C] {
            other.handle_left(stream, Left { service: ms(5), segment: 1, last: true });
        }
        assert_eq!(other.pick(at(0)), Some(first), "{policy}");
        assert_eq!(segments(&mut other, at(0), 7), segments(&mut link, at(0), 7), "{policy}");
    }
}

#[test]
fn demoted_heads_are_served_as_best_effort_and_use_no_period() {
    for policy in POLICIES {
        let mut link = link(policy, &[None, Some(every(10))]);
        link.handle_head(A, head(0, 1));
        link.handle_demoted(B, head(0, 1));
        // FIFO orders best effort by arrival; under all other disciplines the two are served in round
        // robin.
        let order: Vec<_> = (1..=2)
            .filter_map(|millis| {
                let stream = link.pick(at(0))?;
                link.handle_served(stream, 1, at(millis));
                Some(stream)
            })
            .collect();
        assert_eq!(order.len(), 2, "{policy}: {order:?}");
        assert!(policy == Policy::Fifo || order == [A, B], "{policy}: {order:?}");
        // Its period was not used, so the next sample has it and its deadline.
        link.handle_head(B, head(2, 1));
        assert_eq!(link.deadline(B), Some(at(12)), "{policy}");
        link.handle_head(A, head(2, 1));
        assert_eq!(link.pick(at(2)), Some(B), "{policy}");
        link.handle_served(B, 1, at(3));
        // It precedes the demoted head of another stream, and a demoted head is counted.
        link.handle_demoted(B, head(3, 1));
        assert_eq!(link.deadline(B), Some(at(13)), "{policy}");
        let miss = link.poll_missed(past(12));
        assert_eq!(miss, Some(Miss { stream: B, dropped: true, violated: true }), "{policy}");
    }
}
