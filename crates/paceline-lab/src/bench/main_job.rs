//! `paceline-lab bench main-job`: the product's contracts on a real thin link, compared with plain
//! Zenoh.

mod idle;
mod scaling;
mod steering;

use super::netns::{self, Rig, THIN_BITS_PER_S};
use super::report::Report;
use super::stage::Stage;
use super::{OutputArgs, interrupt};
use crate::impair::PathArgs;
use anyhow::Result;
use paceline_tool::scratch::Scratch;
use std::process::ExitCode;

/// One camera to three subscribers and steering commands over a 2 Mbit/s link
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Steering commands per configuration and run, at 100 per second
    #[arg(long, value_name = "N", default_value_t = 10_000, conflicts_with = "short",
          value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    commands: u32,
    /// Runs of each configuration with Paceline; reports the median. Plain Zenoh runs once
    #[arg(long, value_name = "R", default_value_t = 3, conflicts_with = "short",
          value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// 1,000 commands and one run: a quick check, not a measurement
    #[arg(long, conflicts_with_all = ["commands", "runs", "short"])]
    quick: bool,
    /// Only these parts
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    /// The link with commands only
    Idle,
    /// One camera to three subscribers
    Scaling,
    /// Commands and a camera
    Steering,
}

impl Args {
    fn commands(&self) -> u32 {
        match (self.quick, self.output.short) {
            (true, _) => 1_000,
            // The number of commands in the shorter interval.
            (false, true) => 600,
            (false, false) => self.commands,
        }
    }

    fn runs(&self) -> u32 {
        if self.quick || self.output.short { 1 } else { self.runs }
    }

    /// Returns the command line that repeats this measurement.
    fn command(&self) -> String {
        let (commands, runs) = (self.commands(), self.runs());
        let mut command = "paceline-lab bench main-job".to_owned();
        match (self.quick, commands, runs) {
            (true, ..) => command.push_str(" --quick"),
            (false, 10_000, 3) => {}
            (false, ..) if self.output.short => {}
            (false, ..) => command.push_str(&format!(" --commands {commands} --runs {runs}")),
        }
        let names = self.only.iter().filter_map(clap::ValueEnum::to_possible_value);
        names.for_each(|name| command.push_str(&format!(" --only {}", name.get_name())));
        command + &self.path.to_string()
    }

    fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !netns::can_build("main-job") {
        return Ok(ExitCode::from(2));
    }
    interrupt::install()?;
    let rig = Rig::over(&args.path, THIN_BITS_PER_S)?;
    let scratch = Scratch::new("main-job")?;
    let stage = Stage::new(&rig, &scratch, args.output.short);
    let mut report = Report::new("The main job on a thin link", &args.command());
    if args.wants(Part::Idle) {
        report.add(idle::measure(&stage, args.commands())?, &args.output);
    }
    if args.wants(Part::Scaling) {
        report.add(scaling::measure(&stage, args.commands())?, &args.output);
    }
    if args.wants(Part::Steering) {
        steering::measure(&stage, args.commands(), args.runs(), |section| {
            report.add(section, &args.output);
        })?;
    }
    report.finish(&args.output)
}
