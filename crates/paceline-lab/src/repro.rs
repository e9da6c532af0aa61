//! `paceline-lab repro`: reproduces the figures of a paper with the product's code, next to the
//! figures that the paper states.

mod christie;
mod juvva;
mod narada;
mod west_schwan;

use anyhow::Result;
use std::process::ExitCode;

/// Arguments of `paceline-lab repro`.
#[derive(clap::Args, Debug)]
pub(crate) struct ReproArgs {
    #[command(subcommand)]
    paper: Paper,
}

#[derive(clap::Subcommand, Debug)]
enum Paper {
    /// R. W. Christie: Design and Analysis of a Multimedia Network Architecture, 1995
    #[command(name = "christie-1995")]
    Christie1995(christie::Args),
    /// K. Juvva: Coscheduling of Computation and Communication Resources in Push-Pull
    /// Communications, 1999
    #[command(name = "juvva-1999")]
    Juvva1999(juvva::Args),
    /// S. Pallickara et al.: Support for High Performance Real-time Collaboration within the NaradaBrokering Substrate,
    /// 2005
    #[command(name = "narada-2005")]
    Narada2005(narada::Args),
    /// R. West and K. Schwan: Interactors: Capturing Tradeoffs in Bandwidth versus CPU Usage for Quality of Service
    /// Constrained Objects, 1997
    #[command(name = "west-schwan")]
    WestSchwan(west_schwan::Args),
}

/// Reproduces a paper and returns the exit code: 0 if every required bound is met, 1 if not.
pub(crate) fn run(args: &ReproArgs) -> Result<ExitCode> {
    match &args.paper {
        Paper::Christie1995(args) => christie::run(args),
        Paper::Juvva1999(args) => juvva::run(args),
        Paper::Narada2005(args) => narada::run(args),
        Paper::WestSchwan(args) => west_schwan::run(args),
    }
}
