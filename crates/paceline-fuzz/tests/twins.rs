//! Compares every discipline with its naive twin: 100,000 scenarios each, and the seeds that failed before.
//!
//! `cargo xtask long` runs more of them.
#![cfg(test)]

use paceline_fuzz::sched::{Coverage, DRIVERS, Driver, Situation, scenario_seen};
use paceline_sched::discipline::Policy;
use paceline_sim::cuts::Faults;
use paceline_sim::promises::PromisesResult;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Instant;

/// Scenarios of each driver in an ordinary test.
const SCENARIOS: u64 = 100_000;
/// The least count of each situation in these scenarios, large enough to cover the combinations.
const OFTEN: u64 = 1_000;
/// Lines with the name of a driver and a seed.
const KEPT: &str = include_str!("../seeds/failed.txt");

fn driver(name: &str) -> &'static Driver {
    DRIVERS.iter().find(|driver| driver.name == name).unwrap_or_else(|| panic!("no driver {name}"))
}

/// Prints past the test harness, which would capture the line.
fn report(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn run(name: &str) {
    let (driver, began) = (driver(name), Instant::now());
    let Some(policy) = driver.watched else {
        (0..SCENARIOS)
            .for_each(|seed| (driver.run)(seed).unwrap_or_else(|error| panic!("{error}")));
        return report(&format!("twins: {name}: {SCENARIOS} scenarios, {:.1?}", began.elapsed()));
    };
    let mut seen = Coverage::default();
    for seed in 0..SCENARIOS {
        scenario_seen(policy, seed, &mut seen).unwrap_or_else(|error| panic!("{error}"));
    }
    report(&format!("twins: {name}: {SCENARIOS} scenarios, {:.1?}, {seen}", began.elapsed()));
    assert_rich(policy, &seen);
}

/// Returns the situations that cannot occur under the policy, and the number of rows in its table including
/// the tie by index.
fn expected(policy: Policy) -> (Vec<Situation>, usize) {
    let (without_tags, nothing) = (vec![Situation::Tag], Vec::new());
    match policy.name() {
        "fifo" => (vec![Situation::Tag, Situation::EarlyPick, Situation::Long], 2),
        "static-priority" => (without_tags, 3),
        "edf" | "delay-edd" => (without_tags, 2),
        "dwcs" => (nothing, 5),
        "dwcs-original" => (without_tags, 6),
        "dwcs-original-order" => (nothing, 6),
        "dwcs-original-adjustment" => (without_tags, 5),
        "vds" => (without_tags, 4),
        "rcsp" | "rpq" => (without_tags, 3),
        "stop-and-go" => (without_tags, 5),
        name => panic!("nothing was observed of {name}"),
    }
}

fn assert_rich(policy: Policy, seen: &Coverage) {
    let (impossible, rows) = expected(policy);
    for situation in Situation::ALL {
        let often = seen.of(situation);
        match impossible.contains(&situation) {
            true => assert_eq!(often, 0, "{policy}: {situation:?}"),
            false => assert!(often >= OFTEN, "{policy}: {situation:?} occurred {often} times"),
        }
    }
    for row in 1..=rows {
        let often = seen.of_rule(row);
        assert!(often >= OFTEN, "{policy}: row {row} settled {often} comparisons");
    }
    assert_eq!(seen.of_rule(rows + 1), 0, "{policy}");
}

/// Declares one test per driver and checks that no driver lacks one.
macro_rules! drivers {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            run($name);
        })*

        #[test]
        fn every_driver_has_a_test_and_every_name_is_used_once() {
            let tested = BTreeSet::from([$($name),*]);
            assert_eq!(tested, DRIVERS.iter().map(|driver| driver.name).collect());
            assert_eq!(tested.len(), DRIVERS.len());
        }
    };
}

drivers! {
    fifo: "fifo",
    static_priority: "static-priority",
    edf: "edf",
    delay_edd: "delay-edd",
    dwcs: "dwcs",
    dwcs_original: "dwcs-original",
    dwcs_original_order: "dwcs-original-order",
    dwcs_original_adjustment: "dwcs-original-adjustment",
    vds: "vds",
    rcsp: "rcsp",
    stop_and_go: "stop-and-go",
    rpq: "rpq",
    drr: "drr",
    wf2q_plus: "wf2q+",
    hfsc: "hfsc",
}

fn kept_its_promises(outcome: Result<PromisesResult, String>) {
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.samples > 0, "{outcome}");
}

#[test]
fn previously_failing_seeds_do_not_fail() {
    let mut kept = 0;
    for line in KEPT.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (name, seed) =
            line.split_once(' ').unwrap_or_else(|| panic!("{line}: driver and seed"));
        let seed = seed.trim().parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        match name {
            "storm" => drop(paceline_sim::storm::run(seed)),
            "promises" => kept_its_promises(paceline_sim::promises::run(seed)),
            "tolerances" => kept_its_promises(paceline_sim::promises::run_tolerant(seed)),
            "requests" => kept_its_promises(paceline_sim::promises::run_full(seed)),
            "cuts" => {
                for faults in [Faults::Links, Faults::Relays] {
                    paceline_sim::cuts::run(seed, 8, faults).unwrap_or_else(|why| panic!("{why}"));
                }
            }
            name => (driver(name).run)(seed).unwrap_or_else(|error| panic!("{error}")),
        }
        kept += 1;
    }
    report(&format!("twins: {kept} kept seeds"));
}
