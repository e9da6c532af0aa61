//! `paceline-lab bench fanout`: the cost of a thousand subscribers in one process.

use super::child::Child;
use super::protocol::{Message, Role};
use super::report::{Bound, Report, Section, Unit};
use super::stats::float;
use super::{OutputArgs, interrupt};
use anyhow::Result;
use paceline_tool::scratch::Scratch;
use std::process::ExitCode;
use std::time::Duration;

/// 1,000 subscriptions to one tag of 252 bytes at 33 Hz, in one process
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Number of subscriptions
    #[arg(long, value_name = "N", default_value_t = 1_000, conflicts_with = "short",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    subscriptions: u32,
    /// Measured time
    #[arg(long = "duration", value_name = "TIME", default_value = "10s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<1, 3_600>)]
    seconds: u32,
    #[command(flatten)]
    output: OutputArgs,
}

/// The limit, in percent of one core.
const PERCENT_MAX: f64 = 5.0;
const BYTES_MAX: f64 = 4_096.0;

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let scratch = Scratch::new("fanout")?;
    let mut command = "paceline-lab bench fanout".to_owned();
    if (args.subscriptions, args.seconds) != (1_000, 10) {
        let (subscriptions, seconds) = (args.subscriptions, args.seconds);
        command.push_str(&format!(" --subscriptions {subscriptions} --duration {seconds}s"));
    }
    let seconds = if args.output.short { 1 } else { args.seconds };
    let args = &Args { seconds, ..args.clone() };
    let mut report = Report::new("Many subscribers in one process", &command);
    for (queues, how) in
        [(false, "one callback each"), (true, "one queue each, read by one thread")]
    {
        eprintln!("{how}: {} s", args.seconds);
        report.add(measure(args, &scratch, queues, how)?, &args.output);
    }
    report.finish(&args.output)
}

fn measure(args: &Args, scratch: &Scratch, queues: bool, how: &str) -> Result<Section> {
    let role = Role::Fanout { subscriptions: args.subscriptions, seconds: args.seconds, queues };
    let mut child = Child::start("fanout", &role, None, &scratch.host())?;
    child.expect_ready()?;
    child.go()?;
    let patience = Duration::from_secs(u64::from(args.seconds) + 120);
    let (cpu_percent, bytes_each, delivered, published) =
        child.expect("result", patience, |message| {
            let Message::Fanout { cpu_percent, bytes_each, delivered, published } = message else {
                return None;
            };
            Some((cpu_percent, bytes_each, delivered, published))
        })?;
    let mut section = Section::new(format!(
        "{} best-effort subscriptions to one tag, 252 bytes at 33 Hz: {how}",
        args.subscriptions
    ));
    let most = Bound::AtMost(PERCENT_MAX);
    section.must("processor time, of one core", Unit::Percent, cpu_percent, f64::NAN, most);
    let name = "resident memory per subscription, bytes";
    section.must(name, Unit::Count, bytes_each, f64::NAN, Bound::AtMost(BYTES_MAX));
    let missing = float(published * u64::from(args.subscriptions)) - float(delivered);
    section.must("samples not delivered", Unit::Count, missing, f64::NAN, Bound::AtMost(0.0));
    section.show("deliveries", Unit::Count, float(delivered), f64::NAN);
    Ok(section)
}
