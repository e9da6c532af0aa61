//! `paceline plan`: places the proxies of a problem on the nodes of a network.

mod draw;
mod live;
mod print;
mod read;
mod write;

use crate::config::NodeArgs;
use crate::outfile;
use clap::ValueEnum;
use live::Live;
use paceline::Pattern;
use paceline_plan::{PlanError, PlanProblem, Planned, exhaustive, graphml, integer, plan};
use paceline_tool::exit;
use paceline_tool::input::source;
use paceline_tool::show;
use print::Present;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const AFTER: &str = "\
docs/guides/plan-proxies.md explains the file, and examples/plans has example files.
Cost: bits per second on all links, processor seconds per second, or bits per second + weight × processor seconds.
Exit codes: 0 a plan; 1 no plan within the time limit; 2 the file is invalid; 3 the problem is infeasible, or --live
found nothing to plan.";

/// Arguments of `paceline plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(crate) struct PlanArgs {
    /// The problem, a JSON file; - for standard input
    #[arg(required_unless_present = "live")]
    file: Option<PathBuf>,
    /// Plans for the running network and the tags of this pattern, default: all; changes nothing
    #[arg(
        long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "**",
        value_parser = Pattern::new, conflicts_with_all = ["file", "topology"]
    )]
    live: Option<Pattern>,
    /// Also writes the problem as a JSON file that this command reads
    #[arg(long, value_name = "FILE")]
    problem: Option<PathBuf>,
    /// Reads nodes and links from a GraphML file instead of the problem
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Minimises this; overrides the file
    #[arg(long, value_enum, value_name = "GOAL")]
    objective: Option<read::ObjectiveName>,
    /// Weight of one processor in bit/s, for --objective weighted; overrides the file
    #[arg(long, value_name = "W", value_parser = weight)]
    weight: Option<f64>,
    /// Streams that subscribers share; overrides the file
    #[arg(long, value_enum, value_name = "MODEL")]
    cost: Option<read::CostName>,
    /// The predicted delay; overrides the file
    #[arg(long, value_enum, value_name = "MODEL")]
    delay_model: Option<read::DelayName>,
    /// The most proxies per tag; overrides the file
    #[arg(long, value_name = "N", value_parser = proxies)]
    proxies: Option<usize>,
    /// The method
    #[arg(long, value_enum, default_value_t = Solver::Auto)]
    solver: Solver,
    /// Stops searching after this time, with the best plan so far and its gap
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = crate::args::some_duration)]
    timeout: Duration,
    /// Also draws the topology, the streams and the proxies
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Replaces existing files of --svg and --problem
    #[arg(long)]
    force: bool,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

/// The method of `--solver`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Solver {
    /// Exact where limits do not bind, else with a proven gap
    Auto,
    /// Compares all places; for small problems
    Exhaustive,
    /// The mixed-integer program of the whole problem
    Integer,
}

fn weight(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok().filter(|weight: &f64| (0.0..=1e15).contains(weight));
    parsed.ok_or_else(|| "must be a number from 0 to 1e15, in bit/s per processor".to_owned())
}

fn proxies(text: &str) -> Result<usize, String> {
    let count = crate::args::whole(text, 1, 32, "the default is 1")?;
    usize::try_from(count).map_err(|error| error.to_string())
}

/// Plans and prints the result.
pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let Some((problem, live)) = problem(args)? else {
        return Ok(ExitCode::from(exit::INTERRUPTED));
    };
    if let Some(path) = &args.problem {
        let text = format!("{:#}\n", write::json(&problem));
        outfile::write("--problem", path, args.force, &text)?;
    }
    let present = match live.as_ref().map(|live| Present::new(&problem, live)).transpose() {
        Ok(present) => present,
        Err(error) => return failure(args, &problem, &error, None),
    };
    let start = Instant::now();
    let mut remaining = || args.timeout.saturating_sub(start.elapsed());
    let planned = match args.solver {
        Solver::Auto => plan(&problem, &mut remaining),
        Solver::Exhaustive => exhaustive(&problem),
        Solver::Integer => integer(&problem, &mut remaining),
    };
    match planned {
        Ok(planned) => success(args, &problem, &planned, live.as_ref().zip(present)),
        Err(error) => failure(args, &problem, &error, present.as_ref()),
    }
}

fn success(
    args: &PlanArgs,
    problem: &PlanProblem,
    planned: &Planned,
    live: Option<(&Live, Present)>,
) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.svg {
        let text = draw::svg(problem, planned);
        outfile::write("--svg", path, args.force, &text)?;
    }
    let present = live.map(|(live, mut present)| {
        present.notes.extend(live.overloads(planned));
        present
    });
    match args.json {
        true => show::json(&print::json(problem, planned, present.as_ref()))?,
        false => show::text(&print::text(problem, planned, present.as_ref()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn failure(
    args: &PlanArgs,
    problem: &PlanProblem,
    error: &PlanError,
    present: Option<&Present>,
) -> anyhow::Result<ExitCode> {
    match error {
        PlanError::Infeasible { .. } | PlanError::Disconnected { .. } => {
            if args.json {
                show::json(&print::infeasible(problem, error, present))?;
                return Ok(ExitCode::from(exit::REFUSED));
            }
            if let Some(present) = present {
                show::text(&present.text(problem, None))?;
            }
            Err(exit::refused(error))
        }
        PlanError::Value(_) | PlanError::GraphMl(_) => {
            let name = args.file.as_deref().map_or_else(|| "--live".to_owned(), name);
            Err(exit::usage(format!("{name}: {error}")))
        }
        PlanError::Unknown | _ => Err(anyhow::anyhow!("--timeout: {error}")),
    }
}

fn name(file: &Path) -> String {
    if file.as_os_str() == "-" { "standard input".to_owned() } else { file.display().to_string() }
}

/// Reads the problem from the network or from files. Returns `None` if a signal interrupts it.
fn problem(args: &PlanArgs) -> anyhow::Result<Option<(PlanProblem, Option<Live>)>> {
    let choices = read::Choices {
        objective: args.objective,
        weight: args.weight,
        cost: args.cost,
        delay_model: args.delay_model,
        proxies: args.proxies,
    };
    let Some(file) = &args.file else {
        let all = Pattern::new("**")?;
        let pattern = args.live.as_ref().unwrap_or(&all);
        let live = live::read(&args.node, pattern, &choices)?;
        return Ok(live.map(|live| (live.problem.clone(), Some(live))));
    };
    let topology = match &args.topology {
        Some(path) => {
            let (name, text) = source(path)?;
            let read = graphml::read(&text);
            Some(read.map_err(|error| exit::usage(format!("{name}: {error}")))?)
        }
        None => None,
    };
    let (name, text) = source(file)?;
    let problem = read::problem(&text, topology, &choices);
    Ok(Some((problem.map_err(|error| exit::usage(format!("{name}: {error}")))?, None)))
}
