//! `paceline-lab bench objects`: shared objects over a thin link, compared with the usual ways to send them.
//!
//! Everything is in virtual time: 500 cars, 5 observers that share a link of 1 Mbit/s, and for every way the same
//! cars, bytes, relevance and extrapolation at the receiver.

mod budget;
mod link;
mod methods;
mod promise;
mod run;
mod world;

use super::report::{Bound, Report, Section, Table, Unit};
use super::stats::{count, float};
use super::{OutputArgs, interrupt};
use anyhow::Result;
use methods::{
    Accumulator, DeadReckoning, DistanceTable, FixedRate, OurExchange, Priority, REFRESH,
};
use paceline_sched::Duration;
use promise::Promise;
use run::{Method, Outcome};
use std::process::ExitCode;
use world::Scene;

/// Shared objects over 1 Mbit/s, compared with the usual ways to send them
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Virtual time of each run, of which the first 10 s are not measured
    #[arg(long = "duration", value_name = "TIME", default_value = "70s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<15, 600>)]
    seconds: u32,
    /// The number from which the cars' drives are drawn
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,
    #[command(flatten)]
    output: OutputArgs,
}

/// The updates per second of the contracts.
const PROMISED_UPDATES: u32 = 4;
/// The delay of the contracts, and those for which the granted cars are shown.
const PROMISED_WITHIN: Duration = Duration::from_millis(300);
const DELAYS_MS: [u64; 6] = [100, 150, 200, 250, 300, 400];

/// The losses of lossy links, of 1,000 messages, and our tolerance there in metres.
const LOSSES_PERMILLE: [u64; 3] = [0, 10, 50];
const LOSSY_TOLERANCE: f64 = 0.0055;

/// The tolerances of objects of relevance 1 that are tried, in millimetres.
const TOLERANCES_MM: [f64; 8] = [3.5, 4.0, 4.5, 4.75, 5.0, 5.25, 5.5, 6.0];

/// A method to send objects, and its best result.
struct Tuned {
    name: String,
    outcome: Outcome,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let mut command = "paceline-lab bench objects".to_owned();
    if args.seconds != 70 {
        command.push_str(&format!(" --duration {}s", args.seconds));
    }
    if args.seed != 1 {
        command.push_str(&format!(" --seed {}", args.seed));
    }
    let mut report = Report::new("Shared objects over a thin link", &command);
    let seconds = if args.output.short { 15 } else { u64::from(args.seconds) };
    let scenes = world::scenes(seconds, args.seed);
    let promise = promised(PROMISED_WITHIN);
    let ours = best("exchange list", TOLERANCES_MM, &scenes, |millimetres| {
        OurExchange::new(Some(promise), millimetres / 1e3)
    });
    let baselines = baselines(&scenes)?;
    report.add(compared(&ours, &baselines, &promise), &args.output);
    report.add(delays(&baselines, &scenes)?, &args.output);
    let mut others = vec![
        best("exchange list without a contract", TOLERANCES_MM, &scenes, |millimetres| {
            OurExchange::new(None, millimetres / 1e3)
        }),
        best("accumulator of relevance × error", [0], &scenes, |_| {
            Accumulator::new(Priority::Error)
        }),
        best("fixed rate, one message reaches all", [0], &scenes, |_| FixedRate::new(true)),
    ];
    others.push(dead_reckoning("dead reckoning, one message reaches all", true, &scenes)?);
    report.add(further(&ours, &others), &args.output);
    report.add(losses(&promise, &scenes)?, &args.output);
    report.finish(&args.output)
}

/// Returns the outcomes of the usual methods, each with its best values.
fn baselines(scenes: &[Scene]) -> Result<Vec<Tuned>> {
    let powers = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0];
    Ok(vec![
        best("fixed rate to everybody", [0], scenes, |_| FixedRate::new(false)),
        dead_reckoning("dead reckoning (DIS)", false, scenes)?,
        best("accumulator (naia)", powers, scenes, |power| {
            Accumulator::new(Priority::Relevance(power))
        }),
        distance_table(scenes)?,
    ])
}

/// Returns the outcome with the lowest p99 among some values.
fn best<V: Copy + std::fmt::Debug, M: Method>(
    name: &str,
    values: impl IntoIterator<Item = V>,
    scenes: &[Scene],
    method: impl Fn(V) -> M,
) -> Tuned {
    let outcomes = values.into_iter().map(|value| (value, run::run(&mut method(value), scenes)));
    let p99 = |outcome: &Outcome| outcome.weighted_percentile(990);
    let least = outcomes.min_by(|(_, one), (_, other)| p99(one).total_cmp(&p99(other)));
    let (name, outcome) = least.map_or_else(
        || (name.to_owned(), Outcome::default()),
        |(value, outcome)| (format!("{name} [{value:?}]").replace(" [0]", ""), outcome),
    );
    Tuned { name, outcome }
}

/// Returns the outcome of the lowest threshold that the bytes permit.
fn dead_reckoning(name: &str, multicast: bool, scenes: &[Scene]) -> Result<Tuned> {
    let threshold = threshold(multicast, scenes)?;
    let outcome = run::run(&mut DeadReckoning::new(threshold, multicast), scenes);
    Ok(Tuned { name: format!("{name} [{threshold:.2} m]"), outcome })
}

/// Returns the lowest threshold of dead reckoning that the bytes permit.
fn threshold(multicast: bool, scenes: &[Scene]) -> Result<f64> {
    let (mut low, mut high) = (1e-4, 100.0);
    for _ in 0..18 {
        interrupt::check()?;
        let middle = f64::sqrt(low * high);
        let outcome = run::run(&mut DeadReckoning::new(middle, multicast), scenes);
        if outcome.used_percent() > float(budget::SHARE_PERCENT) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(high)
}

/// Returns the best outcome among tables whose rates use all bytes.
fn distance_table(scenes: &[Scene]) -> Result<Tuned> {
    let mut ways = Vec::new();
    for divisor in [1.2, 1.5, 2.0, 2.5] {
        let (mut low, mut high) = (0.1, 200.0);
        for _ in 0..18 {
            interrupt::check()?;
            let middle = f64::sqrt(low * high);
            let outcome = run::run(&mut DistanceTable::new(middle, divisor), scenes);
            if outcome.used_percent() > float(budget::SHARE_PERCENT) {
                high = middle;
            } else {
                low = middle;
            }
        }
        let outcome = run::run(&mut DistanceTable::new(low, divisor), scenes);
        ways.push(Tuned {
            name: format!("table of rates by distance [{low:.1}/s ÷ {divisor}]"),
            outcome,
        });
    }
    let p99 = |way: &Tuned| way.outcome.weighted_percentile(990);
    let least = ways.into_iter().min_by(|one, other| p99(one).total_cmp(&p99(other)));
    Ok(least.unwrap_or_else(|| Tuned { name: "table".to_owned(), outcome: Outcome::default() }))
}

const HEADINGS: [&str; 6] = [
    "p99 of error × relevance, mm",
    "p99.9, mm",
    "mean, mm",
    "error at 99 % of the relevance, m",
    "updates/s",
    "of the link, %",
];

fn table(ways: &[(&str, &Outcome)]) -> Table {
    let mut headings = vec!["method".to_owned()];
    headings.extend(HEADINGS.map(str::to_owned));
    let mut table = Table::new(headings);
    for (name, outcome) in ways {
        let cells = vec![
            outcome.weighted_percentile(990) * 1e3,
            outcome.weighted_percentile(999) * 1e3,
            outcome.weighted_mean() * 1e3,
            outcome.percentile_of_relevance(),
            outcome.updates_per_second(),
            outcome.used_percent(),
        ];
        table.row((*name).to_owned(), cells);
    }
    table
}

fn rows<'a>(ours: &'a Tuned, others: &'a [Tuned]) -> Vec<(&'a str, &'a Outcome)> {
    let ways = std::iter::once(ours).chain(others);
    ways.map(|way| (way.name.as_str(), &way.outcome)).collect()
}

/// Returns the contract of each observer with this delay, for as many cars as the link grants.
fn promised(delay: Duration) -> Promise {
    Promise::none(PROMISED_UPDATES, REFRESH, delay).most()
}

/// Returns the number of cars that the link grants, and their share of the updates, for several delays.
fn delays(baselines: &[Tuned], scenes: &[Scene]) -> Result<Section> {
    let headings = [
        "delay of the contracts, ms",
        "cars of each observer",
        "reserved, % of the link",
        "promised, % of the updates",
        "promised updates past the delay",
        "p99 / the best other method's",
    ];
    let mut table = Table::new(headings.map(str::to_owned).to_vec());
    let least = least(baselines, |outcome| outcome.weighted_percentile(990));
    for milliseconds in DELAYS_MS {
        interrupt::check()?;
        let promise = promised(Duration::from_millis(milliseconds));
        let ours = best("exchange list", [5.0, 5.5, 6.0], scenes, |millimetres| {
            OurExchange::new(Some(promise), millimetres / 1e3)
        });
        let Tuned { outcome, .. } = ours;
        let cells = vec![
            count(promise.cars),
            reserved_percent(&promise),
            outcome.promised_percent(),
            float(outcome.late),
            outcome.weighted_percentile(990) / least,
        ];
        table.row(milliseconds.to_string(), cells);
    }
    let mut section = Section::new("The cars that admission grants");
    section.table(table);
    section.note(format!("All contracts have at most {PROMISED_UPDATES} updates per second."));
    Ok(section)
}

/// Returns the errors over links that lose messages, and that retransmit nothing.
fn losses(promise: &Promise, scenes: &[Scene]) -> Result<Section> {
    let threshold = threshold(false, scenes)?;
    let mut names = Vec::new();
    let mut outcomes = Vec::new();
    for loss in LOSSES_PERMILLE {
        interrupt::check()?;
        let mut methods: [(&str, Box<dyn Method>); 4] = [
            ("exchange list", Box::new(OurExchange::new(Some(*promise), LOSSY_TOLERANCE))),
            ("accumulator of relevance × error", Box::new(Accumulator::new(Priority::Error))),
            ("dead reckoning (DIS)", Box::new(DeadReckoning::new(threshold, false))),
            ("fixed rate to everybody", Box::new(FixedRate::new(false))),
        ];
        for (name, method) in &mut methods {
            names.push(format!("{name}, {:.0} % lost", float(loss) / 10.0));
            outcomes.push(run::run_with_loss(method.as_mut(), scenes, loss));
        }
    }
    let mut section = Section::new("A link that loses messages");
    let rows: Vec<_> = names.iter().map(String::as_str).zip(&outcomes).collect();
    section.table(table(&rows));
    section.note("No link retransmits here. A sender knows of a loss 100 ms later; only the exchange list uses that.");
    Ok(section)
}

fn reserved_percent(promise: &Promise) -> f64 {
    float(promise.reserved()) / float(link::RATE) * 100.0
}

/// Returns the least value of the other methods.
fn least(baselines: &[Tuned], of: fn(&Outcome) -> f64) -> f64 {
    baselines.iter().map(|way| of(&way.outcome)).fold(f64::INFINITY, f64::min)
}

fn compared(ours: &Tuned, baselines: &[Tuned], promise: &Promise) -> Section {
    let mut section =
        Section::new("500 cars, 5 observers, 1 Mbit/s, the same bytes").alone("exchange list");
    section.table(table(&rows(ours, baselines)));
    let ours = &ours.outcome;
    let p99 = |outcome: &Outcome| outcome.weighted_percentile(990);
    section.must(
        "p99 / the best other method's",
        Unit::Ratio,
        p99(ours) / least(baselines, p99),
        f64::NAN,
        Bound::AtMost(0.5),
    );
    let mean = Outcome::weighted_mean;
    let ratio = mean(ours) / least(baselines, mean);
    section.show("mean / the best other method's", Unit::Ratio, ratio, f64::NAN);
    section.must(
        &format!("promised updates past {PROMISED_WITHIN}"),
        Unit::Count,
        float(ours.late),
        f64::NAN,
        Bound::AtMost(0.0),
    );
    section.show("promised updates", Unit::Count, float(ours.promised), f64::NAN);
    let share = ours.promised_percent();
    section.must("promised updates of all", Unit::Percent, share, f64::NAN, Bound::AtLeast(30.0));
    let part = reserved_percent(promise);
    let most = Bound::AtMost(float(budget::SHARE_PERCENT));
    section.must("reserved for promised updates, of the link", Unit::Percent, part, f64::NAN, most);
    let unknown = baselines.iter().map(|way| way.outcome.unknown()).sum::<u64>() + ours.unknown();
    section.show("samples of unknown cars", Unit::Count, float(unknown), f64::NAN);
    section.note("Values in brackets are the best of those that were tried.");
    section.note(format!(
        "{} cars of each observer have a contract of at most {PROMISED_UPDATES} updates per second within {PROMISED_WITHIN}: as many as the admission test of the link grants.",
        promise.cars
    ));
    section
}

fn further(ours: &Tuned, others: &[Tuned]) -> Section {
    let mut section = Section::new("Other conditions").alone("exchange list");
    section.table(table(&rows(ours, others)));
    let p99 = |way: &Tuned| way.outcome.weighted_percentile(990);
    for other in others {
        let name = format!("p99 / {}", other.name);
        section.show(&name, Unit::Ratio, p99(ours) / p99(other), f64::NAN);
    }
    section.note(
        "No library accumulates relevance × error; it is what a user of one could write. One message that reaches all observers needs multicast on the link.",
    );
    section
}
