//! `paceline-lab bench tds`: the spacing of samples after a jittery network, compared with a thread that sleeps.
//!
//! Paper: Pallickara et al. 2005, figures 16 to 20. One process publishes samples with equally spaced capture times
//! at random arrival times. Two receivers get the same samples at the same time: a subscription with spacing, and a
//! plain loop that sleeps until the ideal release time, with the delay variation known in advance.

use super::machine::Watch;
use super::report::{Bound, Report, Section, Unit};
use super::stats::{Samples, count, float, millis};
use super::{OutputArgs, interrupt};

mod busy;
mod many;
use anyhow::{Context as _, Result};
use paceline::delivery::SpacingReport;
use paceline::{Node, Publisher, PutOptions, Sample, Timestamp};
use paceline_time::spacing::{Anchor, Depth, Jitter, Spacing};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Spacing of samples after a jittery network, compared with a plain sleeper
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Measured time per spacing and priority
    #[arg(long = "duration", value_name = "TIME", default_value = "10s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<3, 3_600>)]
    seconds: u32,
    #[command(flatten)]
    output: OutputArgs,
}

/// The variation of the delay: ± 20 ms.
const VARIATION: Duration = Duration::from_millis(40);
/// The first part of a run is not measured: the delay adapts.
const WARM_UP: usize = 1_000;

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let mut command = "paceline-lab bench tds".to_owned();
    if args.seconds != 10 {
        command.push_str(&format!(" --duration {}s", args.seconds));
    }
    let seconds = if args.output.short { 3 } else { args.seconds };
    let mut report = Report::new("The spacing of samples after a jittery network", &command);
    for realtime in [false, true] {
        let node = Node::builder().name("tds").isolated().realtime(realtime).open()?;
        let priority = if realtime { "SCHED_FIFO where permitted" } else { "ordinary priority" };
        for period in [Duration::from_millis(1), Duration::from_micros(500)] {
            eprintln!("{period:?}, {priority}: {seconds} s");
            report.add(measure(&node, period, seconds, (realtime, priority))?, &args.output);
        }
        report.add(many::measure(&node, seconds.min(5), priority)?, &args.output);
        report.add(busy::measure(&node, seconds, (realtime, priority))?, &args.output);
        node.close();
    }
    report.finish(&args.output)
}

/// A released sample: its number, its arrival and its release, in nanoseconds from the start.
#[derive(Clone, Copy)]
pub(crate) struct Released {
    pub(crate) number: u64,
    pub(crate) at: u64,
}

/// Samples with equally spaced capture times that arrive after random delays.
#[derive(Clone, Copy)]
pub(crate) struct Publishing {
    pub(crate) period: Duration,
    /// The largest delay.
    pub(crate) variation: Duration,
    pub(crate) samples: u64,
}

impl Publishing {
    /// Publishes the samples from `began` on. They stay in order, as on a link.
    pub(crate) fn publish(self, publisher: &mut Publisher, began: Instant) -> Result<()> {
        let mut before = 0;
        for number in 0..self.samples {
            let ideal = number * nanos(self.period);
            before = (ideal + random(number, nanos(self.variation))).max(before);
            let at = began + Duration::from_nanos(before);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            let captured = Timestamp { nanos: BASE + ideal, error: Timestamp::UNKNOWN_ERROR };
            let options = PutOptions { captured: Some(captured), ..PutOptions::default() };
            publisher.put_with(vec![7; 64], options)?;
            if number.is_multiple_of(1_024) {
                interrupt::check()?;
            }
        }
        Ok(())
    }
}

/// The result of one run.
struct Run {
    period: Duration,
    arrivals: Vec<Released>,
    ours: Vec<Released>,
    slept: Vec<Released>,
    report: SpacingReport,
    /// The processor time of the pacer, in nanoseconds, if it is known.
    cpu: Option<u64>,
    took: Duration,
}

fn measure(
    node: &Node,
    period: Duration,
    seconds: u32,
    (realtime, priority): (bool, &str),
) -> Result<Section> {
    let samples = u64::from(seconds) * nanos(Duration::from_secs(1)) / nanos(period);
    let watch = Watch::begin()?;
    let run = run_once(node, period, samples)?;
    let mut section = Section::new(format!(
        "{} µs after ± 20 ms of jitter, {priority}, {samples} samples",
        period.as_micros()
    ))
    .headings(["spacing", "plain sleeper"]);
    run.show_errors(&mut section, realtime);
    run.show_costs(&mut section);
    section.load(Some(watch.load()?), None);
    Ok(section)
}

/// Publishes the samples and records their arrivals and releases.
fn run_once(node: &Node, period: Duration, samples: u64) -> Result<Run> {
    let mut publisher = node.publisher("tds").declare()?;
    let began = Instant::now() + Duration::from_millis(500);
    let (released, paced) = channel();
    let record = move |sample: Sample| {
        let _ = released.send(Released { number: number(&sample, period), at: since(began) });
    };
    let spaced = node.subscriber("tds").spacing(Duration::ZERO..=2 * VARIATION).callback(record)?;
    let (arrived, arrivals) = channel();
    let arrive = move |sample: Sample| {
        let _ = arrived.send(Released { number: number(&sample, period), at: since(began) });
    };
    let plain = node.subscriber("tds").callback(arrive)?;
    anyhow::ensure!(
        publisher.wait_matching(Duration::from_secs(5)),
        "the subscriptions do not match"
    );
    let sleeper = std::thread::spawn(move || sleep_plainly(&arrivals, began, period, samples));
    let cpu = pacer_nanos();
    Publishing { period, variation: VARIATION, samples }.publish(&mut publisher, began)?;
    let (arrivals, slept) = sleeper.join().ok().context("the sleeper panicked")?;
    let ours = paced.iter().take(arrivals.len()).collect();
    let cpu = pacer_nanos().map(|after| after.saturating_sub(cpu.unwrap_or_default()));
    let report = spaced.spacing_report().context("there is no spacing")?;
    drop(plain);
    Ok(Run { period, arrivals, ours, slept, report, cpu, took: began.elapsed() })
}

impl Run {
    fn show_errors(&self, section: &mut Section, realtime: bool) {
        let (ours, plain) = (errors(&self.ours, self.period), errors(&self.slept, self.period));
        let p99 = |errors: &Samples| micros(errors.percentile(990));
        let bound = Bound::AtMost(if realtime { 0.5 } else { 1.0 });
        let name = "p99 of the spacing error / the sleeper's";
        section.must(name, Unit::Ratio, p99(&ours) / p99(&plain), f64::NAN, bound);
        for (name, part) in [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)] {
            let of = |errors: &Samples| micros(errors.percentile(part));
            section.show(&format!("spacing error, {name}"), Unit::Micros, of(&ours), of(&plain));
        }
        let most = (micros(ours.max()), micros(plain.max()));
        section.show("spacing error, maximum", Unit::Micros, most.0, most.1);
        let arrivals = jitter(&self.arrivals, self.period);
        let parts = (jitter(&self.ours, self.period), jitter(&self.slept, self.period));
        section.show("jitter of the arrivals, RFC 3550", Unit::Micros, arrivals, arrivals);
        section.show("jitter of the releases, RFC 3550", Unit::Micros, parts.0, parts.1);
        let (name, bound) = ("jitter of the releases / of the arrivals", Bound::AtMost(0.01));
        section.must(name, Unit::Ratio, parts.0 / arrivals, parts.1 / arrivals, bound);
    }

    fn show_costs(&self, section: &mut Section) {
        let none = f64::NAN;
        let variation = delays(&self.arrivals, self.period);
        let variation = millis(variation.percentile(990));
        let (ours, plain) = (delays(&self.ours, self.period), delays(&self.slept, self.period));
        let (ours, plain) = (millis(ours.percentile(500)), millis(plain.percentile(500)));
        let bound = Bound::AtMost(variation + 2.0);
        section.must("delay of the releases, p50", Unit::Millis, ours, plain, bound);
        section.show("delay of the arrivals, p99", Unit::Millis, variation, variation);
        let late = 100.0 * float(self.report.late) / float(self.report.released.max(1));
        section.must("late samples", Unit::Percent, late, none, Bound::AtMost(1.0));
        let relative = relative(&self.arrivals, self.period);
        let name = "late samples with relative spacing, as in the paper";
        section.show(name, Unit::Percent, relative, none);
        let share = self.cpu.map_or(none, |cpu| 100.0 * float(cpu) / float(nanos(self.took)));
        let name = "processor time of the pacer, of one core";
        section.must(name, Unit::Percent, share, none, Bound::AtMost(20.0));
    }
}

/// The first capture time.
const BASE: u64 = 1_700_000_000_000_000_000;

pub(crate) fn number(sample: &Sample, period: Duration) -> u64 {
    sample.captured.nanos.saturating_sub(BASE) / nanos(period)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn since(began: Instant) -> u64 {
    nanos(Instant::now().saturating_duration_since(began))
}

fn micros(nanos: Option<u64>) -> f64 {
    nanos.map_or(f64::NAN, |nanos| float(nanos) / 1e3)
}

/// Returns a number from 0 to `max` that depends only on `seed`.
fn random(seed: u64, max: u64) -> u64 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) % (max + 1)
}

/// Receives samples and sleeps until the ideal release time of each. Returns the arrivals and the releases.
fn sleep_plainly(
    arrivals: &Receiver<Released>,
    began: Instant,
    period: Duration,
    samples: u64,
) -> (Vec<Released>, Vec<Released>) {
    let (mut arrived, mut released) = (Vec::new(), Vec::new());
    for sample in arrivals.iter().take(usize::try_from(samples).unwrap_or(usize::MAX)) {
        arrived.push(sample);
        let ideal = Duration::from_nanos(sample.number * nanos(period)) + VARIATION;
        std::thread::sleep((began + ideal).saturating_duration_since(Instant::now()));
        released.push(Released { at: since(began), ..sample });
    }
    (arrived, released)
}

/// Returns the differences of the spacings of releases and of capture times.
fn errors(released: &[Released], period: Duration) -> Samples {
    let pairs = released.get(WARM_UP..).unwrap_or_default().windows(2);
    Samples::new(
        pairs
            .filter_map(|pair| {
                let [before, after] = pair else { return None };
                let wanted = (after.number - before.number) * nanos(period);
                Some(after.at.saturating_sub(before.at).abs_diff(wanted))
            })
            .collect(),
    )
}

/// Returns the delays after capture.
fn delays(released: &[Released], period: Duration) -> Samples {
    let steady = released.get(WARM_UP..).unwrap_or_default();
    Samples::new(steady.iter().map(|it| it.at.saturating_sub(it.number * nanos(period))).collect())
}

/// Returns the mean of the jitter, in microseconds.
fn jitter(released: &[Released], period: Duration) -> f64 {
    let mut jitter = Jitter::default();
    let steady = released.get(WARM_UP..).unwrap_or_default();
    let values = steady.iter().map(|it| {
        jitter.add(paceline_sched::Instant::from_nanos(it.at), it.number * nanos(period));
        float(jitter.value().as_nanos()) / 1e3
    });
    values.sum::<f64>() / count(steady.len().max(1))
}

/// Returns the share of late samples, in percent, if each release refers to the previous one.
fn relative(arrivals: &[Released], period: Duration) -> f64 {
    let mut spacing = Spacing::new(Anchor::Relative, Depth::default());
    let late = arrivals.iter().filter(|it| {
        let now = paceline_sched::Instant::from_nanos(it.at);
        !spacing.handle(now, it.number * nanos(period)).late.is_zero()
    });
    100.0 * count(late.count()) / count(arrivals.len().max(1))
}

/// Returns the processor time of the pacer's thread, in nanoseconds; `None` if the kernel does not report it.
pub(crate) fn pacer_nanos() -> Option<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let pacer = tasks.flatten().map(|task| task.path()).find(|task| {
        let name = std::fs::read_to_string(task.join("comm"));
        name.is_ok_and(|name| name.trim() == "paceline-pacer")
    })?;
    let spent = std::fs::read_to_string(pacer.join("schedstat")).ok()?;
    spent.split(' ').next()?.parse().ok()
}
