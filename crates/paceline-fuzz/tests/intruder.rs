//! Runs a node with a policy next to a member that speaks in the name of others: see `src/intruder.rs`.
#![cfg(test)]

use paceline_fuzz::{IntruderOutcome, intruder};

/// The number of runs, and the messages of each.
const RUNS: u64 = 10;
const MESSAGES: u64 = 2_000;

#[test]
fn a_member_that_forges_ids_records_and_reservations_gains_nothing() {
    let mut all = IntruderOutcome::default();
    for seed in 0..RUNS {
        let run = intruder(seed, MESSAGES).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        all.sent += run.sent;
        all.malformed += run.malformed;
        all.denied += run.denied;
        all.contradictions += run.contradictions;
        all.own += run.own;
    }
    eprintln!("intruder: {all:?}");
    assert!(all.denied > 1_000 && all.contradictions > 1_000 && all.own > 0, "{all:?}");
}
