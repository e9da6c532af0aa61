//! `paceline watch` and `trace`: observing the samples of tags. By default an observer adds no load to a link
//! with a capacity.

mod args;
mod choice;
mod echo;
mod line;
mod meter;
mod session;
mod trace;
mod watch;

pub(crate) use args::{TraceArgs, WatchArgs};

use args::{EchoFlags, LookArgs, MeterFlags};
use meter::Meter;
use paceline::Node;
use session::{Session, Target};
use std::process::ExitCode;
use std::time::Instant;
use watch::{Seen, Watch};

/// Default window of rates and delays in samples, as in ROS 2.
const WINDOW: usize = 10_000;
/// Default window of bandwidths in samples.
const WINDOW_BW: usize = 100;
/// Queue of a meter in samples, without their payloads.
const QUEUE: usize = 4_096;
/// Queue of printed samples, with their payloads.
const QUEUE_ECHO: usize = 64;

/// The measured quantity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Measure {
    /// Intervals between samples.
    Rate,
    /// Bytes per second.
    Bandwidth,
    /// Delay from publish to delivery.
    Delay,
}

/// Measures or prints samples until a limit or a signal ends it.
pub(crate) fn run_watch(args: &WatchArgs) -> anyhow::Result<ExitCode> {
    match args.measure()? {
        Some(measure) => meter(measure, &args.meter, &args.look),
        None => print(&args.echo, &args.look),
    }
}

fn meter(measure: Measure, flags: &MeterFlags, look: &LookArgs) -> anyhow::Result<ExitCode> {
    let window = flags.window.unwrap_or(match measure {
        Measure::Rate | Measure::Delay => WINDOW,
        Measure::Bandwidth => WINDOW_BW,
    });
    Session::open(look, QUEUE, false)?.run(Measuring { look, measure, window })
}

fn print(flags: &EchoFlags, look: &LookArgs) -> anyhow::Result<ExitCode> {
    flags.check()?;
    Session::open(look, QUEUE_ECHO, true)?.run(echo::Printing::new(flags, look))
}

/// Prints samples with the time that each part of their path took.
pub(crate) fn run_trace(args: &TraceArgs) -> anyhow::Result<ExitCode> {
    args.check()?;
    Session::open(&args.look, QUEUE, false)?.run(trace::Tracing::new(args))
}

/// Prints the measurements once per second.
struct Measuring<'a> {
    look: &'a LookArgs,
    measure: Measure,
    window: usize,
}

impl Target for Measuring<'_> {
    fn meter(&self) -> Option<Meter> {
        Some(Meter::new(self.measure, self.window))
    }

    fn count(&self) -> Option<u64> {
        self.look.count
    }

    fn take(&mut self, _seen: &Seen, _node: &Node) -> anyhow::Result<bool> {
        Ok(true)
    }

    fn report(&mut self, watch: &mut Watch, now: Instant, named: bool) -> anyhow::Result<()> {
        if self.look.json { watch.print_json(now) } else { watch.print(now, named) }
    }

    fn end(&mut self, _watch: &mut Watch, _node: &Node) -> anyhow::Result<()> {
        Ok(())
    }
}
