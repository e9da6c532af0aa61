//! The ends of every range: rates, instants, lengths, numbers of streams, stalls, clocks set back.

use paceline_sched::capacity::{Capacity, ZeroCapacity};
use paceline_sched::contract::{Contract, Late, LossTolerance};
use paceline_sched::discipline::{
    Discipline, Eligibility, Head, Miss, Policy, RuleSet, Scheduler, StreamIndex, WindowState,
};
use paceline_sched::time::{Duration, Instant};

const A: StreamIndex = StreamIndex(0);
const B: StreamIndex = StreamIndex(1);
const YEAR: Duration = Duration::from_secs(365 * 86_400);
/// The edge values of 64 bits.
const EDGES: [u64; 6] = [0, 1, 1 << 32, 1 << 63, u64::MAX - 1, u64::MAX];

fn contract(period: Duration, loss: LossTolerance, late: Late) -> Contract {
    Contract { period, deadline: period, loss, late, jitter: Duration::ZERO }
}

fn streams(count: u32) -> impl Iterator<Item = StreamIndex> {
    (0..count).map(StreamIndex)
}

fn years(count: u64) -> Instant {
    Instant::ZERO + YEAR.mul_div(count, 1)
}

/// Four backlogged streams that may miss nothing and fill the link: 1,000 periods.
fn assert_full_link_is_kept(policy: Policy, service: Duration) {
    let period = service.mul_div(4, 1);
    let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
    let head = |turn: u64| {
        let arrived = Instant::ZERO + period.mul_div(turn, 1);
        Head::whole(arrived, service, 1_500)
    };
    for stream in streams(4) {
        link.join(stream, Some(contract(period, LossTolerance::NONE, Late::Drop)));
        link.handle_head(stream, head(0));
    }
    let mut now = Instant::ZERO;
    let mut served = [0_u64; 4];
    for slot in 0..4_000 {
        assert_eq!(link.poll_missed(now), None, "{policy} with {service}, slot {slot}");
        let Some(stream) = link.pick(now) else { panic!("{policy}: no stream in slot {slot}") };
        now += service;
        assert!(link.handle_served(stream, 1_500, now).on_time, "{policy} with {service}");
        if let Some(count) = served.get_mut(stream.0 as usize) {
            *count += 1;
            link.handle_head(stream, head(*count));
        }
    }
    assert_eq!(served, [1_000; 4], "{policy} with {service}");
}

#[test]
fn every_discipline_fills_links_from_one_bit_to_800_gigabits_a_second() {
    assert_eq!(Capacity::from_bits_per_s(1), Err(ZeroCapacity));
    // At 1 bit/s, which is not a capacity, a packet of 1,500 bytes would take 12,000 s.
    let mut services = vec![Duration::from_secs(12_000)];
    for bits in
        [8, 9_600, 1_000_000, 9_999_999_999, 68_000_000_000, 69_000_000_000, 800_000_000_000]
    {
        services.push(Capacity::from_bits_per_s(bits).unwrap().time_for(1_500));
    }
    assert_eq!(services.last(), Some(&Duration::from_nanos(15)));
    for policy in Policy::ALL {
        services.iter().for_each(|&service| assert_full_link_is_kept(policy, service));
    }
}

#[test]
fn a_stream_idle_for_years_returns_with_a_fresh_period_and_its_old_window() {
    for policy in Policy::ALL {
        let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
        let period = Duration::from_millis(10);
        let loss = LossTolerance::new(1, 3).unwrap();
        link.join(A, Some(contract(period, loss, Late::Drop)));
        link.handle_head(A, Head::whole(Instant::ZERO, Duration::from_millis(1), 1));
        link.handle_served(A, 1, Instant::from_millis(1));
        let window = link.window(A);
        for years in (100..=500).step_by(100).map(years) {
            assert_eq!((link.poll_missed(years), link.pick(years)), (None, None), "{policy}");
            assert_eq!((link.next_change(years), link.window(A)), (None, window), "{policy}");
        }
        link.handle_head(A, Head::whole(years(500), Duration::from_millis(1), 1));
        assert_eq!(link.deadline(A), Some(years(500) + period), "{policy}");
        assert_eq!((link.poll_missed(years(500)), link.pick(years(500))), (None, Some(A)));
    }
}

#[test]
fn five_hundred_years_of_nanosecond_periods_pass_in_one_step() {
    for policy in Policy::ALL {
        let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
        let loss = LossTolerance::new(1, 2).unwrap();
        link.join(A, Some(contract(Duration::from_nanos(1), loss, Late::Send)));
        link.handle_head(A, Head::whole(Instant::ZERO, Duration::from_nanos(1), 1));
        let now = years(500);
        assert!(link.poll_missed(now).is_some_and(|miss| !miss.dropped), "{policy}");
        assert_eq!((link.poll_missed(now), link.pick(now)), (None, Some(A)), "{policy}");
        assert_eq!(link.deadline(A), Some(now + Duration::from_nanos(1)), "{policy}");
        if let Policy::Dwcs { adjustment, .. } = policy {
            let tagged = adjustment == RuleSet::Later;
            let expected = WindowState { x: 0, y: u32::MAX, tagged };
            assert_eq!(link.window(A), Some(expected), "{policy}");
        }
    }
}

#[test]
fn contracts_services_and_instants_accept_any_64_bit_value() {
    for policy in Policy::ALL {
        for (period, due, jitter) in triples() {
            for late in [Late::Drop, Late::Send] {
                let terms = Contract {
                    period: Duration::from_nanos(period),
                    deadline: Duration::from_nanos(due),
                    loss: LossTolerance::new(1, LossTolerance::Y_MAX).unwrap(),
                    late,
                    jitter: Duration::from_nanos(jitter),
                };
                assert_survives(policy, terms);
            }
        }
    }
}

fn triples() -> impl Iterator<Item = (u64, u64, u64)> {
    let pairs = EDGES.iter().flat_map(|&a| EDGES.iter().map(move |&b| (a, b)));
    pairs.flat_map(|(a, b)| EDGES.iter().map(move |&c| (a, b, c)))
}

/// Two heads in sequence for each service and instant; a miss is reported once, and the loop ends.
fn assert_survives(policy: Policy, terms: Contract) {
    for service in EDGES {
        let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
        link.join(A, Some(terms));
        for now in EDGES.map(Instant::from_nanos) {
            for arrived in [Instant::ZERO, now] {
                link.handle_head(A, Head::whole(arrived, Duration::from_nanos(service), u32::MAX));
                let reported = link.poll_missed(now);
                assert_eq!(link.poll_missed(now), None, "{policy} {terms:?} at {now}");
                let dropped = reported.is_some_and(|miss| miss.dropped);
                assert_eq!(link.pick(now), (!dropped).then_some(A), "{policy} {terms:?} at {now}");
                let change = link.next_change(now);
                assert!(change.is_none_or(|at| at > now), "{policy} {terms:?} at {now}");
                let window = link.window(A);
                let sound = |now: WindowState| now.x <= now.y && now.x <= terms.loss.x();
                assert!(window.is_some_and(sound), "{window:?}");
                link.handle_served(A, u32::MAX, now);
            }
        }
    }
}

#[test]
fn released_heads_stay_released_when_the_clock_goes_back() {
    let at = Instant::from_millis;
    let without_periods = [Policy::Fifo, Policy::Drr, Policy::Wf2qPlus, Policy::Hfsc];
    for policy in Policy::ALL.into_iter().filter(|policy| !without_periods.contains(policy)) {
        let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
        let period = Duration::from_millis(10);
        link.join(A, Some(contract(period, LossTolerance::NONE, Late::Drop)));
        link.join(B, None);
        link.handle_head(A, Head::whole(at(5), Duration::from_millis(1), 1));
        link.handle_served(A, 1, at(6));
        link.handle_head(B, Head::whole(at(6), Duration::from_millis(9), 1));
        link.handle_head(A, Head::whole(at(6), Duration::from_millis(1), 1));
        // Ahead of its period by no more than its relative deadline.
        assert_eq!(
            (link.pick(at(6)), link.next_change(at(6))),
            (Some(A), Some(at(15))),
            "{policy}"
        );
        assert_eq!(link.pick(at(15)), Some(A), "{policy}");
        assert_eq!((link.poll_missed(at(0)), link.pick(at(0))), (None, Some(A)), "{policy}");
        assert_eq!(link.deadline(A), Some(at(25)), "{policy}");
        // A head that arrives at the earlier instant is ahead of its period like any other.
        link.handle_served(A, 1, at(1));
        link.handle_head(A, Head::whole(at(1), Duration::from_millis(1), 1));
        assert_eq!((link.pick(at(1)), link.deadline(A)), (Some(B), Some(at(35))), "{policy}");
    }
}

/// The number of samples of each stream that wait behind its head when the link recovers.
const WAITING: u64 = 5;

/// An iteration over 10,000 streams at 100 Hz after a stall of 30 s. Returns its misses, and the link
/// after it.
fn turn_after_stall(policy: Policy, late: Late) -> (Vec<Miss>, Discipline) {
    const STREAMS: u32 = 10_000;
    let mut link = Discipline::new(policy, Eligibility::OncePerPeriod);
    let period = Duration::from_millis(10);
    let loss = LossTolerance::new(2, 8).unwrap_or(LossTolerance::NONE);
    link.reserve(STREAMS as usize);
    let head =
        |turn: u64| Head::whole(Instant::from_millis(10 * turn), Duration::from_nanos(100), 1_000);
    for stream in streams(STREAMS) {
        link.join(stream, Some(contract(period, loss, late)));
        link.handle_head(stream, head(0));
    }
    let now = Instant::ZERO + Duration::from_secs(30);
    let mut misses = Vec::new();
    let mut announced = vec![0; STREAMS as usize];
    while let Some(miss) = link.poll_missed(now) {
        misses.push(miss);
        if let Some(turn) = announced.get_mut(miss.stream.0 as usize).filter(|_| miss.dropped) {
            *turn += 1;
            if *turn <= WAITING {
                link.handle_head(miss.stream, head(*turn));
            }
        }
    }
    (misses, link)
}

#[test]
fn after_a_stall_each_late_head_is_one_step_for_any_number_of_periods() {
    for policy in Policy::ALL {
        let (misses, mut link) = turn_after_stall(policy, Late::Send);
        assert_eq!(misses.len(), 10_000, "{policy}");
        assert!(
            misses.windows(2).all(|pair| pair[0].stream < pair[1].stream),
            "{policy}: in order"
        );
        let now = Instant::ZERO + Duration::from_secs(30);
        // 3,000 periods: two use up x', the others increase y' from 6 by 1 or by ⌈7/2⌉. The disciplines
        // that count samples count one.
        let mut expected = (1, 7, false);
        if let Policy::Dwcs { adjustment, .. } = policy {
            expected = match adjustment {
                RuleSet::Later => (0, 6 + 2_998, true),
                RuleSet::Original => (0, 6 + 4 * 2_998, false),
            };
        }
        for stream in streams(10_000) {
            let window = link.window(stream).map(|window| (window.x, window.y, window.tagged));
            assert_eq!(window, Some(expected), "{policy} {stream:?}");
            assert_eq!(link.deadline(stream), Some(now + Duration::from_millis(10)), "{policy}");
        }
        assert!(link.pick(now).is_some(), "{policy}");
    }
}

#[test]
fn after_a_stall_each_dropped_sample_is_one_step() {
    for policy in Policy::ALL {
        let (misses, mut link) = turn_after_stall(policy, Late::Drop);
        // Heads and the samples behind them, each reported once, and nothing else.
        assert_eq!(misses.len() as u64, 10_000 * (1 + WAITING), "{policy}");
        let violated = misses.iter().filter(|miss| miss.violated).count();
        assert_eq!(violated, 10_000, "{policy}: the third of six misses of eight");
        let now = Instant::ZERO + Duration::from_secs(30);
        assert_eq!((link.pick(now), link.next_change(now)), (None, None), "{policy}");
    }
}
