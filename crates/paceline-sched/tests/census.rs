//! The guarantee of each discipline and its limits: random sets of streams under the papers' model (unit
//! slots, backlogged streams), counted by whether any aligned window was violated.

use paceline_sched::discipline::{Eligibility, Policy, RuleSet};
use slots::{Slots, Spec};

#[path = "support/slots.rs"]
#[expect(
    clippy::indexing_slicing,
    dead_code,
    reason = "may panic; a census looks only for violations"
)]
mod slots;

/// Divisible by every window and period used here, so that shares are exact.
const UNIT: u64 = 27_720;
const ORIGINAL: Policy =
    Policy::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Original };
const ORIGINAL_ORDER: Policy =
    Policy::Dwcs { ordering: RuleSet::Original, adjustment: RuleSet::Later };
/// The columns of the census.
const POLICIES: [Policy; 5] =
    [Policy::DWCS, ORIGINAL, ORIGINAL_ORDER, Policy::Vds, Policy::DelayEdd];
const SETS: usize = 150;

/// Knuth's generator for 64 bits.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(bound)).unwrap_or_default()
    }
}

/// Σ (1 − x/y)/T, in thousandths of the link, rounded down.
fn load(specs: &[Spec]) -> u64 {
    let share = |&(x, y, period): &Spec| u64::from(y - x) * (UNIT / u64::from(y)) * (UNIT / period);
    specs.iter().map(share).sum::<u64>() * 1_000 / (UNIT * UNIT)
}

fn fits(specs: &[Spec]) -> bool {
    let share = |&(x, y, period): &Spec| u64::from(y - x) * (UNIT / u64::from(y)) * (UNIT / period);
    specs.iter().map(share).sum::<u64>() <= UNIT * UNIT
}

/// Returns a set whose load is above `from` and at most `to` thousandths.
fn set(chance: &mut Chance, one_period: bool, (from, to): (u64, u64)) -> Vec<Spec> {
    loop {
        let period = u64::from(1 + chance.below(6));
        let mut specs: Vec<Spec> = Vec::new();
        for _ in 0..12 {
            let y = 1 + chance.below(8);
            let period = if one_period { period } else { u64::from(1 + chance.below(8)) };
            specs.push((chance.below(y + 1), y, period));
            if !fits(&specs) || load(&specs) > to {
                specs.pop();
            }
        }
        if load(&specs) > from {
            return specs;
        }
    }
}

/// Returns the number of sets, of 150, with a violated window under each policy.
fn violated(seed: u64, one_period: bool, loads: (u64, u64)) -> [usize; 5] {
    let mut chance = Chance(seed);
    let sets: Vec<_> = (0..SETS).map(|_| set(&mut chance, one_period, loads)).collect();
    let row = POLICIES.map(|policy| {
        let fails = |specs: &&Vec<Spec>| {
            let mut slots = Slots::new(policy, Eligibility::OncePerPeriod, specs);
            slots.run(500);
            !slots.violations.is_empty()
        };
        sets.iter().filter(fails).count()
    });
    println!("{} period, load {loads:?}: {row:?}", if one_period { "one" } else { "any" });
    row
}

/// The later rules and VDS keep every window, and so does the original order with the later adjustment.
/// The original adjustment and plain deadlines do not.
#[test]
fn with_one_period_the_later_adjustment_and_vds_keep_every_window() {
    let [later, original, original_order, vds, edf] = violated(1, true, (800, 1_000));
    assert_eq!((later, original_order, vds), (0, 0, 0));
    assert!(original > 0 && edf > SETS / 4, "{original} and {edf}");
}

/// DWCS guarantees nothing here, and it violates windows early. VDS is the alternative.
#[test]
fn with_different_periods_dwcs_fails_early_and_vds_late_if_ever() {
    let [later, .., vds, edf] = violated(2, false, (333, 700));
    assert_eq!(vds, 0);
    assert!(later > 0 && edf > 0, "{later} and {edf}");
    let [later, original, original_order, vds, _] = violated(3, false, (700, 900));
    assert_eq!(vds, 0);
    assert!(later > original && original > original_order, "{later} {original} {original_order}");
    let [later, _, original_order, vds, _] = violated(4, false, (900, 1_000));
    assert!(vds < original_order && original_order < later, "{vds} {original_order} {later}");
}

/// E2, with a third of the link in use.
#[test]
fn the_later_rules_guarantee_nothing_with_different_periods() {
    let specs = [(9, 10, 1), (0, 1, 10), (0, 1, 10)];
    assert_eq!(load(&specs), 300);
    let violations = |policy| {
        let mut slots = Slots::new(policy, Eligibility::OncePerPeriod, &specs);
        slots.run(100);
        slots.violations.len()
    };
    assert!(violations(Policy::DWCS) > 0);
    assert_eq!((violations(Policy::Vds), violations(ORIGINAL_ORDER)), (0, 0));
}

/// A backlogged stream keeps the lowest window constraint and takes all slots.
#[test]
fn the_original_rules_starve_if_they_may_serve_twice_in_a_period() {
    let specs = [(2, 3, 4), (0, 6, 4)];
    assert_eq!(load(&specs), 333);
    let violated = |eligibility| {
        let mut slots = Slots::new(ORIGINAL, eligibility, &specs);
        slots.run(400);
        slots.is_violated(0)
    };
    assert!(violated(Eligibility::WorkConserving));
    assert!(!violated(Eligibility::OncePerPeriod));
}
