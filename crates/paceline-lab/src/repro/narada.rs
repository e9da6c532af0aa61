//! `paceline-lab repro narada-2005`: the time services of NaradaBrokering (Pallickara et al. 2005, section 3).
//!
//! The paper's column has only figures that its text states: its curves have no values.

mod offsets;
mod spacing;
mod threads;

use crate::bench::OutputArgs;
use crate::bench::report::Report;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Offsets of the clock (figures 12 to 14, in virtual time) and jitters of spaced samples (figures 16 to 20, live)
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// The part of the paper
    #[arg(value_enum)]
    part: Part,
    /// Measured time of each of the figures 16 to 20
    #[arg(long = "duration", value_name = "TIME", default_value = "5s", conflicts_with = "short",
          value_parser = paceline_tool::args::seconds::<2, 600>)]
    seconds: u32,
    /// Writes each figure as FOLDER/figure-NUMBER.svg
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Part {
    /// The time services of section 3
    Time,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let Part::Time = args.part;
    let mut command = "paceline-lab repro narada-2005 time".to_owned();
    if args.seconds != 5 {
        command.push_str(&format!(" --duration {}s", args.seconds));
    }
    let seconds = if args.output.short { 2 } else { args.seconds };
    let figures = Figures(args.svg.clone());
    let mut report = Report::new("Pallickara et al. 2005, figures 12 to 14 and 16 to 20", &command);
    for machine in offsets::MACHINES {
        report.add(offsets::section(&machine, &figures)?, &args.output);
    }
    report.add(offsets::others(), &args.output);
    for section in spacing::sections(seconds, &figures)? {
        report.add(section, &args.output);
    }
    report.finish(&args.output)
}

/// The folder for the figures, if they are wanted.
struct Figures(Option<PathBuf>);

impl Figures {
    /// Writes a figure.
    fn write(&self, number: u32, svg: &str) -> Result<()> {
        let Some(folder) = self.0.as_deref() else { return Ok(()) };
        let write = |folder: &Path| -> std::io::Result<()> {
            std::fs::create_dir_all(folder)?;
            std::fs::write(folder.join(format!("figure-{number}.svg")), svg)
        };
        write(folder).with_context(|| format!("--svg {}", folder.display()))
    }
}
