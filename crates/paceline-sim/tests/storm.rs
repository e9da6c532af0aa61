//! Runs a thousand chaos tests. Further seeds that failed before are in `paceline-fuzz/seeds/failed.txt`.

use paceline_sim::storm;

const SEEDS: u64 = 1_000;

#[test]
fn invariants_hold_in_a_thousand_chaos_runs() {
    let (mut samples, mut delivered, mut faults) = (0, 0, 0);
    for seed in 0..SEEDS {
        let outcome = storm::run(seed);
        samples += outcome.samples;
        delivered += outcome.delivered;
        faults += outcome.faults;
    }
    println!("{samples} samples over hops, {delivered} delivered, {faults} faults");
    assert!(delivered > 1_000_000 && faults > 10_000, "these are no chaos tests any more");
}

#[test]
fn a_chaos_run_is_reproducible() {
    assert_eq!(storm::run(17), storm::run(17));
}
