//! The project's own commands, for developers and for continuous integration.
//!
//! They build, set up and call; the product's functions are in its crates.

mod alone;
mod benches;
mod binaries;
mod chrony;
mod commands;
mod cxx;
mod demo;
mod dist;
mod long;
mod python;
mod runner;
mod setup;
mod soak;
mod steps;
mod tally;
mod test;
mod tidy;
mod web;

use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test            installs the programs that the tests need, runs all tests, prints one table
  demo [ARGS...]  builds paceline and runs `paceline demo` (for 20 s without a terminal)
  impair [ARGS...]
                  builds paceline-lab and runs `paceline-lab impair`: two programs on an impaired network
  web             builds the dashboard's page, which the next build of paceline embeds (needs Node)
  python          builds the Python package as a wheel, installs it in a separate environment, tests it
  tidy [--figures] [--lower]
                  checks sizes, dependencies, imports, language, markers and links; --figures prints
                  the figures of each crate, --lower lowers the accepted values (ratchet.txt)
  long [--duration TIME] [--fresh]
                  runs scenarios against the twins of all disciplines (default: 30min) and continues
                  where the last run stopped; --fresh starts at the first seed
  soak [--duration TIME]
                  kills and stops processes of a small network at random moments (default: 30min)
  dist            builds the files of a release (crates, static binary, Debian package, Python wheel),
                  and installs and runs each in an empty folder
";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    let result = match command.as_deref() {
        Some("test") if rest.is_empty() => test::run(&root()),
        Some("demo") => demo::run(&root(), &rest),
        Some("impair") => demo::impair(&root(), &rest),
        Some("long") => match long::Args::parse(&rest) {
            Ok(args) => long::run(&root(), args),
            Err(problem) => usage(&problem),
        },
        Some("soak") => match long::Args::parse(&rest) {
            Ok(args) if !args.fresh => soak::run(&root(), args.minutes),
            Ok(_) => usage("soak has no option '--fresh'"),
            Err(problem) => usage(&problem),
        },
        Some("web") if rest.is_empty() => Ok(print_outcome("web", &web::build(&root()))),
        Some("python") if rest.is_empty() => Ok(print_outcome("python", &python::run(&root()))),
        Some("tidy") => match tidy::Options::parse(&rest) {
            Ok(options) => tidy::run(&root(), options),
            Err(problem) => usage(&problem),
        },
        Some("dist") => match dist::Profile::parse(&rest) {
            Ok(profile) => dist::run(&root(), profile),
            Err(problem) => usage(&problem),
        },
        Some("test" | "web" | "python") => {
            usage(&format!("unexpected argument '{}'", rest.join(" ")))
        }
        Some("help" | "--help" | "-h") => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        Some(other) => usage(&format!("unknown command '{other}'")),
        None => usage("missing command"),
    };
    result.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

fn print_outcome(name: &str, outcome: &steps::Outcome) -> ExitCode {
    println!("{name}: {outcome}");
    if outcome.is_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(problem: &str) -> Result<ExitCode> {
    eprint!("xtask: {problem}\n\n{USAGE}");
    Ok(ExitCode::from(2))
}

/// Returns the folder of the workspace in which cargo runs this program. The path at compile time
/// may belong to another checkout that shares the target folder.
fn root() -> PathBuf {
    let built = || env!("CARGO_MANIFEST_DIR").into();
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(built));
    here.parent().unwrap_or(&here).to_owned()
}

/// Returns the cargo command that runs this program, in the workspace's folder.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    forget_package(&mut command);
    command
}

/// Removes the environment variables of this package from a command. Build scripts that depend on
/// them (ring's) would run again, and Zenoh would be compiled again, after each manual run of
/// cargo.
fn forget_package(command: &mut Command) {
    let ours = ["CARGO_PKG_", "CARGO_MANIFEST_"];
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| ours.iter().any(|start| name.starts_with(start))) {
            command.env_remove(name);
        }
    }
}
