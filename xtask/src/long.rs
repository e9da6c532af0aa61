//! `cargo xtask long`: compares the disciplines with their reference implementations, and runs
//! chaos tests of simulated networks and nodes with a hostile neighbour, for a given time.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Args {
    pub(crate) minutes: u64,
    pub(crate) fresh: bool,
}

impl Args {
    /// Parses `--minutes M` and `--fresh`. Errors with a description of the problem.
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let mut parsed = Self { minutes: 30, fresh: false };
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            match (arg, arg.strip_prefix("--minutes=")) {
                ("--fresh", _) => parsed.fresh = true,
                ("--minutes", _) => parsed.minutes = minutes(args.next())?,
                (_, Some(value)) => parsed.minutes = minutes(Some(value))?,
                _ => return Err(format!("'{arg}' is not known: --minutes M is")),
            }
        }
        Ok(parsed)
    }
}

fn minutes(value: Option<&str>) -> Result<u64, String> {
    let value = value.unwrap_or_default();
    let number = value.parse().ok().filter(|minutes| (1..=10_000).contains(minutes));
    number.ok_or_else(|| format!("--minutes '{value}': must be a whole number from 1 to 10000"))
}

pub(crate) fn run(root: &Path, args: Args) -> Result<ExitCode> {
    // The live tests that take minutes; they are ignored by `cargo xtask test`.
    let mut live = crate::cargo(root);
    live.args(["test", "--quiet", "--workspace", "--test", "live", "--"]);
    let status = live.args(["a_minute_of", "--ignored", "--nocapture"]).status();
    if !status.context("cargo does not start; is it on the PATH?")?.success() {
        return Ok(ExitCode::FAILURE);
    }
    let folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let progress = folder.unwrap_or_else(|| root.join("target")).join("long/progress");
    if args.fresh && progress.exists() {
        std::fs::remove_file(&progress)
            .with_context(|| format!("cannot remove {}", progress.display()))?;
    }
    let failed = root.join("crates/paceline-fuzz/seeds/failed.txt");
    // The profile of the tests: optimised, with overflow checks and debug assertions.
    let mut command = crate::cargo(root);
    command
        .args(["run", "--quiet", "--package", "paceline-fuzz", "--example", "long", "--"])
        .arg(args.minutes.to_string())
        .args([&progress, &failed]);
    println!(
        "{} minutes of scenarios; how far they get is in {}",
        args.minutes,
        progress.display()
    );
    finish(command)
}

/// Replaces this process by the command, so that only the command receives Ctrl-C.
#[cfg(unix)]
fn finish(mut command: std::process::Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec()).context("cargo does not start; is it on the PATH?")
}

#[cfg(not(unix))]
fn finish(mut command: std::process::Command) -> Result<ExitCode> {
    let status = command.status().context("cargo does not start; is it on the PATH?")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Args, String> {
        Args::parse(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn minutes_are_a_whole_number_in_either_spelling() {
        assert_eq!(parse(&[]), Ok(Args { minutes: 30, fresh: false }));
        assert_eq!(parse(&["--fresh", "--minutes", "5"]), Ok(Args { minutes: 5, fresh: true }));
        assert_eq!(parse(&["--minutes=90"]), Ok(Args { minutes: 90, fresh: false }));
        for wrong in [&["--minutes"][..], &["--minutes", "0"], &["--minutes=a"], &["7"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse(&["--minutes=99999"]).unwrap_err().contains("1 to 10000"));
    }
}
