//! `paceline-lab schedule`: simulates a link in virtual time, from a JSON description to decisions and a summary.

mod classes;
mod input;
mod print;
mod stream;
mod summary;

use anyhow::Context as _;
use input::Plan;
use paceline_sched::LossTolerance;
use paceline_sched::timeline::{Doubt, Step, Tally, Timeline};
use paceline_tool::exit::{self, INTERRUPTED};
use paceline_tool::show;
use paceline_tool::stop::Stop;
use print::Printer;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal as _, Read};
use std::path::PathBuf;
use std::process::ExitCode;

/// Limit of the streams for `--trace`.
const TRACED_MAX: usize = 1_000;
/// Number of steps between checks for a signal.
const STEPS: u64 = 1_024;

const EXAMPLE: &str = r#"Example: two streams of one period share slots of a millisecond.
  {"discipline": "dwcs", "slot": "1ms", "duration": "8ms", "streams": [
    {"id": "A", "period": "1ms", "loss": "1/2"},
    {"id": "B", "period": "1ms", "loss": "1/2"}]}
docs/reference/schedule.md describes every field. examples/schedule/ has the papers' schedules."#;

/// Arguments of `paceline-lab schedule`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct ScheduleArgs {
    /// JSON description of the link and its streams: a file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Prints the state of every stream (window constraint, deadline) before each decision
    #[arg(long, conflicts_with = "summary")]
    trace: bool,
    /// Prints only the summary
    #[arg(long)]
    summary: bool,
    /// Exits with code 3 if any window was violated
    #[arg(long)]
    check: bool,
    /// Prints JSON lines; the default unless standard output is a terminal
    #[arg(long)]
    json: bool,
    /// Prints readable text; the default on a terminal
    #[arg(long, conflicts_with = "json")]
    text: bool,
}

/// Runs a description.
pub(crate) fn run(args: &ScheduleArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let plan = read(args)?;
    if args.trace && plan.streams.len() > TRACED_MAX {
        return Err(exit::usage(format!(
            "--trace: {} streams, must be at most {TRACED_MAX}; try fewer streams, or omit --trace",
            plan.streams.len()
        )));
    }
    let doubts = Doubt::all(&plan.setup, &plan.streams);
    for doubt in &doubts {
        show::note(&format!("warning: {doubt}"));
    }
    let text = args.text || (!args.json && io::stdout().is_terminal());
    let mut printer = Printer::new(&plan.ids, text);
    let mut tallies: Vec<Tally> = plan.streams.iter().map(tally).collect();
    let load = paceline_sched::timeline::Load::of(&plan.setup, &plan.streams);
    let classes = plan.classes.as_ref().map_or(Vec::new(), |classes| {
        let all = classes.list.iter().zip(&classes.indexes);
        all.map(|(class, index)| (class.id.clone(), *index)).collect()
    });
    let mut timeline = match plan.classes {
        Some(classes) => Timeline::with_classes(plan.setup, classes.tree, plan.streams),
        None => Timeline::new(plan.setup, plan.streams),
    };
    let done = decide(args, &mut timeline, &mut tallies, &mut printer, &stop)?;
    let sums = summary::Sums {
        setup: plan.setup,
        doubts,
        load,
        ids: &plan.ids,
        tallies: &tallies,
        classes,
    };
    printer.summary(&sums, &timeline)?;
    let violations: u64 = tallies.iter().map(|tally| tally.violations).sum();
    match (done, violations) {
        (false, _) => Ok(ExitCode::from(INTERRUPTED)),
        (true, 1..) if args.check => Err(exit::refused(format!(
            "--check: {violations} windows had more misses than their loss tolerance allows"
        ))),
        (true, _) => Ok(ExitCode::SUCCESS),
    }
}

/// Reads the description from the file or standard input.
fn read(args: &ScheduleArgs) -> anyhow::Result<Plan> {
    if args.file.as_os_str() == "-" {
        return parse(io::stdin().lock(), "standard input");
    }
    let name = args.file.display().to_string();
    let file = File::open(&args.file).with_context(|| format!("cannot open {name}"))?;
    parse(file, &name)
}

fn parse(from: impl Read, name: &str) -> anyhow::Result<Plan> {
    input::read(BufReader::new(from)).map_err(|error| exit::usage(format!("{name}: {error}")))
}

fn tally(spec: &paceline_sched::timeline::Spec) -> Tally {
    let contract = spec.terms.contract();
    Tally::new(contract.map_or(LossTolerance::EDF, |contract| contract.loss))
}

/// Prints and counts all decisions; returns false if a signal interrupts it.
fn decide(
    args: &ScheduleArgs,
    timeline: &mut Timeline,
    tallies: &mut [Tally],
    printer: &mut Printer<'_>,
    stop: &Stop,
) -> anyhow::Result<bool> {
    let mut steps = 0_u64;
    while let Some(step) = timeline.next() {
        steps += 1;
        if steps.is_multiple_of(STEPS) && stop.requested() {
            return Ok(false);
        }
        match step {
            Step::Chosen(pick) if args.trace => printer.trace(pick, timeline)?,
            Step::Chosen(_) => {}
            Step::Decided(decision) => {
                let Some(tally) = tallies.get_mut(decision.stream.0 as usize) else { continue };
                let violated = tally.record(&decision);
                if !args.summary {
                    printer.decision(&decision, violated)?;
                }
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
