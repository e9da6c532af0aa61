//! Benchmarks the time per scheduling decision of every policy: expiry, pick, service and the next head.
//!
//! Run it with `cargo bench --manifest-path benches/Cargo.toml -- dwcs/32`. `paceline-lab bench schedule` reports
//! percentiles and memory use.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use paceline_sched::discipline::{Eligibility, Policy};
use paceline_sched::load::Workload;

const STREAMS: [u32; 5] = [4, 32, 1_024, 100_000, 1_000_000];

fn decisions(criterion: &mut Criterion) {
    for (eligibility, name) in [
        (Eligibility::WorkConserving, "work-conserving"),
        (Eligibility::OncePerPeriod, "once-per-period"),
    ] {
        for policy in Policy::ALL {
            let mut group = criterion.benchmark_group(format!("{name}/{policy}"));
            group.throughput(Throughput::Elements(1)).sample_size(20);
            for streams in STREAMS {
                group.bench_function(BenchmarkId::from_parameter(streams), |bencher| {
                    // Built here so that benchmarks excluded by the filter cost nothing.
                    let mut load = Workload::new(policy, eligibility, streams);
                    bencher.iter(|| load.decide());
                });
            }
            group.finish();
        }
    }
}

criterion_group!(benches, decisions);
criterion_main!(benches);
