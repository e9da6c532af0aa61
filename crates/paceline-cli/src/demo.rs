//! `paceline demo`: one camera, three subscribers, one thin link, as three nodes.
//!
//! The robot publishes 30 pictures and 100 steering messages a second. The console beside it takes
//! every picture, and 10 a second; the operator behind 2 Mbit/s takes 5 small ones a second and all
//! of the steering. Three processes, joined by loopback TCP; the thin link is a configured capacity.

mod children;
mod dashboard;
mod gauge;
mod line;
mod load;
mod role;
mod scenario;
mod verdict;
mod view;
mod windows;

pub(crate) use role::{RoleArgs, run_role};
pub(crate) use windows::Windows;

use crate::args;
use crate::exit::{self, INTERRUPTED, REFUSED};
use crate::http::HttpAddress;
use crate::show::{self, Block};
use crate::stop::Stop;
use children::{Children, Event};
use scenario::WARM_UP;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use verdict::State;

const TICK: Duration = Duration::from_secs(1);
/// How long the nodes may take to meet.
const MEETING: Duration = Duration::from_secs(15);
/// How long they may take to end.
const ENDING: Duration = Duration::from_secs(5);

/// `paceline demo`.
#[derive(Debug, clap::Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct DemoArgs {
    /// Serves no page: the table is all that it shows
    #[arg(long, alias = "headless", conflicts_with = "http")]
    no_http: bool,
    /// Serves the page here; 127.0.0.1:8470 if not said, or a free port if that is in use
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAddress>,
    /// Ends after this many seconds, 2 more for warming up; without it Ctrl-C ends the demo
    #[arg(long, value_name = "SECONDS", value_parser = args::some_seconds)]
    seconds: Option<Duration>,
    /// Prints one line of JSON a second, and a summary
    #[arg(long)]
    json: bool,
}

/// Runs the demo and judges it.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let mut children = Children::start()?;
    let http =
        if args.no_http { None } else { Some(dashboard::serve(args.http.as_ref(), &children)?) };
    if let Some(http) = &http {
        // What reads JSON reads nothing else.
        show::note(&format!("dashboard: {}", http.url()));
    }
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

struct Demo<'a> {
    args: &'a DemoArgs,
    state: State,
    block: Block,
}

impl Demo<'_> {
    /// Shows what the nodes report; false if the user ended a demo that had an end of its own.
    fn watch(&mut self, children: &mut Children, stop: &Stop) -> anyhow::Result<bool> {
        let start = Instant::now();
        let mut begun = None;
        let mut tick = start + TICK;
        loop {
            let now = Instant::now();
            if stop.requested() {
                return Ok(self.args.seconds.is_none() && begun.is_some());
            }
            if begun.is_none() && self.state.all_begun() {
                begun = Some(now);
                tick = now + TICK;
            }
            match (begun, self.args.seconds) {
                (None, _) if now >= start + MEETING => {
                    return Err(exit::refused(format!(
                        "after {} s {} still got nothing; PACELINE_LOG=info shows what the nodes do",
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
            match children.next(tick.saturating_duration_since(now).min(crate::stop::STOP_SLICE)) {
                Some(Event::Ended(role)) => {
                    anyhow::bail!(
                        "the demo's {role} ended before its time; see its messages above"
                    );
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

    /// True if everybody got what was asked.
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
