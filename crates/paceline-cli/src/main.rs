//! The `paceline` command: runs nodes, publishers and subscribers from the shell.

mod args;
mod ask;
mod bench;
mod calibration;
mod config;
mod demo;
mod describe;
mod doctor;
mod exit;
mod http;
mod impair;
mod judge;
mod log;
mod ls;
mod manual;
mod netns;
mod node;
mod notify;
mod observe;
mod publish;
mod pull;
mod record;
mod replay;
mod schedule;
mod scratch;
mod set;
mod shortfall;
mod show;
mod simulate;
mod spelling;
mod stats;
mod stop;
mod subscribe;
mod table;
mod threads;
mod top;

use clap::{Parser, Subcommand};
use observe::Measure;
use std::process::ExitCode;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 it failed while running; 2 wrong usage; 3 refused, or not delivered what was \
required; 130 interrupted before it was done.
PACELINE_LOG sets what is logged to standard error (warn if not set; paceline=debug, trace, off).
PACELINE_CONFIG names a configuration file (else ~/.config or /etc, paceline/config.toml).
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
    /// Runs a node until it receives a signal.
    Node(node::NodeCommand),
    /// Publishes a test card, a file or standard input on a tag.
    Pub(Box<publish::PubArgs>),
    /// Subscribes to a tag or pattern with a rate, size and deadline.
    Sub(Box<subscribe::SubArgs>),
    /// Pulls past samples from buffers: the newest, or a range of sequence numbers or times.
    Pull(Box<pull::PullArgs>),
    /// Records samples and their delivery results in an MCAP file.
    Record(Box<record::RecordArgs>),
    /// Publishes the messages of an MCAP file at their recorded times.
    Replay(Box<replay::ReplayArgs>),
    /// Reports the requested, granted and delivered service of each recorded tag.
    Judge(judge::JudgeArgs),
    /// Checks whether a subscription would be granted, and suggests an alternative; reserves nothing.
    Ask(Box<ask::AskArgs>),
    /// Changes a running subscription's rate, size, deadline or loss tolerance.
    Set(Box<set::SetArgs>),
    /// Lists nodes, publishers, subscriptions and links, with samples delivered, late and dropped.
    Ls(ls::LsArgs),
    /// Shows streams, subscriptions and links, and updates them continuously.
    Top(top::TopArgs),
    /// Measures the rate of samples, like `ros2 topic hz`.
    Hz(Box<observe::MeterArgs>),
    /// Measures the bandwidth of samples in bytes per second, like `ros2 topic bw`.
    Bw(Box<observe::MeterArgs>),
    /// Measures the age of samples at delivery, like `ros2 topic delay`.
    Delay(Box<observe::MeterArgs>),
    /// Prints samples, like `ros2 topic echo`.
    Echo(Box<observe::EchoArgs>),
    /// Splits the delay of a tag's samples into the parts of their path.
    Trace(Box<observe::TraceArgs>),
    /// Simulates a scheduling discipline on one link in virtual time, and prints every decision.
    Schedule(schedule::ScheduleArgs),
    /// Simulates a network scenario with load and faults in virtual time, and prints a summary.
    Simulate(simulate::SimulateArgs),
    /// Demonstrates one camera with three subscribers at different rates and sizes over a thin link.
    Demo(demo::DemoArgs),
    /// Runs benchmarks.
    Bench(bench::BenchArgs),
    /// Connects two programs over a network with added delay, loss or reordering (needs root).
    Impair(Box<impair::ImpairArgs>),
    /// Checks this host and suggests fixes.
    Doctor(doctor::DoctorArgs),
    /// Prints a completion script for a shell.
    Completion(manual::CompletionArgs),
    /// Prints the manual page, or writes one page per command.
    Man(manual::ManArgs),
    /// Runs one node of the demo.
    #[command(hide = true)]
    DemoRole(demo::RoleArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let words: Vec<_> = std::env::args_os().skip(1).collect();
            return spelling::report(&error, &command_line(), &words);
        }
    };
    // A benchmark chooses the thread policy for each of its processes.
    if !matches!(cli.command, Command::Bench(_)) {
        threads::share();
    }
    log::start(cli.log.as_deref())
        .and_then(|()| run(cli.command))
        .unwrap_or_else(|error| exit::report(&error))
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
        Command::Ask(args) => ask::run(&args),
        Command::Set(args) => set::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Hz(args) => observe::run(Measure::Rate, &args),
        Command::Bw(args) => observe::run(Measure::Bandwidth, &args),
        Command::Delay(args) => observe::run(Measure::Delay, &args),
        Command::Echo(args) => observe::run_echo(&args),
        Command::Trace(args) => observe::run_trace(&args),
        Command::Schedule(args) => schedule::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(args),
        Command::Impair(args) => impair::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completion(args) => manual::completion(&args),
        Command::Man(args) => manual::man(&args),
        Command::DemoRole(args) => demo::run_role(&args),
    }
}

/// Returns the complete command line definition.
fn command_line() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        command_line().debug_assert();
    }
}
