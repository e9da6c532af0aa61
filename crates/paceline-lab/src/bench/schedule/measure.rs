//! Measures the duration of decisions in batches.

use crate::bench::stats::{Samples, float, millis};
use paceline_sched::discipline::{Eligibility, Policy};
use paceline_sched::load::Workload;
use std::time::Instant;

/// The number of decisions between two clock readings.
const BATCH: u32 = 64;
/// The number of misses that a caller handles before it does something else.
pub(super) const TURN: u32 = 1_024;

/// The duration of a decision in nanoseconds.
pub(super) struct Cost {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
    pub(super) missed: f64,
}

/// Measures about `count` decisions. Before that it makes enough decisions to warm up every stream.
pub(super) fn decisions(
    policy: Policy,
    eligibility: Eligibility,
    streams: u32,
    count: u32,
) -> Cost {
    let mut load = Workload::new(policy, eligibility, streams);
    for _ in 0..streams.max(10_000) {
        load.decide();
    }
    let (served, missed) = (load.served(), load.missed());
    let mut batches = Vec::with_capacity((count / BATCH) as usize);
    for _ in 0..count / BATCH {
        let start = Instant::now();
        for _ in 0..BATCH {
            load.decide();
        }
        batches.push(nanos_since(start));
    }
    let batches = Samples::new(batches);
    let each = |per_mille| {
        batches.percentile(per_mille).map_or(f64::NAN, |nanos| float(nanos) / f64::from(BATCH))
    };
    let missed = float(load.missed() - missed) / float((load.served() - served).max(1));
    Cost { p50: each(500), p99: each(990), p999: each(999), missed }
}

/// The duration of handling the misses of a stall.
pub(super) struct Stall {
    pub(super) longest_ms: f64,
    pub(super) whole_ms: f64,
    pub(super) misses: u64,
}

/// Handles the misses of a 30 s stall in batches of [`TURN`], and resumes service.
pub(super) fn stall(policy: Policy, streams: u32) -> Stall {
    let mut load = Workload::new(policy, Eligibility::OncePerPeriod, streams);
    for _ in 0..4 * streams {
        load.decide();
    }
    let missed = load.missed();
    load.stall(paceline_sched::Duration::from_secs(30));
    let mut turns = Vec::new();
    loop {
        let start = Instant::now();
        let handled = (0..TURN).take_while(|_| load.handle_miss()).count();
        turns.push(nanos_since(start));
        if handled == 0 {
            break;
        }
    }
    let whole = turns.iter().sum();
    let longest = Samples::new(turns).max();
    Stall {
        longest_ms: millis(longest),
        whole_ms: millis(Some(whole)),
        misses: load.missed() - missed,
    }
}

fn nanos_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
