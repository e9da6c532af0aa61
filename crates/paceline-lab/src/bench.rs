//! `paceline-lab bench`: measures the contracts on real links and compares them with plain Zenoh.

mod child;
mod clock;
mod fanout;
mod figure7;
mod hop;
mod idle;
mod interrupt;
mod machine;
mod main_job;
mod meet;
mod netns;
mod objects;
mod plain;
mod playout;
mod program;
mod protocol;
pub(crate) mod proxied;
mod pull;
mod radio;
mod recordings;
pub(crate) mod report;
mod role;
mod scenario;
mod schedule;
pub(crate) mod segment;
mod soak;
mod stage;
pub(crate) mod stats;
mod storm;
pub(crate) mod tds;
mod terminal;
mod time;
mod whatif;
mod zenoh;

use anyhow::Result;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER: &str = "paceline-lab bench FILE.toml [FILE.toml …] [--duration TIME] [--json] \
                     [--markdown FILE] runs scenarios (docs/reference/scenarios.md) on real nodes \
                     and compares them with virtual time. Each node is a process in its own \
                     network namespace (needs root).";

/// Measures Paceline and compares it with plain Zenoh
#[derive(clap::Args, Debug)]
#[command(after_help = AFTER)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// One camera to three subscribers and steering commands over a 2 Mbit/s link (needs root)
    MainJob(main_job::Args),
    /// Cost of one hop over a unix socket: round trip and throughput
    Hop(hop::Args),
    /// Bytes and packets of an idle link, per carrier and delay (needs root)
    Idle(idle::Args),
    /// The error and the bound of a node's clock over a veth pair (needs root)
    Clock(time::Args),
    /// Time until `pub` and `sub` find each other, on one host and over three hops
    Meet(meet::Args),
    /// 1,000 subscriptions in one process: processor time and memory of each
    Fanout(fanout::Args),
    /// Service rate as a function of the scheduler's period, in virtual time
    Figure7(figure7::Args),
    /// Shared objects over 1 Mbit/s, compared with the usual ways to send them, in virtual time
    Objects(objects::Args),
    /// Two plain Zenoh programs through two nodes, compared with a direct connection
    Plain(plain::Args),
    /// 25 MB pulled over 8 Mbit/s during live streams (needs root)
    Pull(pull::Args),
    /// Steering next to data over a radio whose capacity changes (needs root)
    Radio(radio::Args),
    /// A real film and a real flight over a 2 Mbit/s link (needs root and ffmpeg)
    Recordings(recordings::Args),
    /// Contracts on an overloaded 2 Mbit/s link, under each discipline (needs root)
    Storm(storm::Args),
    /// Spacing of samples after a jittery network, compared with a plain sleeper
    Tds(tds::Args),
    /// Two receivers of one group on two nodes: the difference of their releases (needs root)
    Playout(playout::Args),
    /// Processes killed and stopped at random: effect on the others and cost
    Soak(soak::Args),
    /// A repetition in virtual time, compared with the recorded run (needs root)
    Whatif(whatif::Args),
    /// Nanoseconds, instructions and memory per scheduling decision of every policy
    Schedule(schedule::Args),
    /// Runs one process of a benchmark
    #[command(hide = true)]
    Role(role::Args),
    /// Scenarios on real nodes, compared with virtual time
    #[command(external_subcommand)]
    Scenarios(Vec<OsString>),
}

/// Output options of every benchmark.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct OutputArgs {
    /// Run for seconds: shows that the benchmark works, and checks only bounds on figures that do not depend on the machine
    #[arg(long)]
    pub(crate) short: bool,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
    /// Also write the result as a Markdown page
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Runs a benchmark and returns its exit code: 0 if every required bound is met, 1 if not, 2 if the
/// benchmark cannot run here, 130 if it was interrupted. With `--short` a required figure
/// that depends on the machine needs only a value.
pub(crate) fn run(args: BenchArgs) -> Result<ExitCode> {
    let done = match args.command {
        Command::MainJob(args) => main_job::run(&args),
        Command::Hop(args) => hop::run(&args),
        Command::Idle(args) => idle::run(&args),
        Command::Clock(args) => time::run(&args),
        Command::Meet(args) => meet::run(&args),
        Command::Fanout(args) => fanout::run(&args),
        Command::Figure7(args) => figure7::run(&args),
        Command::Objects(args) => objects::run(&args),
        Command::Plain(args) => plain::run(&args),
        Command::Pull(args) => pull::run(&args),
        Command::Radio(args) => radio::run(&args),
        Command::Recordings(args) => recordings::run(&args),
        Command::Storm(args) => storm::run(&args),
        Command::Tds(args) => tds::run(&args),
        Command::Playout(args) => playout::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Whatif(args) => whatif::run(&args),
        Command::Schedule(args) => schedule::run(&args),
        Command::Role(args) => role::run(&args),
        Command::Scenarios(words) => scenario::run(&words),
    };
    if done.is_err() && interrupt::check().is_err() {
        eprintln!("interrupted");
        return Ok(ExitCode::from(130));
    }
    done
}
