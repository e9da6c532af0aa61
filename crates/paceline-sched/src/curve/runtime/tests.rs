use super::*;
use crate::time::Duration;
use std::vec::Vec;

const BYTE: i128 = 8_000_000_000;

/// SplitMix64.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % below
}

/// S(`after`) from the definition, in nanobits.
fn value(curve: &Curve, after: i128) -> i128 {
    let (m1, d, m2) = (curve.m1(), i128::from(curve.d().as_nanos()), curve.m2());
    i128::from(m1) * after.min(d) + i128::from(m2) * (after - d).max(0)
}

/// Returns the least time from `from` on at which the minimum of all copies has reached `y` bytes.
fn time_of_minimum(curve: &Curve, origins: &[(i128, u64)], y: u64) -> i128 {
    let reached = |x: i128| {
        let copies = origins.iter().filter(|(at, _)| *at <= x);
        let values = copies.map(|&(at, from)| value(curve, x - at) + i128::from(from) * BYTE);
        values.min().is_some_and(|least| least >= i128::from(y) * BYTE)
    };
    let (mut low, mut high) = (origins.last().unwrap().0, 1_i128 << 83);
    if reached(low) {
        return low;
    }
    while high - low > 1 {
        let middle = i128::midpoint(low, high);
        if reached(middle) { high = middle } else { low = middle }
    }
    high
}

#[test]
fn repeated_minima_of_concave_copies_are_exact() {
    for seed in 0..3_000 {
        let mut state = seed;
        let m2 = 1 + random(&mut state, 1 << (1 + seed % 40));
        let m1 = m2 + random(&mut state, 1 << (1 + seed % 41));
        let d = Duration::from_nanos(random(&mut state, 1 << (1 + seed % 37)));
        let curve = Curve::two_piece(m1, d, m2).unwrap();
        let mut runtime = RuntimeCurve::UNBOUNDED;
        let (mut x, mut y) = (0_u64, 0_u64);
        let mut origins = Vec::new();
        for _ in 0..12 {
            x += random(&mut state, 1 << (1 + seed % 37));
            let most = curve.bytes_at(Duration::from_nanos(x)).saturating_sub(y);
            y += random(&mut state, most.min(1 << 50) + 2);
            runtime.min_with(&curve, u128::from(x), y);
            origins.push((i128::from(x), y));
            for _ in 0..4 {
                let asked = y + 1 + random(&mut state, 1 << (1 + seed % 30));
                let expected = time_of_minimum(&curve, &origins, asked);
                let time = i128::try_from(runtime.time_of(&curve, asked)).unwrap();
                assert_eq!(time, expected, "seed {seed}: {curve}, {asked} bytes, {origins:?}");
            }
        }
    }
}

#[test]
fn the_convex_copy_that_is_lower_in_the_long_run_is_kept() {
    let curve = Curve::two_piece(0, Duration::from_millis(10), 8_000_000).unwrap();
    let mut runtime = RuntimeCurve::UNBOUNDED;
    runtime.min_with(&curve, 0, 0);
    // 10 ms without service, then a byte per microsecond.
    assert_eq!(runtime.time_of(&curve, 0), 0);
    assert_eq!(runtime.time_of(&curve, 1), 10_001_000);
    assert_eq!(runtime.time_on_line(&curve, 1_000), 1_000_000);
    // Served 1,000 bytes ahead of its eligible curve: the curve stays, since it asks for later times.
    runtime.min_with(&curve, 5_000_000, 6_000);
    assert_eq!(runtime.time_of(&curve, 6_001), 16_001_000);
    // Ahead of its deadline curve, but not of its eligible curve: it restarts.
    runtime.min_with(&curve, 17_000_000, 7_500);
    assert_eq!(runtime.time_of(&curve, 7_501), 27_001_000);
}

#[test]
fn the_minimum_of_convex_copies_is_exact_if_flat_at_first_and_never_late() {
    let (mut exact, mut early) = (0, 0);
    for seed in 0..4_000 {
        let mut state = seed;
        let flat = seed % 2 == 0;
        let m1 = if flat { 0 } else { 1 + random(&mut state, 1_000_000) };
        let m2 = m1 + 1 + random(&mut state, 1_000_000);
        let d = Duration::from_nanos(random(&mut state, 50_000_000));
        let curve = Curve::two_piece(m1, d, m2).unwrap();
        let (mut runtime, mut x, mut y) = (RuntimeCurve::UNBOUNDED, 0, 0);
        let mut origins = Vec::new();
        for _ in 0..6 {
            x += random(&mut state, 50_000_000);
            y += random(&mut state, 3_000);
            runtime.min_with(&curve, u128::from(x), y);
            origins.push((i128::from(x), y));
            let asked = y + 1 + random(&mut state, 10_000);
            let time = i128::try_from(runtime.time_of(&curve, asked)).unwrap();
            let expected = time_of_minimum(&curve, &origins, asked);
            assert!(time <= expected, "{curve}, {asked} bytes, {origins:?}");
            assert!(time == expected || !flat, "{curve}, {asked} bytes, {origins:?}");
            exact += u32::from(flat);
            early += u32::from(time < expected);
        }
    }
    assert!(exact > 1_000 && early > 0, "{exact} exact, {early} early");
}

#[test]
fn the_ends_of_the_range_saturate() {
    let slow = Curve::linear(1).unwrap();
    let mut runtime = RuntimeCurve::starting(&slow, u128::from(u64::MAX), 0);
    assert!(runtime.time_of(&slow, u64::MAX) > u128::from(u64::MAX));
    runtime.min_with(&slow, u128::MAX, u64::MAX);
    assert_eq!(runtime.time_of(&slow, u64::MAX), u128::MAX);
    let fast = Curve::two_piece(10_000_000_000_000, Duration::MAX, 1).unwrap();
    let mut runtime = RuntimeCurve::starting(&fast, 0, 0);
    runtime.min_with(&fast, u128::MAX, 5);
    assert_eq!(runtime.time_of(&fast, 4), u128::MAX);
}
