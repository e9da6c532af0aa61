//! The `paceline` command: a node, its publishers and its subscribers, from the shell.

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

/// Publish/subscribe in which every subscriber gets each stream at the rate, size and deadline that
/// it asked for, or is told no.
#[derive(Parser)]
#[command(name = "paceline", version, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    /// What is logged to standard error: off, error, warn, info, debug, trace, or TARGET=LEVEL,…;
    /// $PACELINE_LOG if not said
    #[arg(long, global = true, value_name = "FILTER", value_parser = log::argument)]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a node until it is told to end.
    Node(node::NodeCommand),
    /// Publishes a test card, a file or standard input on a tag.
    Pub(Box<publish::PubArgs>),
    /// Subscribes to a tag or pattern at a rate, size and deadline of your own.
    Sub(Box<subscribe::SubArgs>),
    /// Pulls samples that buffers hold: the newest, or a range of numbers or times.
    Pull(Box<pull::PullArgs>),
    /// Records what comes on tags, and what became of it, in an MCAP file.
    Record(Box<record::RecordArgs>),
    /// Publishes what an MCAP file holds, each message at its own time.
    Replay(Box<replay::ReplayArgs>),
    /// Says what was asked, granted and delivered of each tag of a recording.
    Judge(judge::JudgeArgs),
    /// Says whether a subscription would be granted now, and what would be instead; reserves nothing.
    Ask(Box<ask::AskArgs>),
    /// Lets a subscription ask for another rate, size, delay bound or loss, while it runs.
    Set(Box<set::SetArgs>),
    /// Lists nodes, publishers, subscriptions and links: asked, delivered, late, dropped and why.
    Ls(ls::LsArgs),
    /// Shows streams, subscriptions and links as they change.
    Top(top::TopArgs),
    /// Prints at which rate samples come, as `ros2 topic hz`.
    Hz(Box<observe::MeterArgs>),
    /// Prints how many bytes a second come, as `ros2 topic bw`.
    Bw(Box<observe::MeterArgs>),
    /// Prints how old samples are when they come, as `ros2 topic delay`.
    Delay(Box<observe::MeterArgs>),
    /// Prints samples, as `ros2 topic echo`.
    Echo(Box<observe::EchoArgs>),
    /// Prints where on the way of a tag's samples the time goes.
    Trace(Box<observe::TraceArgs>),
    /// Runs a scheduling discipline on a link in virtual time, and prints every decision.
    Schedule(schedule::ScheduleArgs),
    /// Runs a scenario, a network with its load and faults, in virtual time, and sums it up.
    Simulate(simulate::SimulateArgs),
    /// Shows one camera reaching three subscribers, each at its own rate and size, over a thin link.
    Demo(demo::DemoArgs),
    /// Measures.
    Bench(bench::BenchArgs),
    /// Joins two programs by a network that is slow, lossy or out of order (needs root).
    Impair(Box<impair::ImpairArgs>),
    /// Says what this host can give, and the mend for what it lacks.
    Doctor(doctor::DoctorArgs),
    /// Prints the completion of a shell, for it to read at its start.
    Completion(manual::CompletionArgs),
    /// Prints the manual page, or writes a page for each command.
    Man(manual::ManArgs),
    /// One of the nodes of the demo.
    #[command(hide = true)]
    DemoRole(demo::RoleArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // A benchmark chooses for each of its processes.
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

/// The command line as a whole, for whoever describes it.
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
