//! Warnings precede the reductions of falling links, and steady links have none.

use super::stage::{Stage, elastic};
use super::traces;
use paceline_proto::Carrier;
use paceline_proto::control::Cause;
use paceline_sched::Duration;

const EARLY: Duration = Duration::from_millis(500);
/// A warning counts for this time after the expected one.
const HOLDS: Duration = Duration::from_secs(3);

/// The reductions of a run, those that were announced half a second before, and the warnings.
#[derive(Clone, Copy, Debug, Default)]
struct Announced {
    reduced: usize,
    announced: usize,
    warnings: usize,
}

impl Announced {
    fn of(stage: &Stage) -> Self {
        let steps = elastic().elastic.unwrap().steps();
        let place = |form| steps.iter().position(|step| *step == form);
        let warnings = stage.world.warnings(stage.pictures);
        let all = stage.world.steps(stage.pictures).iter();
        let reduced: Vec<_> = all.filter(|(.., step)| step.cause != Cause::Room).collect();
        let announced = reduced.iter().filter(|(at, form, _)| {
            warnings.iter().any(|(warned, warning)| {
                let low = warning.form.is_none_or(|named| place(named) >= place(*form));
                low && at.since(*warned) >= EARLY && *at <= *warned + warning.after + HOLDS
            })
        });
        Self { reduced: reduced.len(), announced: announced.count(), warnings: warnings.len() }
    }

    fn after(seed: u64, carrier: Carrier, trace: &[u64]) -> Self {
        let seconds = trace.len() as u64 / 20 + 6;
        let mut stage = Stage::new(seed, carrier, trace[0], seconds);
        stage.drive(trace);
        let found = Self::of(&stage);
        assert!(stage.world.counted(stage.steered).samples > 0);
        println!("{:?}: {found:?}", stage.carrier());
        found
    }
}

const CARRIERS: [Carrier; 2] = [Carrier::Ordered, Carrier::Datagrams];

#[test]
fn most_reductions_of_falling_links_are_announced() {
    let mut sum = Announced::default();
    let falls = [2_000, 3_000, 5_000, 10_000, 20_000].map(|within| traces::falls(within, 60));
    for carrier in CARRIERS {
        for (seed, trace) in
            (1..).zip(falls.iter().chain([&traces::ramp(60), &traces::sawtooth(60)]))
        {
            println!("trace {seed}");
            let found = Announced::after(seed, carrier, trace);
            sum.reduced += found.reduced;
            sum.announced += found.announced;
        }
    }
    println!("{sum:?}");
    assert!(sum.reduced > 100, "{sum:?}");
    assert!(sum.announced * 100 >= sum.reduced * 90, "{sum:?}");
}

#[test]
fn steady_links_warn_nobody() {
    for carrier in CARRIERS {
        for (seed, kbit) in (1..).zip([14_000, 20_000, 40_000]) {
            let found = Announced::after(seed, carrier, &traces::steady(kbit, 60));
            assert_eq!((found.warnings, found.reduced), (0, 0), "{kbit} kbit/s");
        }
    }
}

#[test]
fn walks_and_steps_are_survived() {
    for carrier in CARRIERS {
        for trace in [traces::walk(7, 60), traces::walk(8, 60), traces::step(60)] {
            let found = Announced::after(3, carrier, &trace);
            assert!(found.reduced > 0, "{found:?}");
        }
    }
}
