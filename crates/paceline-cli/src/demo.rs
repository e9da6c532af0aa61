//! `paceline demo`: one camera, three subscribers and one thin link, as three nodes.
//!
//! The robot publishes 30 pictures and 100 steering messages per second. The console next to it
//! receives every picture, and a second stream of 10 per second. The operator behind 2 Mbit/s
//! receives 5 small pictures per second and all steering messages. The three processes are joined
//! by loopback TCP; the thin link is a configured capacity.

mod children;
mod dashboard;
mod fifo;
mod gauge;
mod line;
mod load;
mod role;
mod scenario;
mod verdict;
mod view;
mod world;

pub(crate) use children::running;
pub(crate) use role::{RoleArgs, run_role};

use crate::args;
use children::{Children, Event};
use paceline_http::HttpAddress;
use paceline_tool::exit::{self, INTERRUPTED, REFUSED};
use paceline_tool::show::{self, Block};
use paceline_tool::stop::Stop;
use scenario::WARM_UP;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use verdict::State;

const TICK: Duration = Duration::from_secs(1);
/// The longest wait for the nodes to connect.
const MEETING: Duration = Duration::from_secs(15);
/// The longest wait for the nodes to end.
const ENDING: Duration = Duration::from_secs(5);

/// Options of `paceline demo`.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct DemoArgs {
    /// The scene: pictures and steering on a thin link, or a world of shared objects
    #[arg(value_enum, default_value_t = Scene::Camera)]
    scene: Scene,
    /// Do not serve the dashboard; show only the table
    #[arg(long, alias = "headless", conflicts_with = "http")]
    no_http: bool,
    /// Address of the dashboard; default: 127.0.0.1:8470, or a free port if that is in use
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    /// End after this time plus 2 s of warm-up; by default the demo runs until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = args::some_duration)]
    duration: Option<Duration>,
    /// Print one line of JSON per second, and a summary
    #[arg(long)]
    json: bool,
}

/// The scene of the demo.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Scene {
    /// One camera, three subscribers and one thin link
    Camera,
    /// A town of 200 cars and three observers, one behind a thin link
    World,
}

/// Runs the demo and checks its result.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    if args.scene == Scene::World {
        return world::run(args);
    }
    let stop = Stop::on_signals()?;
    let mut children = Children::start()?;
    let http =
        if args.no_http { None } else { Some(dashboard::serve(args.http.as_ref(), &children)?) };
    if let Some(http) = &http {
        // A consumer of JSON does not read notes.
        show::note(&format!("dashboard: {}", http.url()));
    }
    // Its nodes are apart from those of the user, as if on hosts of their own.
    let look = list_command(&children.robot())?;
    show::note(&format!("in another terminal: {look}"));
    let mut demo = Demo { args, state: State::default(), block: Block::on_stdout() };
    let whole = demo.watch(&mut children, &stop)?;
    drop(http);
    children.end(ENDING, |event| demo.state.take(event));
    let ok = demo.finish(whole)?;
    Ok(match (whole, ok) {
        (false, _) => ExitCode::from(INTERRUPTED),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(REFUSED),
    })
}

/// Returns the command that lists the nodes in a runtime folder, for a shell in the current folder.
pub(crate) fn list_command(runtime_dir: &Path) -> anyhow::Result<String> {
    let here = std::env::current_dir().unwrap_or_default();
    let words = crate::again::words()?;
    let words = words.iter().map(|word| {
        let word = Path::new(word);
        match word.strip_prefix(&here) {
            // A shell does not look for programs in the current folder.
            Ok(name) if name.components().count() == 1 => format!("./{}", name.display()),
            Ok(below) => below.display().to_string(),
            Err(_) => word.display().to_string(),
        }
    });
    let words: Vec<String> = words.collect();
    Ok(format!("{} ls --runtime-dir {}", words.join(" "), runtime_dir.display()))
}

struct Demo<'a> {
    args: &'a DemoArgs,
    state: State,
    block: Block,
}

impl Demo<'_> {
    /// Shows the nodes' reports. Returns false if the user interrupted a demo with a fixed
    /// duration.
    fn watch(&mut self, children: &mut Children, stop: &Stop) -> anyhow::Result<bool> {
        let start = Instant::now();
        let mut begun = None;
        let mut tick = start + TICK;
        loop {
            let now = Instant::now();
            if stop.requested() {
                return Ok(self.args.duration.is_none() && begun.is_some());
            }
            if begun.is_none() && self.state.all_begun() {
                begun = Some(now);
                tick = now + TICK;
            }
            match (begun, self.args.duration) {
                (None, _) if now >= start + MEETING => {
                    return Err(exit::refused(format!(
                        "no sample within {} s for {}; PACELINE_LOG=info shows the messages of \
                         the nodes",
                        MEETING.as_secs(),
                        self.state.silent().join(", ")
                    )));
                }
                (Some(begun), Some(seconds)) if now >= begun + WARM_UP + seconds => {
                    return Ok(true);
                }
                _ => {}
            }
            if now >= tick {
                tick += TICK;
                if let Some(begun) = begun {
                    self.show(now - begun)?;
                }
            }
            match children
                .next(tick.saturating_duration_since(now).min(paceline_tool::stop::STOP_SLICE))
            {
                Some(Event::Ended(role)) => {
                    anyhow::bail!("the demo's {role} ended too early; see its messages above");
                }
                Some(event) => self.state.take(event),
                None => {}
            }
        }
    }

    fn show(&mut self, since: Duration) -> anyhow::Result<()> {
        if self.args.json {
            return show::json(&self.state.second(since));
        }
        if self.block.is_terminal() {
            self.block.update(&view::table(&self.state, Some(since)))
        } else {
            self.block.update(&view::seconds_line(&self.state, since))
        }
    }

    /// Prints the result; returns true if every subscriber received the requested quality.
    fn finish(&mut self, whole: bool) -> anyhow::Result<bool> {
        let summary = self.state.summary();
        if self.args.json {
            show::json(&verdict::SummaryLine { summary: &summary })?;
            return Ok(summary.ok);
        }
        self.block.update(&view::table(&self.state, None))?;
        if whole {
            show::line(&view::verdict(&summary))?;
        }
        Ok(summary.ok)
    }
}
