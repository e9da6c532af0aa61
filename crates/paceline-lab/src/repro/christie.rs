//! `paceline-lab repro christie-1995`: figures 7 to 9, 11 to 14 and 17 to 19, table 1 and the four
//! loads of §4.3.2, in virtual time.
//!
//! The paper's column has only figures that its text states; most curves exist only as graphs.

mod admission;
mod film;
mod loads;
mod paper;
mod policing;
mod router;
mod testbed;
mod throughput;
mod video;

use crate::bench::OutputArgs;
use crate::bench::report::{Report, Section};
use crate::bench::stats;
use anyhow::Result;
use paceline_sched::Duration;
use std::process::ExitCode;

/// Figures 7 to 9, 11 to 14 and 17 to 19, table 1 and the four loads of §4.3.2
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Args {
    /// Reproduce only the group with this figure: 7, 8 or 9; 11 to 14; 17 or 18; 19 (the four loads)
    #[arg(long, value_name = "N", value_parser = figure)]
    figure: Option<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

/// A group of figures, the function that reproduces it, and its figures.
type Group = (&'static [u32], fn(Duration) -> Result<Vec<Section>>);

/// Table 1 belongs to figure 18.
const GROUPS: [Group; 4] = [
    (&[7, 8, 9], throughput::sections),
    (&[11, 12, 13, 14], policing::sections),
    (&[17, 18], video::sections),
    (&[19], loads::sections),
];
/// The length of the paper's video, and of a short run: both check all bounds.
const WHOLE: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(60);

/// Returns milliseconds for a report.
fn millis(time: Duration) -> f64 {
    stats::millis(Some(time.as_nanos()))
}

fn figure(text: &str) -> Result<u32, String> {
    let known = || GROUPS.iter().flat_map(|(figures, _)| figures.iter().copied());
    let parsed = text.parse().ok().filter(|number| known().any(|figure| figure == *number));
    parsed.ok_or_else(|| {
        let list: Vec<String> = known().map(|figure| figure.to_string()).collect();
        format!("no reproduction of this figure; must be one of {}", list.join(", "))
    })
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let mut command = "paceline-lab repro christie-1995".to_owned();
    if let Some(figure) = args.figure {
        command.push_str(&format!(" --figure {figure}"));
    }
    let mut report = Report::new("Christie 1995", &command);
    let time = if args.output.short { SHORT } else { WHOLE };
    for (figures, sections) in GROUPS {
        if args.figure.is_none_or(|figure| figures.contains(&figure)) {
            for section in sections(time)? {
                report.add(section, &args.output);
            }
        }
    }
    report.finish(&args.output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_without_a_reproduction_are_rejected_with_a_list() {
        assert_eq!(figure("13"), Ok(13));
        for wrong in ["10", "0", "x", ""] {
            assert!(figure(wrong).unwrap_err().contains("one of 7, 8, 9, 11"), "{wrong}");
        }
    }
}
