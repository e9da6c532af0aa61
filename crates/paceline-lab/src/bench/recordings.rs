//! `paceline-lab bench recordings`: a real film and a real flight over the thin link.

mod case;
mod cost;
mod film;
mod flight;

use super::netns::{self, Rig, THIN_BITS_PER_S};
use super::report::Report;
use super::{OutputArgs, interrupt};
use anyhow::{Result, bail};
use paceline_tool::args;
use paceline_tool::scratch::Scratch;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Recorded video and telemetry over a 2 Mbit/s link; ffmpeg decodes each picture
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Folder of the recordings: video/*.264 and telemetry/*.ulg
    #[arg(long, value_name = "DIR", env = "PACELINE_DATA")]
    data: PathBuf,
    /// Speed of the flight as a multiple of the original
    #[arg(long, value_name = "X", default_value_t = 1.0, conflicts_with = "short", value_parser = args::rate)]
    speed: f64,
    /// Only these parts
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    /// H.264 at four rates and three sizes
    Film,
    /// PX4 telemetry, every message
    Flight,
    /// Cost of scaling, for one subscriber and for many
    Cost,
}

/// Paths of the recordings below the data folder.
const FILM: &str = "video/cisco_1280x720_bframes.264";
const FLIGHT: &str = "telemetry/px4_flight.ulg";
/// The speed of the flight in a short run, as a multiple of the original.
const SHORT_SPEED: f64 = 20.0;

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if !netns::can_build("recordings") {
        return Ok(ExitCode::from(2));
    }
    interrupt::install()?;
    let wants = |part| args.only.is_empty() || args.only.contains(&part);
    let rig = Rig::new(THIN_BITS_PER_S)?;
    let scratch = Scratch::new("recordings")?;
    let mut report = Report::new("Recordings over a thin link", &args.command());
    if wants(Part::Film) {
        let film = recording(&args.data, FILM)?;
        let short = args.output.short;
        film::measure(&rig, &scratch, &film, short, |section| report.add(section, &args.output))?;
    }
    if wants(Part::Flight) {
        let flight = recording(&args.data, FLIGHT)?;
        let speed = if args.output.short { SHORT_SPEED } else { args.speed };
        report.add(flight::measure(&rig, &scratch, &flight, speed)?, &args.output);
    }
    if wants(Part::Cost) {
        let film = recording(&args.data, FILM)?;
        report.add(cost::measure(&scratch, &film, args.output.short)?, &args.output);
    }
    report.finish(&args.output)
}

impl Args {
    /// Returns the command line that repeats this measurement.
    fn command(&self) -> String {
        let mut command = "paceline-lab bench recordings".to_owned();
        if (self.speed - 1.0).abs() > f64::EPSILON {
            command.push_str(&format!(" --speed {}", self.speed));
        }
        let names = self.only.iter().filter_map(clap::ValueEnum::to_possible_value);
        names.for_each(|name| command.push_str(&format!(" --only {}", name.get_name())));
        command
    }
}

fn recording(data: &Path, name: &str) -> Result<String> {
    let path = data.join(name);
    match path.to_str() {
        Some(text) if path.is_file() => Ok(text.to_owned()),
        _ => bail!("--data {}: the folder has no {name}", data.display()),
    }
}
