//! The `paceline` command: runs nodes, publishers and subscribers from the shell.
//!
//! The binary of this package and the Python package both call [`main`]:
//!
//! ```no_run
//! # use std::process::ExitCode;
//! fn main() -> ExitCode {
//!     paceline_cli::main(std::env::args_os())
//! }
//! ```
//!
//! Each command is one module: it parses its arguments, calls the crate [`paceline`], and prints a table, lines or JSON.
//! [`paceline_tool`] has the parts that other programs share, and [`paceline_http`] serves the dashboard.
//!
//! Invariant: standard output contains only the result, everything else is written to standard error, and the exit code
//! is one of those in `paceline --help`.

mod again;
mod args;
mod clock;
mod config;
mod demo;
mod doctor;
mod judge;
mod ls;
mod manual;
mod node;
mod notices;
mod notify;
mod observe;
mod outfile;
mod pacer;
mod payload;
mod plan;
mod playback;
mod programs;
mod publish;
mod pull;
mod record;
mod replay;
mod set;
mod shortfall;
mod simulate;
mod status;
mod subscribe;
mod tally;
pub mod threads;
mod top;
mod trust;
mod whatif;

use clap::{Parser, Subcommand};
use paceline_tool::{exit, log, spelling, table};
use std::ffi::OsString;
use std::process::ExitCode;

const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 failure; 2 wrong usage; 3 refused, or the required service was not delivered; 130 \
interrupted before the end.
PACELINE_LOG sets the filter for log messages (default: warn; for example paceline=debug, off).
PACELINE_CONFIG names a configuration file (default: ~/.config or /etc, paceline/config.toml).
PACELINE_RUNTIME_DIR sets the folder that joins the processes of this host.";

/// Real-time publish/subscribe: every subscriber gets each stream at its requested rate, size and deadline,
/// or a refusal before the first byte.
#[derive(Parser)]
#[command(name = "paceline", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    /// Filter for log messages on standard error: off, error, warn, info, debug, trace, or TARGET=LEVEL,…;
    /// defaults to $PACELINE_LOG
    #[arg(long, global = true, value_name = "FILTER", value_parser = log::argument)]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a node until it receives a signal
    Node(node::NodeCommand),
    /// Publishes a value, a test card, a file or standard input
    Pub(Box<publish::PubArgs>),
    /// Subscribes to a tag with a rate, size and deadline
    Sub(Box<subscribe::SubArgs>),
    /// Pulls buffered samples by age, number or time
    Pull(Box<pull::PullArgs>),
    /// Records samples and their delivery in an MCAP file
    Record(Box<record::RecordArgs>),
    /// Publishes the messages of an MCAP file
    Replay(Box<replay::ReplayArgs>),
    /// Reports requested and delivered service of a recording
    Judge(judge::JudgeArgs),
    /// Repeats a recording with other capacities or requests, in virtual time
    Whatif(whatif::WhatifArgs),
    /// Changes a running subscription's rate, size or deadline
    Set(Box<set::SetArgs>),
    /// Lists nodes, publishers, subscriptions and links
    Ls(ls::LsArgs),
    /// Shows the time, its error bound and the servers of the clock
    Clock(Box<clock::ClockArgs>),
    /// Shows streams, subscriptions and links as they change
    Top(top::TopArgs),
    /// Measures or prints samples: --hz, --bw, --delay, --print
    Watch(Box<observe::WatchArgs>),
    /// Splits the delay of samples into the parts of their path
    Trace(Box<observe::TraceArgs>),
    /// Simulates a network with load and faults in virtual time
    Simulate(simulate::SimulateArgs),
    /// Plans the places of proxies in a network
    Plan(plan::PlanArgs),
    /// Demonstrates one camera and three subscribers on a thin link
    Demo(demo::DemoArgs),
    /// Checks this host and suggests fixes
    Doctor(doctor::DoctorArgs),
    /// Makes an authority and certificates for links to other hosts
    Trust(trust::TrustArgs),
    /// Prints a completion script for a shell
    #[command(hide = true)]
    Completion(manual::CompletionArgs),
    /// Prints the tags or nodes that exist now, for the completion of a shell
    #[command(hide = true, name = manual::NAMES)]
    CompleteNames(manual::NamesArgs),
    /// Prints the manual page, or writes one page per command
    #[command(hide = true)]
    Man(manual::ManArgs),
    /// Runs one node of the demo
    #[command(hide = true)]
    DemoRole(demo::RoleArgs),
    /// Runs the forwarding node of the calibration
    #[command(hide = true, name = doctor::calibration::role::COMMAND)]
    CalibrateRole,
}

/// Runs the command line `args` like [`main`]. A command that starts this program again in a child process
/// runs the words `again`; the default is the path of this executable.
pub fn main_again(args: impl IntoIterator<Item = OsString>, again: Vec<OsString>) -> ExitCode {
    again::set(again);
    main(args)
}

/// Runs the command line `args`, whose first item is the program's name, and returns the exit code.
///
/// Zenoh reads the size of its thread pools from the environment. The caller sets it first, before any
/// thread starts: see [`threads::setting`].
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    match Cli::try_parse_from(&args) {
        Ok(cli) => {
            table::fit_terminal();
            log::start(cli.log.as_deref())
                .and_then(|()| run(cli.command))
                .unwrap_or_else(|error| exit::report(&error))
        }
        Err(error) => spelling::report(&error, &command_line(), args.get(1..).unwrap_or_default()),
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Node(args) => node::run(&args),
        Command::Pub(args) => publish::run(&args),
        Command::Sub(args) => subscribe::run(&args),
        Command::Pull(args) => pull::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Judge(args) => judge::run(&args),
        Command::Whatif(args) => whatif::run(&args),
        Command::Set(args) => set::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Clock(args) => clock::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Watch(args) => observe::run_watch(&args),
        Command::Trace(args) => observe::run_trace(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Trust(args) => trust::run(args),
        Command::Completion(args) => manual::completion(&args),
        Command::CompleteNames(args) => manual::names(&args),
        Command::Man(args) => manual::man(&args),
        Command::DemoRole(args) => demo::run_role(&args),
        Command::CalibrateRole => doctor::calibration::role::run(),
    }
}

/// Returns the complete command line definition.
fn command_line() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests;
