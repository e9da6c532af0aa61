//! The work of one iteration after a stall is bounded, and no sample is left uncounted.

use super::*;
use paceline_sched::LossTolerance;

const WAITING: u64 = 8;

fn contract(late: Late) -> Contract {
    let period = Duration::from_millis(10);
    let deadline = Duration::from_millis(80);
    Contract { period, deadline, loss: LossTolerance::NONE, late, jitter: Duration::ZERO }
}

/// Returns a link with the maximum number of contracted streams, each with queued samples.
fn full(late: Late, policy: Policy) -> (End, Instant) {
    let capacity = Capacity::from_bits_per_s(1_000_000_000).ok();
    let (mut a, mut b) = pair(LinkSpec { capacity, policy, ..LinkSpec::default() });
    let mut now = at(10_000);
    talk(&mut now, &mut a, &mut b, 8);
    for place in 0..STREAMS_MAX {
        let index = StreamIndex(place);
        assert!(a.link.open_stream(index, to(node(2), Kind::Data, Some(contract(late)))));
        for seq in 0..WAITING {
            assert!(a.link.handle_sample(now, index, sample(now, seq, 100)));
        }
    }
    a.link.handle_control(node(2), Bytes::from_static(b"control"));
    (a, now)
}

fn dropped(link: &Link) -> u64 {
    link.streams().map(|(_, _, counters, _)| counters.drops.total()).sum()
}

#[test]
fn an_iteration_drops_a_portion_and_the_next_is_due_at_once() {
    for policy in [Policy::Vds, Policy::DWCS, Policy::Edf, Policy::Hfsc] {
        let (mut end, now) = full(Late::Drop, policy);
        let stalled = now + Duration::from_millis(900);
        let all = u64::from(STREAMS_MAX) * WAITING;
        let mut frame = FrameBuf::default();
        let (mut before, mut turns) = (0, 0);
        loop {
            end.link.handle_timeout(stalled);
            let mut frames = 0;
            while end.link.poll_frame(stalled, &mut frame).is_some() {
                frames += 1;
            }
            let after = dropped(&end.link);
            assert!(after - before <= MISSES_PER_TURN as u64, "{policy}: {after} after {before}");
            if turns == 0 {
                assert!(
                    frames > 0 && end.link.hops.get(node(2)).unwrap().control.is_empty(),
                    "{policy}"
                );
            }
            (before, turns) = (after, turns + 1);
            if !end.link.is_behind() {
                break;
            }
            assert_eq!(end.link.poll_timeout(), stalled, "{policy}: at once");
        }
        assert_eq!(before, all, "{policy}");
        assert!(turns >= all / MISSES_PER_TURN as u64, "{policy}: {turns}");
        assert!(end.link.poll_timeout() > stalled, "{policy}");
    }
}

#[test]
fn polling_only_for_frames_also_makes_progress() {
    let (mut end, now) = full(Late::Drop, Policy::Vds);
    let mut stalled = now + Duration::from_millis(900);
    let mut frame = FrameBuf::default();
    while end.link.is_behind() || dropped(&end.link) == 0 {
        let before = dropped(&end.link);
        while end.link.poll_frame(stalled, &mut frame).is_some() {}
        assert!(dropped(&end.link) - before <= MISSES_PER_TURN as u64);
        stalled += Duration::from_nanos(1);
    }
    assert_eq!(dropped(&end.link), u64::from(STREAMS_MAX) * WAITING);
}

#[test]
fn late_samples_that_are_still_sent_are_marked_in_portions() {
    let (mut end, now) = full(Late::Send, Policy::Vds);
    let stalled = now + Duration::from_millis(900);
    let mut frame = FrameBuf::default();
    end.link.handle_timeout(stalled);
    assert!(end.link.is_behind(), "{STREAMS_MAX} heads are late");
    let mut turns = 1;
    while end.link.is_behind() {
        end.link.handle_timeout(stalled);
        turns += 1;
    }
    assert_eq!(turns, STREAMS_MAX as usize / MISSES_PER_TURN + 1);
    assert!(end.link.poll_frame(stalled, &mut frame).is_some());
    assert_eq!(dropped(&end.link), 0);
}

#[test]
fn samples_for_a_lost_hop_are_counted_at_once_and_freed_in_portions() {
    let (mut end, now) = full(Late::Drop, Policy::Vds);
    let payload = end.link.streams.get(StreamIndex(0)).unwrap().queue[0].payload.clone();
    assert!(!payload.is_unique(), "it waits");
    let silent = now + Duration::from_secs(30);
    end.link.handle_timeout(silent);
    assert_eq!(dropped(&end.link), u64::from(STREAMS_MAX) * WAITING);
    let reason = DropReason::LinkDown;
    assert!(end.link.streams().all(|(_, _, counters, _)| counters.drops.of(reason) == WAITING));
    let mut turns = 0;
    let mut frame = FrameBuf::default();
    end.link.poll_frame(silent, &mut frame);
    while end.link.poll_timeout() == silent {
        end.link.handle_timeout(silent);
        while end.link.poll_frame(silent, &mut frame).is_some() {}
        turns += 1;
    }
    let all = usize::try_from(u64::from(STREAMS_MAX) * WAITING).unwrap();
    assert!((all / MISSES_PER_TURN..=2 * all / MISSES_PER_TURN).contains(&turns), "{turns} turns");
    assert!(payload.is_unique(), "all is freed");
}

/// The same with patient streams: the samples have 80 ms of slack downstream of this link.
fn patient(policy: Policy) -> (End, Instant) {
    let (mut end, now) = full(Late::Drop, policy);
    for place in 0..STREAMS_MAX {
        let index = StreamIndex(place);
        let spec = end.link.spec_of(index).unwrap().clone();
        end.link.update_stream(now, index, StreamSpec { slack: Duration::from_millis(80), ..spec });
    }
    (end, now)
}

#[test]
fn late_samples_may_still_be_on_time_at_their_destination() {
    for policy in [Policy::Vds, Policy::DWCS, Policy::Edf, Policy::Hfsc] {
        let (mut end, now) = patient(policy);
        let mut late = now + Duration::from_millis(150);
        let mut frame = FrameBuf::default();
        for _ in 0..=STREAMS_MAX as usize / MISSES_PER_TURN {
            end.link.handle_timeout(late);
            while end.link.poll_frame(late, &mut frame).is_some() {}
            late += Duration::from_micros(20);
        }
        assert!(!end.link.is_behind(), "{policy}");
        assert!(end.link.streams().any(|(_, _, it, _)| it.sent > 0), "{policy}");
        assert_eq!(dropped(&end.link), 0, "{policy}: 150 ms of 160");
    }
}

#[test]
fn samples_too_late_for_their_destination_are_dropped_in_portions() {
    for policy in [Policy::Vds, Policy::DWCS, Policy::Edf, Policy::Hfsc] {
        let (mut end, now) = patient(policy);
        let mut stalled = now + Duration::from_millis(900);
        let mut frame = FrameBuf::default();
        let mut turns = 0;
        while dropped(&end.link) < u64::from(STREAMS_MAX) * WAITING {
            let before = dropped(&end.link);
            end.link.handle_timeout(stalled);
            while end.link.poll_frame(stalled, &mut frame).is_some() {}
            assert!(dropped(&end.link) - before <= MISSES_PER_TURN as u64, "{policy}");
            stalled += Duration::from_micros(20);
            turns += 1;
            assert!(turns < 1_000, "{policy}: {} after {turns} turns", dropped(&end.link));
        }
        let reason = DropReason::DeadlineMissed;
        assert!(end.link.streams().all(|(_, _, it, _)| it.drops.of(reason) == WAITING), "{policy}");
    }
}

#[test]
fn samples_too_late_for_their_destination_make_room_while_the_hop_is_silent() {
    let (mut end, now) = patient(Policy::Vds);
    let stalled = now + Duration::from_millis(900);
    // Each sample is missed first and dropped later; allow twice the necessary iterations.
    let turns = 4 * u64::from(STREAMS_MAX) * WAITING / MISSES_PER_TURN as u64;
    for _ in 0..=turns {
        let before = dropped(&end.link);
        end.link.handle_timeout(stalled);
        assert!(dropped(&end.link) - before <= MISSES_PER_TURN as u64);
    }
    assert_eq!(dropped(&end.link), u64::from(STREAMS_MAX) * WAITING, "without a frame");
    assert!(end.link.backlog.late_at(0).is_none());
}

#[test]
fn loss_tolerant_streams_are_not_patient_and_new_slack_keeps_deadlines() {
    let (mut end, now) = full(Late::Drop, Policy::Vds);
    let index = StreamIndex(0);
    let spec = end.link.spec_of(index).unwrap().clone();
    let slack = Duration::from_millis(80);
    let contract = spec.contract.unwrap().with_loss(LossTolerance::new(1, 2).unwrap());
    let lossy = StreamSpec { slack, contract: Some(contract), ..spec.clone() };
    let video = StreamSpec { slack, kind: Kind::VideoI, ..spec.clone() };
    let patient = StreamSpec { slack, ..spec };
    assert_eq!([&lossy, &video, &patient].map(StreamSpec::is_patient), [false, false, true]);
    end.link.update_stream(now, index, patient.clone());
    let deadline = end.link.discipline.deadline(index);
    let later = now + Duration::from_millis(5);
    end.link.update_stream(later, index, StreamSpec { slack: slack.mul_div(2, 1), ..patient });
    assert_eq!(end.link.discipline.deadline(index), deadline);
}
