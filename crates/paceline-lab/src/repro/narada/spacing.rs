//! The jitter of samples before and after spacing: figures 16 to 20, live, with the set-up of figure 15.
//!
//! The network of the set-up is a random delay before each sample is published. The subscription with spacing and the
//! paper's threads get the same samples at the same time.

use super::Figures;
use super::threads::{Outcome, Threads};
use crate::bench::report::{Bound, Section, Table, Unit};
use crate::bench::stats::{count, float};
use crate::bench::tds::{Publishing, Released, number, pacer_nanos, since};
use crate::chart::{self, Line};
use anyhow::{Context as _, Result};
use paceline::{Node, Sample};
use paceline_time::spacing::Jitter;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The paper leaves out the first messages; here it is this part of them.
const LEFT_OUT: usize = 10;
/// The pictures of the camera: 50 per second.
const PICTURES: Duration = Duration::from_millis(20);
const ATLANTIC: Duration = Duration::from_millis(40);
/// After this time without a sample, the missing ones are lost.
const SILENCE: Duration = Duration::from_secs(10);
const CLUSTER: Duration = Duration::from_millis(2);

/// The same samples at the arrival, after spacing, and after threads with several slices.
struct Runs {
    period: Duration,
    input: Vec<Released>,
    output: Vec<Released>,
    threads: Vec<Outcome>,
    /// The processor time of the pacer.
    pacer: Option<u64>,
    took: Duration,
}

fn run(setup: Publishing, slices: &[Duration]) -> Result<Runs> {
    let node = Node::builder().name("narada").isolated().open()?;
    let mut publisher = node.publisher("tds").declare()?;
    let began = Instant::now() + Duration::from_millis(500);
    let period = setup.period;
    let released =
        move |sample: &Sample| Released { number: number(sample, period), at: since(began) };
    let (out, output) = channel();
    let spaced = move |sample: Sample| {
        let _ = out.send(released(&sample));
    };
    let spacing = node.subscriber("tds").spacing(Duration::ZERO..=2 * setup.variation);
    let spacing = spacing.callback(spaced)?;
    let start = |slice: &Duration| Threads::start(began, *slice, period, setup.variation);
    let threads: Vec<_> = slices.iter().map(start).collect();
    let (to, input) = channel();
    let arrive = move |sample: Sample| {
        let _ = to.send(released(&sample));
    };
    let plain = node.subscriber("tds").callback(arrive)?;
    let ready = publisher.wait_matching(Duration::from_secs(5));
    anyhow::ensure!(ready, "the subscriptions do not match");
    let before = pacer_nanos();
    let total = usize::try_from(setup.samples).context("too many samples")?;
    let input = std::thread::scope(|scope| {
        let threads = &threads;
        let distribute = scope.spawn(move || {
            let each = arrivals(&input).take(total);
            each.inspect(|it| threads.iter().for_each(|one| one.add(*it))).collect::<Vec<_>>()
        });
        setup.publish(&mut publisher, began)?;
        distribute.join().ok().context("a thread panicked")
    })?;
    let output: Vec<_> = arrivals(&output).take(total).collect();
    let least = input.len().min(output.len());
    anyhow::ensure!(least == total, "only {least} of {total} samples arrived");
    std::thread::sleep(2 * setup.variation + Duration::from_millis(100));
    // The pacer's thread starts with its first sample.
    let pacer = pacer_nanos().map(|after| after.saturating_sub(before.unwrap_or_default()));
    let threads = threads.into_iter().map(Threads::end).collect();
    drop((plain, spacing));
    node.close();
    Ok(Runs { period, input, output, threads, pacer, took: began.elapsed() })
}

/// Returns the samples that arrive, until none does for [`SILENCE`].
fn arrivals(channel: &Receiver<Released>) -> impl Iterator<Item = Released> {
    std::iter::from_fn(|| channel.recv_timeout(SILENCE).ok())
}

/// Returns the jitter after each sample in milliseconds, without the first ones.
fn jitters(released: &[Released], period: Duration) -> Vec<(f64, f64)> {
    let nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    let mut jitter = Jitter::default();
    let later = released.iter().skip(released.len() / LEFT_OUT);
    let values = later.map(|it| {
        jitter.add(paceline_sched::Instant::from_nanos(it.at), it.number * nanos);
        (float(it.number), float(jitter.value().as_nanos()) / 1e6)
    });
    values.collect()
}

fn mean(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).sum::<f64>() / count(points.len().max(1))
}

fn line(name: &str, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.to_owned(), points }
}

const AXES: [&str; 2] = ["sample", "jitter in ms (RFC 3550)"];

impl Runs {
    fn percent(&self, nanos: Option<u64>) -> f64 {
        nanos.map_or(f64::NAN, |nanos| 1e2 * float(nanos) / (self.took.as_secs_f64() * 1e9))
    }

    /// Compares the jitter before and after spacing; draws it as figure `figures[0]`, and the output alone as the next.
    fn reduction(
        &self,
        (title, most): (&str, f64),
        numbers: &[u32],
        figures: &Figures,
    ) -> Result<Section> {
        let (input, output) =
            (jitters(&self.input, self.period), jitters(&self.output, self.period));
        let mut section = Section::new(title).headings(["input", "output"]);
        let (before, after) = (mean(&input), mean(&output));
        section.show("mean jitter", Unit::Millis, before, after);
        let ratio = after / before;
        section.must("output / input", Unit::Ratio, ratio, f64::NAN, Bound::AtMost(most));
        let both = [line("input", input), line("output", output.clone())];
        let alone = [line("output", output)];
        for (number, lines) in numbers.iter().zip([&both[..], &alone[..]]) {
            figures
                .write(*number, &chart::svg(&format!("Figure {number}: {title}"), AXES, lines))?;
        }
        Ok(section)
    }

    /// Compares the slices of the paper's threads.
    fn slices(&self, title: &str, figure: u32, figures: &Figures) -> Result<Section> {
        let mut section = Section::new(title).headings(["one pacer", "five threads, 10 µs"]);
        let heads = ["", "mean jitter, ms", "processor, %", "printed processor, %"];
        let mut table = Table::new(heads.map(str::to_owned).to_vec());
        let mut lines = Vec::new();
        for one in &self.threads {
            let points = jitters(&one.released, self.period);
            let printed = match one.slice.as_micros() {
                1_000 => 5.5,
                10 => 22.5,
                _ => f64::NAN,
            };
            let name = format!("five threads, {} µs", one.slice.as_micros());
            let cpu = self.percent(Some(one.cpu_nanos));
            table.row(name.clone(), vec![mean(&points), cpu, printed]);
            lines.push(line(&name, points));
        }
        let points = jitters(&self.output, self.period);
        let cpu = self.percent(self.pacer);
        table.row("one pacer".to_owned(), vec![mean(&points), cpu, f64::NAN]);
        lines.push(line("one pacer", points));
        section.table(table);
        let densest = self.threads.last().map(|one| self.percent(Some(one.cpu_nanos)));
        let name = "processor time, of one core";
        let densest = densest.unwrap_or(f64::NAN);
        section.must(name, Unit::Percent, cpu, densest, Bound::AtMost(densest));
        section.note("The paper prints 5 to 6 % for 1 ms and 20 to 25 % for 10 µs (1.5 GHz); the column has their means.");
        figures.write(figure, &chart::svg(&format!("Figure {figure}: {title}"), AXES, &lines))?;
        Ok(section)
    }
}

/// Measures the figures 16 to 20 for `seconds` each.
pub(super) fn sections(seconds: u32, figures: &Figures) -> Result<Vec<Section>> {
    let of = |period: Duration, variation| {
        let samples = (Duration::from_secs(seconds.into()).as_nanos() / period.as_nanos()).max(1);
        Publishing { period, variation, samples: u64::try_from(samples).unwrap_or(u64::MAX) }
    };
    let slices = [1_000, 100, 10].map(Duration::from_micros);
    let far = run(of(PICTURES, ATLANTIC), &slices)?;
    let near = run(of(PICTURES, CLUSTER), &[])?;
    let dense = run(of(Duration::from_micros(500), CLUSTER), &[])?;
    Ok(vec![
        far.reduction(("Figures 16 and 17: trans-Atlantic, ± 20 ms", 0.25), &[16, 17], figures)?,
        far.slices("Figure 18: slices of the threads, trans-Atlantic", 18, figures)?,
        near.reduction(("Figure 19: cluster, ± 1 ms", 1.0), &[19], figures)?,
        dense.reduction(("Figure 20: spacing of 500 µs, ± 1 ms", 1.0), &[20], figures)?,
    ])
}
