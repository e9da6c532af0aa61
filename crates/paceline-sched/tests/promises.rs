//! The guarantees of the papers, on random sets of streams under their model: unit slots, backlogged
//! streams.

use paceline_sched::contract::{Contract, LossTolerance};
use paceline_sched::discipline::{
    Discipline, Eligibility, Head, Policy, RuleSet, Scheduler, StreamIndex,
};
use paceline_sched::time::{Duration, Instant};
use proptest::collection::vec;
use proptest::prelude::*;
use slots::{Slots, Spec};

#[path = "support/slots.rs"]
#[expect(clippy::indexing_slicing, dead_code, reason = "may panic; no promise needs a deadline")]
mod slots;

/// Divisible by every window and period used here, so that shares are exact.
const UNIT: u64 = 27_720;
/// The original order of heads with the later adjustment of windows.
const ORIGINAL_ORDER: Policy =
    Policy::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Later };
/// The original rules.
const ORIGINAL: Policy =
    Policy::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Original };
/// The later order of heads with the original adjustment of windows.
const LATER_ORDER: Policy =
    Policy::Dwcs { ordering: RuleSet::Later, adjustment: RuleSet::Original };

/// Σ (1 − x/y)/T, in units of 1/UNIT².
fn utilisation(specs: &[Spec]) -> u64 {
    let share = |&(x, y, period): &Spec| u64::from(y - x) * (UNIT / u64::from(y)) * (UNIT / period);
    specs.iter().map(share).sum()
}

/// Returns as many of the streams, in order, as fit in `limit` of the link.
fn feasible(specs: &[Spec], limit: u64) -> Vec<Spec> {
    let mut set = Vec::new();
    for &spec in specs {
        set.push(spec);
        if utilisation(&set) > limit {
            set.pop();
        }
    }
    set
}

fn window() -> impl Strategy<Value = (u32, u32)> {
    (1..9u32).prop_flat_map(|y| (0..=y, Just(y)))
}

fn one_period() -> impl Strategy<Value = Vec<Spec>> {
    (1..7u64, vec(window(), 1..10))
        .prop_map(|(period, windows)| windows.into_iter().map(|(x, y)| (x, y, period)).collect())
}

fn many_periods() -> impl Strategy<Value = Vec<Spec>> {
    vec((window(), 1..9u64), 1..8)
        .prop_map(|specs| specs.into_iter().map(|((x, y), period)| (x, y, period)).collect())
}

fn eligibility() -> impl Strategy<Value = Eligibility> {
    prop_oneof![Just(Eligibility::OncePerPeriod), Just(Eligibility::WorkConserving)]
}

fn longest_run(missed: &[bool]) -> usize {
    missed.split(|&missed| !missed).map(<[bool]>::len).max().unwrap_or(0)
}

/// Returns contracted streams that each have a head: period, arrival; deadline = arrival + period.
fn with_heads(
    policy: Policy,
    loss: impl Fn(usize) -> LossTolerance,
    heads: &[(u64, u64)],
) -> Discipline {
    let mut link = Discipline::new(policy, Eligibility::WorkConserving);
    for (stream, &(period, arrived)) in heads.iter().enumerate() {
        let index = StreamIndex(u32::try_from(stream).unwrap_or(u32::MAX));
        let contract = Contract {
            period: Duration::from_nanos(period),
            deadline: Duration::from_nanos(period),
            loss: loss(stream),
            late: Default::default(),
            jitter: Duration::ZERO,
        };
        link.join(index, Some(contract));
        let arrived = Instant::from_nanos(arrived);
        link.handle_head(index, Head::whole(arrived, Duration::from_nanos(1), 1));
    }
    link
}

/// Serves everything. Returns the order of service.
fn drain(link: &mut Discipline, now: Instant) -> Vec<u32> {
    let mut order = Vec::new();
    while let Some(stream) = link.pick(now) {
        link.handle_served(stream, 1, now);
        order.push(stream.0);
    }
    order
}

/// VDS is no guarantee for different periods: utilisation 0.9906, unit samples, and a violated window.
#[test]
fn vds_with_different_periods_can_fail_on_a_nearly_full_link() {
    let specs = [(6, 7, 7), (3, 8, 1), (1, 3, 4), (2, 7, 4)];
    assert!(utilisation(&specs) < UNIT * UNIT);
    let mut slots = Slots::new(Policy::Vds, Eligibility::OncePerPeriod, &specs);
    slots.run(300);
    assert_eq!(slots.violations, [(84, 3), (252, 3)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// P1, P6: with equal periods and a feasible set no window is violated, and runs of misses reach 2x.
    /// A stream that may miss everything may do so forever. The original order guarantees that only with
    /// one service per period: see census.rs.
    #[test]
    fn equal_periods_keep_every_window(specs in one_period(), eligibility in eligibility()) {
        let specs = feasible(&specs, UNIT * UNIT);
        for policy in [Policy::DWCS, Policy::Vds, ORIGINAL_ORDER] {
            let eligibility =
                if policy == ORIGINAL_ORDER { Eligibility::OncePerPeriod } else { eligibility };
            let mut slots = Slots::new(policy, eligibility, &specs);
            slots.run(600);
            prop_assert_eq!(&slots.violations, &[], "{}", policy);
            for (stream, (&(x, y, _), missed)) in specs.iter().zip(&slots.missed).enumerate() {
                prop_assert!(!slots.is_violated(stream), "{} {}", policy, stream);
                let run = longest_run(missed);
                prop_assert!(x == y || run <= 2 * x as usize, "{} {}: {}", policy, stream, run);
            }
        }
    }

    /// Not proved: VDS with any periods and unit samples. 0 of 350,000 random sets up to nine tenths of
    /// the link failed, 7 of 47,000 above; see below for one.
    #[test]
    fn vds_keeps_every_window_up_to_nine_tenths(specs in many_periods()) {
        let specs = feasible(&specs, UNIT * UNIT / 10 * 9);
        let mut slots = Slots::new(Policy::Vds, Eligibility::OncePerPeriod, &specs);
        slots.run(600);
        prop_assert_eq!(&slots.violations, &[]);
    }

    /// P3, and every reported violation is a violated window, reported once.
    #[test]
    fn window_constraints_stay_in_bounds(specs in many_periods(), eligibility in eligibility()) {
        for policy in Policy::ALL {
            let mut slots = Slots::new(policy, eligibility, &specs);
            for _ in 0..200 {
                slots.step();
                for (stream, &(x, _, _)) in specs.iter().enumerate() {
                    let window = slots.window(stream);
                    prop_assert!(window.is_some_and(|now| now.x <= now.y && now.x <= x && now.y > 0));
                }
            }
            for (stream, (&(x, y, _), missed)) in specs.iter().zip(&slots.missed).enumerate() {
                let misses = |window: &[bool]| window.iter().filter(|&&missed| missed).count();
                let violated =
                    missed.chunks(y as usize).filter(|window| misses(window) > x as usize).count();
                let reported = slots.violations.iter().filter(|&&(_, who)| who == stream).count();
                prop_assert_eq!(reported, violated);
            }
        }
    }

    /// P7: with equal periods, the time between two services of a stream that may not miss everything is
    /// at most T·(x + y_max + n − 1) + C, however overloaded the link.
    #[test]
    fn an_overload_delays_but_does_not_starve(specs in one_period(), eligibility in eligibility()) {
        let mut slots = Slots::new(Policy::DWCS, eligibility, &specs);
        let widest = specs.iter().map(|&(_, y, _)| u64::from(y)).max().unwrap_or(0);
        let mut last = vec![0; specs.len()];
        for slot in 1..=600 {
            let served = slots.step();
            for (stream, (&(x, y, period), last)) in specs.iter().zip(&mut last).enumerate() {
                let bound = period * (u64::from(x) + widest + specs.len() as u64 - 1) + 1;
                prop_assert!(x == y || slot - *last <= bound, "{} waits {}", stream, slot - *last);
                if served == Some(stream) {
                    *last = slot;
                }
            }
        }
    }

    /// P4, P5: different deadlines alone make DWCS with the later order earliest deadline first. Without
    /// windows, DWCS with either order and VDS are earliest deadline first too.
    #[test]
    fn heads_of_equal_tolerance_are_served_by_deadline(heads in vec((1..50u64, 0..50u64), 1..12), x in 0..4u32) {
        let now = Instant::from_nanos(50);
        let mut expected: Vec<_> =
            (0u32..).zip(&heads).map(|(stream, (period, arrived))| (period + arrived, stream)).collect();
        expected.sort_unstable();
        let order: Vec<_> = expected.iter().map(|&(_, stream)| stream).collect();
        for policy in [Policy::DWCS, LATER_ORDER, ORIGINAL, ORIGINAL_ORDER, Policy::Vds] {
            let mut edf = with_heads(policy, |_| LossTolerance::EDF, &heads);
            prop_assert_eq!(drain(&mut edf, now), &order[..]);
        }
        expected.dedup_by_key(|&mut (deadline, _)| deadline);
        if expected.len() == heads.len() {
            let loss = |stream| LossTolerance::new((x + u32::from(stream % 2 == 0)).min(4), 4);
            for policy in [Policy::DWCS, LATER_ORDER, Policy::Edf, Policy::DelayEdd] {
                let mut link = with_heads(policy, |s| loss(s).unwrap_or(LossTolerance::NONE), &heads);
                prop_assert_eq!(drain(&mut link, now), &order[..], "{}", policy);
            }
        }
    }

    /// FIFO sends in order of arrival, whatever the contracts.
    #[test]
    fn fifo_ignores_contracts(heads in vec((1..50u64, 0..9u64), 1..12)) {
        let mut fifo = with_heads(Policy::Fifo, |_| LossTolerance::NONE, &heads);
        let mut expected: Vec<_> =
            (0u32..).zip(&heads).map(|(stream, &(_, arrived))| (arrived, stream)).collect();
        expected.sort_unstable();
        let order: Vec<_> = expected.iter().map(|&(_, stream)| stream).collect();
        prop_assert_eq!(drain(&mut fifo, Instant::from_nanos(9)), order);
    }
}
