//! The `paceline-lab` command: benchmarks, figures of papers, impaired networks and scheduling disciplines in virtual
//! time.

mod bench;
mod chart;
mod impair;
mod netns;
mod repro;
mod schedule;
mod turns;

use clap::{Parser, Subcommand};
use paceline_tool::{exit, log, spelling};
use std::ffi::OsString;
use std::process::ExitCode;

const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 failure while running; 2 usage error; 3 failed check; 130 interrupted.
PACELINE_LOG sets the filter for log messages (default: warn; for example paceline=debug, off).";

/// Experiments with Paceline: benchmarks, impaired networks, scheduling disciplines in virtual time.
#[derive(Parser)]
#[command(name = "paceline-lab", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Lab {
    /// Filter for log messages on standard error: off, error, warn, info, debug, trace, or TARGET=LEVEL,…;
    /// defaults to $PACELINE_LOG
    #[arg(long, global = true, value_name = "FILTER", value_parser = log::argument)]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs benchmarks
    Bench(Box<bench::BenchArgs>),
    /// Connects two programs over a network with added delay, loss or reordering (needs root)
    Impair(Box<impair::ImpairArgs>),
    /// Reproduces the figures of a paper and prints them next to its own
    Repro(repro::ReproArgs),
    /// Simulates a scheduling discipline on one link in virtual time, and prints every decision
    Schedule(schedule::ScheduleArgs),
}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    match Lab::try_parse_from(&args) {
        Ok(lab) => {
            let started = log::start(lab.log.as_deref());
            started.and_then(|()| run(lab.command)).unwrap_or_else(|error| exit::report(&error))
        }
        Err(error) => spelling::report(&error, &<Lab as clap::CommandFactory>::command(), &args),
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Bench(args) => bench::run(*args),
        Command::Impair(args) => impair::run(&args),
        Command::Repro(args) => repro::run(&args),
        Command::Schedule(args) => schedule::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Lab as clap::CommandFactory>::command().debug_assert();
    }
}
