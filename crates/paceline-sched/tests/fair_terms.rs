//! DRR and WF²Q+ at the ends of their ranges, and next to streams without a share.

use paceline_sched::contract::Contract;
use paceline_sched::discipline::{
    Discipline, Eligibility, Head, Left, Policy, Scheduler, ServiceClass, StreamIndex, Terms,
};
use paceline_sched::time::{Duration, Instant};

const A: StreamIndex = StreamIndex(0);
const B: StreamIndex = StreamIndex(1);
const C: StreamIndex = StreamIndex(2);
const FAIR: [Policy; 2] = [Policy::Drr, Policy::Wf2qPlus];
const NOW: Instant = Instant::ZERO;

fn left(segment: u32) -> Left {
    Left { service: Duration::from_nanos(1), segment, last: true }
}

fn head(segment: u32) -> Head {
    Head { arrived: NOW, left: left(segment) }
}

fn with_rates(policy: Policy, rates: &[u64]) -> Discipline {
    let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
    for (stream, &rate) in (0..).zip(rates) {
        link.join(StreamIndex(stream), Terms::new(ServiceClass::BestEffort).with_rate(rate));
    }
    link
}

fn announce(link: &mut Discipline, streams: &[StreamIndex], segment: u32) {
    for &stream in streams {
        link.handle_head(stream, head(segment));
    }
}

/// Returns the number of segments, of `count`, that each of three streams sends, with the announced
/// lengths.
fn sent(link: &mut Discipline, segments: [u32; 3], count: usize) -> [usize; 3] {
    let mut sent = [0; 3];
    for _ in 0..count {
        let Some(stream) = link.pick(NOW) else { break };
        let at = stream.0 as usize;
        let segment = segments.get(at).copied().unwrap_or(1);
        link.handle_segment(stream, segment, left(segment));
        if let Some(sent) = sent.get_mut(at) {
            *sent += 1;
        }
    }
    sent
}

#[test]
fn shares_hold_from_one_byte_to_a_hundred_gigabytes_per_second() {
    for policy in FAIR {
        let mut link = with_rates(policy, &[1, 100_000_000_000]);
        link.handle_head(A, head(1_500));
        link.handle_head(B, head(u32::MAX));
        // Stream A takes 1,500 s at its rate for a packet.
        let expected = usize::try_from(1_500 * 100_000_000_000 / u64::from(u32::MAX)).unwrap();
        let [mut between, mut packets] = [0, 0];
        // Its first packet, which B need not wait for, then one each time.
        while packets < 4 {
            match link.pick(NOW) {
                Some(A) => {
                    assert!(packets == 0 || expected.abs_diff(between) <= 2, "{policy} {between}");
                    link.handle_segment(A, 1_500, left(1_500));
                    (between, packets) = (0, packets + 1);
                }
                _ => {
                    link.handle_segment(B, u32::MAX, left(u32::MAX));
                    between += 1;
                }
            }
            assert!(between <= 2 * expected, "{policy}");
        }
    }
}

#[test]
fn out_of_range_rates_are_clamped() {
    for policy in FAIR {
        let segments = [100; 3];
        let mut shares = [[0, 1, 2], [1, 1, 2]].map(|rates| {
            let mut link = with_rates(policy, &rates);
            announce(&mut link, &[A, B, C], 100);
            sent(&mut link, segments, 400)
        });
        assert_eq!(shares[0], shares[1], "{policy}");
        assert_eq!(shares[0], [100, 100, 200], "{policy}");
        shares = [u64::MAX, Terms::RATE_MAX].map(|rate| {
            let mut link = with_rates(policy, &[rate, rate, Terms::RATE_MAX / 2]);
            announce(&mut link, &[A, B, C], 100);
            sent(&mut link, segments, 50_000)
        });
        assert_eq!(shares[0], shares[1], "{policy}");
    }
}

/// The actual length is charged: an empty segment counts as a byte, and a longer one leaves a debt.
#[test]
fn wrong_lengths_are_charged_later() {
    for policy in FAIR {
        let mut link = with_rates(policy, &[1_000, 1_000, 1_000]);
        announce(&mut link, &[A, B, C], 0);
        assert_eq!(sent(&mut link, [0, 1, 0], 300), [100; 3], "{policy}");
        let mut link = with_rates(policy, &[1_000, 1_000]);
        announce(&mut link, &[A, B], 100);
        let mut bytes = [0u64; 2];
        for _ in 0..1_000 {
            match link.pick(NOW) {
                Some(A) => {
                    // It announces 100 bytes and sends 900.
                    link.handle_segment(A, 900, left(100));
                    bytes[0] += 900;
                }
                _ => {
                    link.handle_segment(B, 100, left(100));
                    bytes[1] += 100;
                }
            }
        }
        assert!(bytes[0].abs_diff(bytes[1]) <= 1_000, "{policy} {bytes:?}");
    }
}

#[test]
fn streams_without_contract_or_rate_wait_for_those_with_one() {
    for policy in FAIR {
        let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
        link.join(A, None);
        link.join(B, Terms::new(ServiceClass::BestEffort).with_rate(1_000));
        link.join(C, Some(Contract::every(Duration::from_secs(1)).unwrap()));
        announce(&mut link, &[A, B, C], 100);
        // A contract without a rate has the share of one byte per second.
        assert_eq!(sent(&mut link, [100; 3], 1_000)[0], 0, "{policy}");
        // The background stays behind best effort, whatever its rate.
        link.join(B, Terms::new(ServiceClass::Background).with_rate(1_000));
        link.handle_head(B, head(100));
        link.remove_head(C);
        assert_eq!(sent(&mut link, [100; 3], 10), [10, 0, 0], "{policy}");
        link.leave(A);
        assert_eq!(sent(&mut link, [100; 3], 10), [0, 10, 0], "{policy}");
    }
}

/// A pause accumulates no credit, of either kind, and causes no penalty.
#[test]
fn a_paused_stream_resumes_with_its_share() {
    for policy in FAIR {
        for suspends in [false, true] {
            let mut link = with_rates(policy, &[1_000, 1_000, 1_000]);
            announce(&mut link, &[A, B, C], 100);
            let pause = |link: &mut Discipline| {
                if suspends {
                    link.suspend(A)
                } else {
                    let _ = link.remove_head(A);
                }
            };
            pause(&mut link);
            assert_eq!(sent(&mut link, [100; 3], 200), [0, 100, 100], "{policy}");
            if suspends {
                link.resume(A)
            } else {
                link.handle_head(A, head(100))
            }
            let [a, b, c] = sent(&mut link, [100; 3], 30);
            assert!([a, b, c].iter().all(|&sent| (9..=11).contains(&sent)), "{policy} {a} {b} {c}");
        }
    }
}

/// A stream that joins when others have been busy for long starts at their position, without arrears or
/// debt. The same applies after all streams had left and the link was idle.
#[test]
fn a_late_stream_starts_level_with_the_others() {
    for policy in FAIR {
        let mut link = with_rates(policy, &[1_000, 1_000]);
        announce(&mut link, &[A, B], 100);
        assert_eq!(sent(&mut link, [100; 3], 2_000), [1_000, 1_000, 0], "{policy}");
        link.join(C, Terms::new(ServiceClass::BestEffort).with_rate(1_000));
        assert_eq!(
            sent(&mut link, [100; 3], 2_000),
            [1_000, 1_000, 0],
            "{policy}: a joining stream was served"
        );
        link.handle_head(C, head(100));
        for round in 1..=50 {
            let [a, b, c] = sent(&mut link, [100; 3], 3);
            assert_eq!([a, b, c], [1, 1, 1], "{policy}, round {round}");
        }
        // C continues alone for long, all leave, and the two that were idle are level with it again.
        link.remove_head(A);
        link.remove_head(B);
        assert_eq!(sent(&mut link, [100; 3], 900), [0, 0, 900], "{policy}");
        link.remove_head(C);
        assert_eq!(link.pick(NOW), None);
        announce(&mut link, &[C, B, A], 100);
        for round in 1..=50 {
            let [a, b, c] = sent(&mut link, [100; 3], 3);
            assert_eq!([a, b, c], [1, 1, 1], "{policy} after an empty link, round {round}");
        }
    }
}

/// A stream leaves while its segment is in transmission. Later reports about it are ignored. The other
/// streams continue as if it had never joined, and so does a stream that joins with its index.
#[test]
fn a_stream_removed_in_service_is_gone() {
    for policy in Policy::ALL {
        let mut link = with_rates(policy, &[1_000, 1_000, 1_000]);
        announce(&mut link, &[A, B, C], 100);
        let served = link.pick(NOW).unwrap();
        link.leave(served);
        let nothing = link.handle_served(served, 100, NOW + Duration::from_secs(1));
        assert!(nothing.on_time && !nothing.violated, "{policy}");
        link.handle_segment(served, 100, left(100));
        let gone = usize::try_from(served.0).unwrap();
        let shares = matches!(policy, Policy::Drr | Policy::Wf2qPlus | Policy::Hfsc);
        let counts = sent(&mut link, [100; 3], 100);
        let even = (0..3).all(|at| counts[at] == if at == gone { 0 } else { 50 });
        assert_eq!((counts[gone], counts.iter().sum::<usize>()), (0, 100), "{policy} {counts:?}");
        assert!(even || !shares, "{policy} {counts:?}");
        // Picked, and another stream takes its index before the end of the segment is reported.
        let served = link.pick(NOW).unwrap();
        link.join(served, Terms::new(ServiceClass::BestEffort).with_rate(1_000));
        link.handle_served(served, 100, NOW);
        link.leave(served);
        link.join(served, Terms::new(ServiceClass::BestEffort).with_rate(1_000));
        link.handle_head(served, head(100));
        let counts = sent(&mut link, [100; 3], 100);
        let even = (0..3).all(|at| at == gone || (49..=51).contains(&counts[at]));
        assert_eq!((counts[gone], counts.iter().sum::<usize>()), (0, 100), "{policy} {counts:?}");
        assert!(even || !shares, "{policy} {counts:?}");
    }
}
