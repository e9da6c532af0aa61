//! Link cuts under load. `cargo xtask long` runs a thousand of them.

use paceline_sim::cuts::{CutsResult, Faults, run};

const CUTS_PER_RUN: u64 = 8;

fn all(seeds: std::ops::Range<u64>, faults: Faults) -> CutsResult {
    let mut sums = CutsResult::default();
    for seed in seeds {
        match run(seed, CUTS_PER_RUN, faults) {
            Ok(outcome) => sums.add(&outcome),
            Err(why) => println!("{why}"),
        }
    }
    println!("{faults:?}: {sums:?}");
    sums
}

#[test]
fn every_missing_sample_is_reported_with_a_reason_after_link_cuts() {
    all(0..n(), Faults::Links);
}

#[test]
fn every_subscriber_counts_each_sample_after_restarts_of_relays() {
    all(0..n(), Faults::Relays);
}

fn n() -> u64 { std::env::var("N").ok().and_then(|n| n.parse().ok()).unwrap_or(8) }
