//! Benchmarks evaluations of semantic functions and exchanges: 10,000 objects and 100 observers.
//!
//! Run it with `cargo bench --manifest-path benches/Cargo.toml --bench objects`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use paceline_benches::world::CarWorld;
use paceline_objects::semantic::{
    DeclaredFunction, DeclaredRule, ExchangeTerms, Periodic, SemanticFunction,
};
use paceline_sched::Duration;

fn evaluations(criterion: &mut Criterion) {
    let terms = ExchangeTerms::every(Duration::from_millis(100));
    let rule: DeclaredRule = "whom: distance < 300.0".parse().expect("a rule");
    let declared = DeclaredFunction::new(&rule, terms).expect("a rule");
    let functions: [(&str, Box<dyn SemanticFunction>); 2] =
        [("native", Box::new(Periodic(terms))), ("cel", Box::new(declared))];
    let mut group = criterion.benchmark_group("evaluate");
    for (name, mut function) in functions {
        let mut world = CarWorld::new(10_000, 100, 350.0);
        let pairs = world.sweep(&mut *function, &());
        group.throughput(Throughput::Elements(u64::try_from(pairs).unwrap_or(u64::MAX)));
        group.sample_size(10).bench_function(name, |bencher| {
            bencher.iter(|| world.sweep(&mut *function, &()));
        });
    }
    group.finish();
}

fn exchanges(criterion: &mut Criterion) {
    let mut world = CarWorld::new(10_000, 100, 350.0);
    let mut function = Periodic(ExchangeTerms::every(Duration::from_millis(100)));
    world.sweep(&mut function, &());
    let mut car = 0;
    criterion.bench_function("change an object", |bencher| {
        bencher.iter(|| {
            car = (car + 1) % 10_000;
            world.change(car);
        });
    });
}

criterion_group!(benches, evaluations, exchanges);
criterion_main!(benches);
