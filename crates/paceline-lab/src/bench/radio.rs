//! `paceline-lab bench radio`: steering next to an elastic camera and data over a radio whose capacity changes.
//!
//! A robot is steered at 100 Hz within 100 ms, and sends pictures with an elastic contract and best-effort data that fills the link. The emulator changes the rate of the
//! link between the two nodes. Publisher and subscriber are in this process, so that one clock measures the ages.

mod camera;
mod course;
mod goodput;
mod plain;
mod run;
mod trace;

use super::netns;
use super::report::{Bound, Report, Section, Table, Unit};
use super::scenario::trust::Certificates;
use super::stats::count;
use super::{OutputArgs, interrupt};
use anyhow::Result;
use paceline_tool::scratch::Scratch;
use run::{OPERATOR, ROBOT, Run, Seen};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use trace::Trace;

/// Steering over a radio of changing capacity, measured and fixed (needs root)
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Time of each trace
    #[arg(long = "duration", value_name = "TIME", default_value = "60s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<10, 3_600>)]
    seconds: u32,
    /// Only these traces: steady, step, ramp, sawtooth, walk, handovers, outage
    #[arg(long = "trace", value_name = "NAME", value_delimiter = ',', value_parser = Trace::parse)]
    traces: Vec<Trace>,
    /// Draw the capacity, its estimate and the granted rates of the last trace with a measured capacity over tcp, as SVG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    fn traces(&self) -> Vec<Trace> {
        match (self.output.short, self.traces.as_slice()) {
            (_, [_, ..]) => self.traces.clone(),
            (true, []) => vec![Trace::Step],
            (false, []) => Trace::ALL.to_vec(),
        }
    }
}

/// The columns of the tables.
const HEADINGS: [&str; 15] = [
    "capacity",
    "steering sent",
    "late",
    "lost",
    "windows broken",
    "longest bad time s",
    "admitted % of the link",
    "camera % of the oracle",
    "reduced",
    "announced",
    "warnings",
    "restored",
    "pictures late",
    "data % of the link",
    "processor ms per MB",
];
/// The configured capacities: the measured one, and two that somebody could type in.
const MEASURED: &str = "auto 1mbit..50mbit";
const STATED: &str = "20mbit";
const CASES: [(&str, &str); 3] = [(MEASURED, "tcp"), (MEASURED, "quic"), (STATED, "tcp")];
/// The comparison of their processor times: pairs of runs, the time of each, and the greatest ratio.
const TURNS: usize = 7;
const TURN: Duration = Duration::from_secs(8);
const COSTS_MOST: f64 = 1.05;
/// The goals in percent: announced reductions, and the camera compared with the oracle.
const ANNOUNCED: f64 = 95.0;
const OF_ORACLE: f64 = 80.0;
const SHORT: Duration = Duration::from_secs(6);

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !netns::can_build("radio") {
        return Ok(ExitCode::from(2));
    }
    interrupt::install()?;
    let command = match args.seconds {
        60 => "paceline-lab bench radio".to_owned(),
        seconds => format!("paceline-lab bench radio --duration {seconds}s"),
    };
    let certificates = Certificates::issue([ROBOT, OPERATOR].into_iter())?;
    let scratch = Scratch::new("radio")?;
    let mut report = Report::new("Steering over a radio", &command);
    let short = args.output.short;
    let mut summary = Summary::default();
    let length = if short { SHORT } else { Duration::from_secs(args.seconds.into()) };
    for (capacity, protocol) in CASES.into_iter().take(if short { 1 } else { CASES.len() }) {
        let mut section = Section::new(format!("capacity={capacity} over {protocol}"));
        let mut table = Table::new(HEADINGS.map(str::to_owned).into());
        for trace in args.traces() {
            eprintln!("{capacity} over {protocol}: {}", trace.name());
            let rates = trace.sampled(length);
            let run = Run { capacity, protocol, rates, follows_goodput: false };
            let seen = run.measure(&scratch, &certificates)?;
            if let (Some(file), (MEASURED, "tcp")) = (&args.picture, (capacity, protocol)) {
                std::fs::write(file, seen.course.picture(trace.name()))?;
            }
            summary.add(trace, capacity, &seen);
            table.row(trace.name().to_owned(), figures(&seen));
        }
        section.table(table);
        report.add(section, &args.output);
    }
    report.add(summary.section(), &args.output);
    if !short {
        let mut section = Section::new("a cap that follows the goodput over tcp");
        let mut table = Table::new(HEADINGS.map(str::to_owned).into());
        for trace in args.traces() {
            eprintln!("a cap that follows the goodput: {}", trace.name());
            let (capacity, rates) = (STATED, trace.sampled(length));
            let run = Run { capacity, protocol: "tcp", rates, follows_goodput: true };
            let seen = run.measure(&scratch, &certificates)?;
            table.row(trace.name().to_owned(), figures(&seen));
        }
        section.table(table);
        report.add(section, &args.output);
        let mut section = Section::new("plain Zenoh with priorities over tcp");
        let mut table = Table::new(HEADINGS.map(str::to_owned).into());
        for trace in args.traces() {
            eprintln!("plain Zenoh: {}", trace.name());
            let rates = trace.sampled(length);
            let run = Run { capacity: "", protocol: "tcp", rates, follows_goodput: false };
            table.row(trace.name().to_owned(), figures(&run.measure_plain(&scratch)?));
        }
        section.table(table);
        report.add(section, &args.output);
        if args.traces.is_empty() {
            report.add(cost(&scratch, &certificates)?, &args.output);
        }
    }
    report.finish(&args.output)
}

/// Measures the processor time with a measured and a stated capacity on a steady link, in turn.
fn cost(scratch: &Scratch, certificates: &Certificates) -> Result<Section> {
    let mut section =
        Section::new("processor ms per MB over tcp, in turn").headings(["auto", "20mbit"]);
    let mut ratios = Vec::new();
    for turn in 1..=TURNS {
        let spent = [MEASURED, STATED].map(|capacity| {
            let rates = Trace::Steady.sampled(TURN);
            let run = Run { capacity, protocol: "tcp", rates, follows_goodput: false };
            run.measure(scratch, certificates)
        });
        let [auto, stated] = spent;
        let (auto, stated) = (auto?.processor, stated?.processor);
        section.show(&format!("turn {turn}"), Unit::Count, auto, stated);
        ratios.push(auto / stated);
    }
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
    section.must("median ratio", Unit::Ratio, middle, f64::NAN, Bound::AtMost(COSTS_MOST));
    Ok(section)
}

/// The figures with a goal, over all runs with a measured capacity.
#[derive(Default)]
struct Summary {
    /// Reductions on ramps and sawtooths, and those that were announced.
    reduced: usize,
    announced: usize,
    /// Warnings on the steady link.
    on_steady: usize,
    /// The parts of the oracle's grants, with the number of runs.
    of_oracle: f64,
    runs: usize,
    of_oracle_least: Option<f64>,
}

impl Summary {
    fn add(&mut self, trace: Trace, capacity: &str, seen: &Seen) {
        match trace {
            Trace::Ramp | Trace::Sawtooth => {
                let [reduced, announced, ..] = seen.film.steps();
                self.reduced += reduced;
                self.announced += announced;
            }
            Trace::Steady => {
                let [_, _, warnings, _] = seen.film.steps();
                self.on_steady += warnings;
            }
            Trace::Step | Trace::Walk | Trace::Handovers | Trace::Outage => {}
        }
        if capacity == MEASURED {
            self.of_oracle += seen.of_oracle;
            self.runs += 1;
            let least = self.of_oracle_least.unwrap_or(f64::INFINITY);
            self.of_oracle_least = Some(least.min(seen.of_oracle));
        }
    }

    fn section(&self) -> Section {
        let mut section = Section::new("goals");
        if self.reduced > 0 {
            let part = 100.0 * count(self.announced) / count(self.reduced);
            section.show(
                "reductions on ramps and sawtooths",
                Unit::Count,
                count(self.reduced),
                f64::NAN,
            );
            section.must("announced", Unit::Percent, part, f64::NAN, Bound::AtLeast(ANNOUNCED));
        }
        let warnings = count(self.on_steady);
        section.must(
            "warnings on the steady link",
            Unit::Count,
            warnings,
            f64::NAN,
            Bound::AtMost(0.0),
        );
        if let Some(least) = self.of_oracle_least {
            let mean = 100.0 * self.of_oracle / count(self.runs);
            section.show("camera of the oracle, mean", Unit::Percent, mean, f64::NAN);
            section.must(
                "camera of the oracle, least",
                Unit::Percent,
                100.0 * least,
                f64::NAN,
                Bound::AtLeast(OF_ORACLE),
            );
        }
        section
    }
}

fn figures(seen: &Seen) -> Vec<f64> {
    let [reduced, announced, warnings, restored] = seen.film.steps();
    vec![
        count(seen.steering),
        count(seen.late),
        count(seen.lost),
        count(seen.broken),
        seen.bad_longest.as_secs_f64(),
        seen.admitted * 100.0,
        seen.of_oracle * 100.0,
        count(reduced),
        count(announced),
        count(warnings),
        count(restored),
        count(seen.film.late),
        seen.data * 100.0,
        seen.processor,
    ]
}
