//! `paceline simulate`: runs a scenario in virtual time.

mod print;

use print::text as summary_text;

use paceline_sim::scenario::{Plan, Summary, oracles, run as run_plan};
use paceline_tool::exit;
use paceline_tool::input;
use paceline_tool::show::StdoutClosed;
use std::any::Any;
use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const AFTER: &str = "\
docs/reference/scenarios.md describes the fields of the file, and examples/scenarios has example files. The same \
seed gives the same output, byte for byte. paceline-lab bench FILE.toml runs the same file on real nodes.
Exit codes: 0 success; 1 an invariant failed, and the output names the seed; 2 the file is invalid.";

/// Limit of the printed oracle failures per seed.
const SHOWN_MAX: usize = 10;

/// Arguments of `paceline simulate`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct SimulateArgs {
    /// The scenario, a TOML file; - for standard input
    file: PathBuf,
    /// Random seed, overrides the file's seed
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Runs every seed from A to B inclusive, and prints only failures
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<RangeInclusive<u64>>,
    /// Prints the summary as one line of JSON
    #[arg(long)]
    json: bool,
}

fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let rule = || "must be A..B with whole numbers, A at most B; for example 1..1000".to_owned();
    let (a, b) = text.split_once("..").ok_or_else(rule)?;
    let read = |text: &str| text.trim().parse::<u64>().map_err(|_| rule());
    let range = read(a)?..=read(b)?;
    if range.is_empty() { Err(rule()) } else { Ok(range) }
}

pub(crate) fn run(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    let (name, text) = input::source(&args.file)?;
    let plan = Plan::read(&text, &name).map_err(exit::usage)?;
    if let Some(seeds) = &args.seeds {
        return all(args, &plan, seeds.clone());
    }
    let seed = args.seed.unwrap_or(plan.seed);
    let done = simulate(&plan, seed);
    if let Ok((summary, _)) = &done {
        let sums =
            if args.json { serde_json::to_string(summary)? + "\n" } else { summary_text(summary) };
        print(&sums)?;
    }
    let broken = done.map_or_else(|why| vec![why], |(_, broken)| broken);
    report(&args.file, seed, &broken);
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// Returns the summary and the oracle failures of one run, or the message of the simulator's panic.
fn simulate(plan: &Plan, seed: u64) -> Result<(Summary, Vec<String>), String> {
    let ran = catch_unwind(AssertUnwindSafe(|| run_plan(plan, seed)));
    let record = ran.map_err(|panic| panic_text(panic.as_ref()))?;
    Ok((Summary::of(plan, &record, seed), oracles(plan, &record)))
}

/// Returns the message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "the simulator panicked without a message".to_owned())
}

/// Prints the failures and the command that reproduces them.
fn report(file: &Path, seed: u64, broken: &[String]) {
    let mut text = String::new();
    for why in broken.iter().take(SHOWN_MAX) {
        let _ = writeln!(text, "error: seed {seed}: {why}");
    }
    if let Some(more) = broken.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "error: seed {seed}: and {more} more");
    }
    if !broken.is_empty() {
        let _ = writeln!(text, "to reproduce: paceline simulate {} --seed {seed}", file.display());
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn all(args: &SimulateArgs, plan: &Plan, seeds: RangeInclusive<u64>) -> anyhow::Result<ExitCode> {
    let (mut ran, mut failed) = (0_u64, Vec::new());
    for seed in seeds {
        ran += 1;
        let broken = simulate(plan, seed).map_or_else(|why| vec![why], |(_, broken)| broken);
        if !broken.is_empty() {
            report(&args.file, seed, &broken);
            failed.push(seed);
        }
    }
    let text = match args.json {
        true => {
            serde_json::json!({ "name": plan.name, "seeds": ran, "failed": failed }).to_string()
        }
        false => format!("{}: {ran} seeds, {} failed", plan.name, failed.len()),
    };
    print(&(text + "\n"))?;
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_two_numbers_in_order() {
        assert_eq!(seeds("1..1000"), Ok(1..=1000));
        assert_eq!(seeds("7..7"), Ok(7..=7));
        for wrong in ["", "1", "2..1", "a..b", "1..", "-1..2"] {
            assert!(seeds(wrong).is_err_and(|rule| rule.contains("1..1000")), "{wrong}");
        }
    }
}
