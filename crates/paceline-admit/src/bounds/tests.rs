//! Worked examples, and comparisons of each bound with the exact value for every instant.

use super::edf::{Due, feasible, least_deadline};
use super::*;

fn mbit(rate: u64) -> Capacity {
    Capacity::from_bits_per_s(rate * 1_000_000).unwrap()
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// Flow 1: 30 kbit, 20 Mbit/s. Flow 2: 60 kbit, 30 Mbit/s. Packets of 12,000 bit.
fn flows() -> [Traffic; 2] {
    let flow = |bits: u64, mbit: u64| Traffic::leaky(bits / 8, mbit * 1_000_000, 1_500).unwrap();
    [flow(30_000, 20), flow(60_000, 30)]
}

#[test]
fn a_burst_is_paid_for_once_along_a_path() {
    let traffic = Traffic::leaky(22_500, 10_000_000, 4_500).unwrap();
    let node = LatencyRate::link(mbit(30), Duration::from_millis(1));
    let path = node.then(node).then(node);
    assert_eq!(path, LatencyRate { rate: 30_000_000, latency: Duration::from_millis(3) });
    assert_eq!(path.delay(&traffic), Some(micros(9_000)));
    // Node by node: 7 + 7.333 + 7.667 ms, because the burst grows at each node.
    let mut alone = traffic;
    let mut each = Vec::new();
    for _ in 0..3 {
        each.push(node.delay(&alone).unwrap().as_nanos());
        alone = node.output(&alone).unwrap();
    }
    assert_eq!(each, [7_000_000, 7_333_334, 7_666_667]);
    assert_eq!(each.iter().sum::<u64>(), 22_000_001, "22 ms, rounded up at two nodes");
    // Q = σ + ρ T, which is also the burst of the output.
    assert_eq!(node.backlog(&traffic), Some(22_500 + 1_250));
    assert_eq!(node.output(&traffic).unwrap().burst(), 23_750);
}

#[test]
fn fifo_static_priority_and_edf_have_the_worked_bounds() {
    let [first, second] = flows();
    let link = LatencyRate::link(mbit(100), Duration::ZERO);
    let none = Sum::default();
    let sp = |before, level, lower| static_priority(link, before, level, lower);
    let (one, two) = (Sum::of(&[first]), Sum::of(&[second]));
    assert_eq!(sp(none, one, 1_500), Some(micros(420)));
    assert_eq!(sp(one, two, 1_500), Some(micros(1_275)));
    assert_eq!(sp(one, two, 0), Some(micros(1_125)));
    let all = Sum::of(&[first, second]);
    assert_eq!(fifo(link, all, 0), Some(micros(900)));
    assert_eq!(fifo(link, all, 1_500), Some(micros(1_020)));
    let most = Duration::from_millis(100);
    let held = |deadline| [Due { traffic: first, deadline }];
    let least = |other| least_deadline(mbit(100), &held(micros(500)), second, other, most);
    assert_eq!(least(0), Some(micros(1_000)));
    assert_eq!(least(1_500), Some(micros(1_150)));
    let behind = [Due { traffic: second, deadline: micros(2_000) }];
    assert_eq!(least_deadline(mbit(100), &behind, first, 0, most), Some(micros(420)));
    let both = [
        Due { traffic: first, deadline: micros(500) },
        Due { traffic: second, deadline: micros(999) },
    ];
    assert_eq!(feasible(mbit(100), &both, 0), Err(micros(999)));
    assert!(feasible(mbit(49), &both, 0).is_err());
}

#[test]
fn capacity_left_by_others_is_a_server() {
    let [first, second] = flows();
    let link = LatencyRate::link(mbit(100), micros(100));
    // (60 kbit + 100 Mbit/s × 0.1 ms) ÷ 70 Mbit/s.
    let left = left_by(link, Sum::of(&[second])).unwrap();
    assert_eq!(left, LatencyRate { rate: 70_000_000, latency: Duration::from_nanos(1_000_000) });
    assert_eq!(left.delay(&first), Some(Duration::from_nanos(1_428_572)));
    assert_eq!(left_by(LatencyRate { rate: 30_000_000, ..link }, Sum::of(&[second])), None);
    assert_eq!(
        static_priority(link, Sum { burst: 0, rate: 80_000_001 }, Sum::of(&[first]), 0),
        None
    );
}

/// A deterministic pseudo-random number.
fn scatter(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn deviations_match_an_exhaustive_search() {
    let mut state = 7;
    for _ in 0..400 {
        let mut within = |low: u64, high: u64| low + scatter(&mut state) % (high - low + 1);
        let rate = within(1, 900) * 8_000_000;
        let dual = Dual {
            peak_burst: within(1, 30),
            peak_rate: rate + within(0, 90) * 80_000_000,
            burst: 30 + within(0, 300),
            rate,
        };
        let traffic = Traffic::new(dual, 1, u64::from(u32::MAX)).unwrap();
        let server = LatencyRate {
            rate: rate + within(0, 900) * 8_000_000,
            latency: Duration::from_nanos(within(0, 400)),
        };
        let beta = |t: u128| {
            u128::from(server.rate) * t.saturating_sub(u128::from(server.latency.as_nanos()))
        };
        let (mut delay, mut backlog) = (0, 0);
        // The pieces of the curve cross before this horizon.
        for t in 0..34_000u128 {
            let sent = traffic.nanobits_in(t);
            let done =
                sent.div_ceil(u128::from(server.rate)) + u128::from(server.latency.as_nanos());
            delay = delay.max(done.saturating_sub(t));
            backlog = backlog.max(sent.saturating_sub(beta(t)).div_ceil(NANOBITS));
        }
        let told = u128::from(server.delay(&traffic).unwrap().as_nanos());
        assert!(told >= delay && told <= delay + 2, "{traffic} {server:?}: {told} for {delay}");
        let told = u128::from(server.backlog(&traffic).unwrap());
        assert!(
            told >= backlog && told <= backlog + 2,
            "{traffic} {server:?}: {told} for {backlog}"
        );
        // The output in any interval is below the output curve: α(t + u) − β(u) for every u.
        let output = server.output(&traffic).unwrap();
        for t in [0, 1, 50, 300, 1_500] {
            let most =
                (0..2_000u128).map(|u| traffic.nanobits_in(t + u).saturating_sub(beta(u))).max();
            assert!(output.nanobits_in(t) >= most.unwrap_or(0), "{traffic} {server:?} at {t}");
        }
    }
}
