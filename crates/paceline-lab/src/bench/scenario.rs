//! `paceline-lab bench FILE.toml`: runs a scenario on real nodes and compares it with virtual time.
//!
//! Each node is a process in its own network namespace; each link is a shaped pair of interfaces.
//! Their notes are converted to a record like the simulator's, and the same code summarises both.

mod agree;
mod live;
mod net;
mod road;
pub(super) mod trust;

pub(super) use net::link_name;

use super::report::Report;
use super::{OutputArgs, interrupt, netns};
use anyhow::Result;
use clap::Parser as _;
use live::Script;
use paceline_sim::scenario::{Plan, Summary, run as simulated};
use paceline_tool::args;
use paceline_tool::exit;
use paceline_tool::input;
use paceline_tool::spelling;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The longest duration of a scenario in a short run, in addition to its warm-up.
const SHORT: Duration = Duration::from_secs(2);
/// The same for a scenario with faults: streams need time to recover on a busy machine.
const SHORT_WITH_FAULTS: Duration = Duration::from_secs(8);

/// Runs scenarios on real nodes in network namespaces and compares them with virtual time (needs
/// root)
#[derive(clap::Parser, Debug)]
#[command(name = "paceline-lab bench", no_binary_name = true)]
struct Args {
    /// Scenarios, as TOML files
    #[arg(required = true, value_name = "FILE.toml")]
    files: Vec<PathBuf>,
    /// Longest duration of each; longer scenarios are compressed
    #[arg(long, value_name = "TIME", conflicts_with = "short", value_parser = args::some_duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the scenarios whose files were given in place of a benchmark's name.
pub(super) fn run(words: &[OsString]) -> Result<ExitCode> {
    let first = words.first().map(Path::new).unwrap_or(Path::new(""));
    if first.extension().is_none_or(|end| end != "toml") {
        return Err(exit::usage(format!(
            "'{}' is neither a benchmark nor a scenario file (*.toml); try `paceline-lab bench \
             --help` for a list",
            first.display()
        )));
    }
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => {
            return Ok(spelling::report(&error, &<Args as clap::CommandFactory>::command(), &[]));
        }
    };
    if !netns::can_build("FILE.toml") {
        return Ok(ExitCode::from(2));
    }
    let scripts = args.files.iter().map(|file| args.script(file)).collect::<Result<Vec<_>>>()?;
    interrupt::install()?;
    let mut report = Report::new("Scenarios, live and simulated", &args.command());
    for script in &scripts {
        let plan = &script.plan;
        eprintln!("{}: {} live", plan.name, plan.duration);
        let live = live::run(script)?;
        let pair = Pair {
            plan,
            live: Summary::of(plan, &live.record, plan.seed),
            simulated: Summary::of(plan, &simulated(plan, plan.seed), plan.seed),
        };
        report.add(agree::section(&pair, live.load), &args.output);
    }
    report.finish(&args.output)
}

impl Args {
    fn script(&self, file: &Path) -> Result<Script> {
        let (name, text) = input::source(file)?;
        let plan = Plan::read(&text, &name).map_err(exit::usage)?;
        let short = if plan.faults.is_empty() { SHORT } else { SHORT_WITH_FAULTS };
        let most = if self.output.short { Some(short) } else { self.duration };
        let plan = match most {
            Some(most) => plan.squeezed(most.into()),
            None => plan,
        };
        net::check(&plan).map_err(|why| exit::usage(format!("{name}: {why}")))?;
        Ok(Script { plan, text, file: name })
    }

    /// Returns the command line that repeats this measurement.
    fn command(&self) -> String {
        let mut command = "paceline-lab bench".to_owned();
        self.files.iter().for_each(|file| command.push_str(&format!(" {}", file.display())));
        if let Some(duration) = self.duration {
            command.push_str(&format!(" --duration {}s", duration.as_secs_f64()));
        }
        command
    }
}

/// The results of one scenario, live and simulated.
struct Pair<'a> {
    plan: &'a Plan,
    live: Summary,
    simulated: Summary,
}
