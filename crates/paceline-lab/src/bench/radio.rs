//! `paceline-lab bench radio`: steering next to an elastic camera and data over a radio whose capacity changes.
//!
//! A robot is steered at 100 Hz within 100 ms, and sends pictures with an elastic contract and best-effort data that fills the link. The emulator changes the rate of the
//! link between the two nodes. Publisher and subscriber are in this process, so that one clock measures the ages.

mod camera;
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
    #[command(flatten)]
    output: OutputArgs,
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
    let length = if short { SHORT } else { Duration::from_secs(args.seconds.into()) };
    for (capacity, protocol) in CASES.into_iter().take(if short { 1 } else { CASES.len() }) {
        let mut section = Section::new(format!("capacity={capacity} over {protocol}"));
        let mut table = Table::new(HEADINGS.map(str::to_owned).into());
        for trace in Trace::ALL.into_iter().filter(|trace| !short || *trace == Trace::Step) {
            eprintln!("{capacity} over {protocol}: {}", trace.name());
            let run = Run { capacity, protocol, rates: trace.sampled(length) };
            let seen = run.measure(&scratch, &certificates)?;
            table.row(trace.name().to_owned(), figures(&seen));
        }
        section.table(table);
        report.add(section, &args.output);
    }
    if !short {
        let mut section = Section::new("plain Zenoh with priorities over tcp");
        let mut table = Table::new(HEADINGS.map(str::to_owned).into());
        for trace in Trace::ALL {
            eprintln!("plain Zenoh: {}", trace.name());
            let run = Run { capacity: "", protocol: "tcp", rates: trace.sampled(length) };
            table.row(trace.name().to_owned(), figures(&run.measure_plain(&scratch)?));
        }
        section.table(table);
        report.add(section, &args.output);
        report.add(cost(&scratch, &certificates)?, &args.output);
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
            Run { capacity, protocol: "tcp", rates }.measure(scratch, certificates)
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

fn figures(seen: &Seen) -> Vec<f64> {
    vec![
        count(seen.steering),
        count(seen.late),
        count(seen.lost),
        count(seen.broken),
        seen.bad_longest.as_secs_f64(),
        seen.admitted * 100.0,
        seen.of_oracle * 100.0,
        count(seen.film.reduced + seen.film.refused),
        count(seen.film.announced),
        count(seen.film.warnings),
        count(seen.film.restored),
        count(seen.film.late),
        seen.data * 100.0,
        seen.processor,
    ]
}
