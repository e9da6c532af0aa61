//! The readings of a node's clock, and of a chronyd at the same time.

use super::chrony::{Client, Tracking};
use super::truth::Truth;
use crate::bench::interrupt;
use crate::bench::machine::{Load, Watch};
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::{Samples, float, millis};
use anyhow::{Context as _, Result};
use paceline::Node;
use paceline::time::ClockStatus;
use std::time::{Duration, Instant};

/// The time after which the frequency is known to some ppm.
const SETTLE: Duration = Duration::from_secs(15);
/// The distance of readings.
const EVERY: Duration = Duration::from_micros(400);
/// A reading that takes longer was interrupted, in nanoseconds.
const INTERRUPTED: u64 = 1_000;
/// The time for the first synchronisation.
const PATIENCE: Duration = Duration::from_secs(30);

/// The readings of a clock.
struct Readings {
    count: u64,
    /// Those whose bounds contain the true time.
    inside: u64,
    /// Those before an earlier one.
    back: u64,
    bounds: Samples,
    errors: Samples,
}

impl Readings {
    /// Reads the clock of `node` for `time`.
    fn of(node: &Node, truth: Truth, time: Duration) -> Result<Self> {
        let (clock, until) = (node.clock(), Instant::now() + time);
        let (mut errors, mut bounds) = (Vec::new(), Vec::new());
        let (mut count, mut inside, mut back, mut last) = (0_u64, 0, 0, 0);
        while Instant::now() < until {
            let before = truth.now();
            let reading = clock.now();
            let after = truth.now();
            let holds = reading.bounds.earliest <= after && before <= reading.bounds.latest;
            inside += u64::from(holds);
            back += u64::from(reading.nanos < last);
            last = reading.nanos;
            bounds.push(reading.error());
            // An interrupted reading says nothing about the error.
            if after - before < INTERRUPTED {
                errors.push(reading.nanos.abs_diff(before + (after - before) / 2));
            }
            count += 1;
            if count.is_multiple_of(1_000) {
                interrupt::check()?;
            }
            std::thread::sleep(EVERY);
        }
        let (bounds, errors) = (Samples::new(bounds), Samples::new(errors));
        Ok(Self { count, inside, back, bounds, errors })
    }

    fn of_chronyd(readings: &[Tracking]) -> Self {
        let values = |of: fn(&Tracking) -> u64| Samples::new(readings.iter().map(of).collect());
        let inside = readings.iter().filter(|reading| reading.error <= reading.bound);
        Self {
            count: readings.len() as u64,
            inside: inside.count() as u64,
            back: 0,
            bounds: values(|reading| reading.bound),
            errors: values(|reading| reading.error),
        }
    }

    fn percent_inside(&self) -> f64 {
        float(self.inside) * 100.0 / float(self.count)
    }
}

/// The readings of a node's clock, and of a chronyd at the same time.
pub(super) struct Measured {
    /// Until the first synchronisation, in milliseconds.
    first: f64,
    /// The bound is wider until the frequency is known.
    early: Readings,
    late: Readings,
    chronyd: Readings,
    load: Load,
}

impl Measured {
    /// Reads the clock of a node that has just opened, and after a time also that of `chronyd`, for `seconds`.
    pub(super) fn of(
        node: &Node,
        chronyd: Option<&Client<'_>>,
        truth: Truth,
        seconds: u32,
    ) -> Result<Self> {
        let begun = Instant::now();
        while node.clock().status() != ClockStatus::Synchronised && begun.elapsed() < PATIENCE {
            interrupt::sleep(Duration::from_millis(1))?;
        }
        let first = begun.elapsed().as_secs_f64() * 1e3;
        let settle = if seconds > 2 { SETTLE } else { Duration::from_millis(100) };
        let early = Readings::of(node, truth, settle)?;
        let (watch, time) = (Watch::begin()?, Duration::from_secs(u64::from(seconds)));
        let (late, chronyd) = std::thread::scope(|scope| -> Result<_> {
            let end = Instant::now() + time;
            let theirs = chronyd.map(|client| scope.spawn(move || client.read(truth, end)));
            let late = Readings::of(node, truth, time)?;
            let theirs = theirs.map(|thread| thread.join().ok().context("a thread panicked"));
            Ok((late, theirs.transpose()?.transpose()?.unwrap_or_default()))
        })?;
        let chronyd = Readings::of_chronyd(&chronyd);
        Ok(Self { first, early, late, chronyd, load: watch.load()? })
    }

    /// Adds the rows of all measurements.
    pub(super) fn rows(&self, section: &mut Section) {
        let Self { first, early, late, chronyd, load } = self;
        let count = early.count + late.count;
        let inside = float(early.inside + late.inside) * 100.0 / float(count.max(1));
        let name = "readings whose bounds contain the true time";
        let all = Bound::AtLeast(100.0);
        section.must(name, Unit::Percent, inside, chronyd.percent_inside(), all);
        let back = float(early.back + late.back);
        let name = "readings before an earlier one";
        section.must(name, Unit::Count, back, f64::NAN, Bound::AtMost(0.0));
        let soon = Bound::AtMost(5_000.0);
        section.must("first synchronised", Unit::Millis, *first, f64::NAN, soon);
        section.show("readings", Unit::Count, float(count), float(chronyd.count));
        let mut both = |name: &str, of: &dyn Fn(&Readings) -> Option<u64>| {
            section.show(name, Unit::Micros, micros(of(late)), micros(of(chronyd)));
        };
        both("error p50", &|it| it.errors.percentile(500));
        both("largest error", &|it| it.errors.max());
        both("bound p50", &|it| it.bounds.percentile(500));
        both("largest bound", &|it| it.bounds.max());
        let mut early = |name: &str, samples: &Samples| {
            let value = micros(samples.percentile(990));
            section.show(name, Unit::Micros, value, f64::NAN);
        };
        early("error p99 in the first 15 s", &self.early.errors);
        early("bound p99 in the first 15 s", &self.early.bounds);
        section.load(Some(*load), None);
    }

    /// Adds the rows of servers at a direct cable.
    pub(super) fn is_near(&self, section: &mut Section) {
        let p99 = |samples: &Samples| micros(samples.percentile(990));
        let bounds = [&self.late, &self.chronyd].map(|it| p99(&it.bounds));
        let errors = [&self.late, &self.chronyd].map(|it| p99(&it.errors));
        section.must("bound p99", Unit::Micros, bounds[0], bounds[1], Bound::AtMost(100.0));
        section.must("error p99", Unit::Micros, errors[0], errors[1], Bound::AtMost(20.0));
        if errors[1].is_finite() {
            let no_worse = Bound::AtMost(1.0);
            let share = errors[0] / errors[1];
            section.must("error p99, share of chronyd's", Unit::Ratio, share, f64::NAN, no_worse);
        }
    }
}

fn micros(nanos: Option<u64>) -> f64 {
    millis(nanos) * 1e3
}
