//! Prints the nanoseconds per decision of every policy for several stream counts.
//!
//! `cargo run --release --manifest-path benches/Cargo.toml --example decision [-- POLICY STREAMS DECISIONS]`

use paceline_sched::discipline::{Eligibility, Policy};
use paceline_sched::load::Workload;
use std::time::Instant;

const STREAMS: [u32; 5] = [4, 32, 1_024, 100_000, 1_000_000];

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn measure(policy: Policy, eligibility: Eligibility, streams: u32, decisions: u32) {
    let mut load = Workload::new(policy, eligibility, streams);
    for _ in 0..decisions / 4 {
        load.decide();
    }
    let (missed, violated) = (load.missed(), load.violated());
    let mut batches = Vec::new();
    for _ in 0..decisions / 64 {
        let start = Instant::now();
        for _ in 0..64 {
            load.decide();
        }
        batches.push(start.elapsed().as_nanos());
    }
    batches.sort_unstable();
    let at = |per_mille: usize| {
        let rank = (batches.len() * per_mille).div_ceil(1_000).max(1) - 1;
        batches.get(rank).copied().unwrap_or_default() as f64 / 64.0
    };
    let mean = batches.iter().sum::<u128>() as f64 / batches.len() as f64 / 64.0;
    let share = |count: u64| count as f64 / f64::from(decisions / 64 * 64);
    println!(
        "{:30} {streams:8} {mean:7.1} {:7.1} {:7.1} {:7.1} {:7.1}  missed {:.3} violated {:.4}",
        format!(
            "{policy} {}",
            if eligibility == Eligibility::WorkConserving { "wc" } else { "opp" }
        ),
        at(10),
        at(500),
        at(990),
        at(999),
        share(load.missed() - missed),
        share(load.violated() - violated),
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().filter(|name| name != "all");
    let only: Option<u32> = arguments.next().and_then(|streams| streams.parse().ok());
    let decisions: Option<u32> = arguments.next().and_then(|decisions| decisions.parse().ok());
    for policy in Policy::ALL {
        if wanted.as_deref().is_some_and(|name| name != policy.name()) {
            continue;
        }
        for eligibility in [Eligibility::WorkConserving, Eligibility::OncePerPeriod] {
            let name = if eligibility == Eligibility::WorkConserving { "wc" } else { "opp" };
            if std::env::var("ELIG").is_ok_and(|only| only != name) {
                continue;
            }
            for streams in STREAMS {
                if only.is_none_or(|only| only == streams) {
                    let decisions = decisions.unwrap_or(1_000_000.max(2 * streams));
                    measure(policy, eligibility, streams, decisions);
                }
            }
        }
    }
}
