//! Link cuts under load: a few here, a thousand with `--ignored`, and more of them in `cargo xtask long`.

use paceline_sim::cuts::{CutsResult, Faults, run};
use std::ops::Range;

const CUTS_PER_RUN: u64 = 8;

fn all(seeds: Range<u64>, faults: Faults) -> CutsResult {
    let mut sums = CutsResult::default();
    for seed in seeds {
        match run(seed, CUTS_PER_RUN, faults) {
            Ok(outcome) => sums.add(&outcome),
            Err(why) => panic!("{faults:?}: {why}"),
        }
    }
    println!("{faults:?}: {sums}");
    // The cuts hit the traffic: at least one sample in a hundred was lost.
    assert_eq!(sums.published, sums.delivered + sums.missing);
    assert!(sums.missing * 100 > sums.published, "{sums}");
    sums
}

/// Every missing sample has a reason.
fn links(seeds: Range<u64>) {
    let sums = all(seeds, Faults::Links);
    assert!(sums.of > sums.cuts && sums.reported == sums.of, "{sums}");
}

/// A relay that restarts takes its reports along. All other reports are still there.
fn relays(seeds: Range<u64>) {
    let sums = all(seeds, Faults::Relays);
    assert!(sums.reported < sums.of && sums.reported * 2 > sums.of, "{sums}");
}

#[test]
fn each_missing_sample_is_reported_once_after_link_cuts() {
    links(0..8);
}

#[test]
fn each_subscriber_accounts_for_every_sample_after_restarts_of_relays() {
    relays(0..8);
}

#[test]
#[ignore = "a minute: cargo test -p paceline-sim --test cuts -- --ignored --nocapture"]
fn a_thousand_link_cuts() {
    links(0..125);
}

#[test]
#[ignore = "a minute: cargo test -p paceline-sim --test cuts -- --ignored --nocapture"]
fn a_thousand_cuts_and_restarts_of_relays() {
    relays(0..125);
}
