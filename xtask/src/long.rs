//! `cargo xtask long`: compares the disciplines with their reference implementations, and runs
//! chaos tests of simulated networks and nodes with a hostile neighbour, for a given time. Before that it runs the longer
//! live tests, and the benchmarks with their bounds.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Further tests that take minutes: their package, test binary and name.
const IGNORED: &[(&str, &str, &str)] = &[
    ("paceline-sim", "proxies", "a_thousand"),
    // A clock in random networks: a billion readings.
    ("paceline-time", "truth", "a_billion"),
    ("paceline-proto", "control_network", "a_hundred_thousand"),
    // Elastic contracts on a link whose capacity changes.
    ("paceline-proto", "control_network", "a_million_histories"),
    ("paceline-record", "round", "a_thousand"),
    // A flood on a slow core, and the same without a calibration, for comparison.
    ("paceline", "live", "slow_core::a_flood_of_small_samples_breaks"),
    ("paceline", "live", "slow_core::without_a_calibration"),
    // Frames of a neighbour with several rights.
    ("paceline-fuzz", "hostile", "ten_million"),
    // A hostile participant of a world.
    ("paceline-objects", "hostile", "a_thousand"),
    // A live node next to a hostile member, on each carrier.
    ("paceline-fuzz", "member", "a_large_attack"),
    ("paceline-fuzz", "member", "a_thousand"),
    // Reports of live processes that stop, compared with the files that they write.
    ("paceline", "live", "a_thousand_sessions"),
    // 200 players of one camera, and ten minutes of a camera whose clocks drift.
    ("paceline-cli", "cli", "contracts_of_five_forms_are_whole_for_200"),
    ("paceline-cli", "cli", "stay_together_for_ten_minutes"),
    // Offers of refusals in random networks.
    ("paceline-sim", "promises", "a_thousand"),
];

/// The arguments of the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Args {
    pub(crate) minutes: u64,
    pub(crate) fresh: bool,
}

impl Args {
    /// Parses `--duration TIME` and `--fresh`. Errors with a description of the problem.
    pub(crate) fn parse(args: &[String]) -> Result<Self, String> {
        let mut parsed = Self { minutes: 30, fresh: false };
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            match (arg, arg.strip_prefix("--duration=")) {
                ("--fresh", _) => parsed.fresh = true,
                ("--duration", _) => parsed.minutes = minutes(args.next())?,
                (_, Some(value)) => parsed.minutes = minutes(Some(value))?,
                _ => return Err(format!("unknown argument '{arg}': try --duration 30min")),
            }
        }
        Ok(parsed)
    }
}

fn minutes(value: Option<&str>) -> Result<u64, String> {
    let value = value.unwrap_or_default();
    let hours = || value.strip_suffix('h')?.parse::<u64>().ok()?.checked_mul(60);
    let number = value.strip_suffix("min").map_or_else(hours, |number| number.parse().ok());
    let number = number.filter(|minutes| (1..=10_000).contains(minutes));
    number.ok_or_else(|| {
        format!("--duration '{value}': must be from 1min to 10000min (allowed: min, h)")
    })
}

pub(crate) fn run(root: &Path, args: Args) -> Result<ExitCode> {
    // The live tests that take minutes; they are ignored by `cargo xtask test`.
    let mut live = crate::cargo(root);
    live.args(["test", "--quiet", "--workspace", "--test", "live", "--"]);
    let status =
        live.args(["a_minute_of", "--ignored", "--nocapture", "--test-threads", "1"]).status();
    if !status.context("cannot start cargo; is it on the PATH?")?.success() {
        return Ok(ExitCode::FAILURE);
    }
    for (package, test, name) in IGNORED {
        let mut command = crate::cargo(root);
        command.args(["test", "--quiet", "--package", package, "--test", test, "--"]);
        let status = command.args([name, "--ignored", "--nocapture"]).status();
        if !status.context("cannot start cargo; is it on the PATH?")?.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    let mut lab = crate::cargo(root);
    // Some benchmarks start `paceline`.
    lab.args(["build", "--quiet", "--workspace", "--bin", "paceline-lab", "--bin", "paceline"]);
    let status = lab.status();
    if !status.context("cannot start cargo; is it on the PATH?")?.success() {
        return Ok(ExitCode::FAILURE);
    }
    let failed = crate::benches::bounded(root)?;
    if !failed.is_empty() {
        println!("these benchmarks missed a bound: {}", failed.join(", "));
        return Ok(ExitCode::FAILURE);
    }
    // Noise in every coder and budget.
    let mut noise = crate::cargo(root);
    noise.args(["test", "--quiet", "--package", "paceline", "--lib", "--", "a_thousand"]);
    let status = noise.args(["--ignored", "--nocapture"]).status();
    if !status.context("cannot start cargo; is it on the PATH?")?.success() {
        return Ok(ExitCode::FAILURE);
    }
    // Histories of shared media.
    let mut media = crate::cargo(root);
    media.args(["test", "--quiet", "--package", "paceline-proto", "--lib", "--", "medium"]);
    let status = media.env("PACELINE_HISTORIES", "1000000").status();
    if !status.context("cannot start cargo; is it on the PATH?")?.success() {
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
    println!("{} minutes of scenarios; their progress is in {}", args.minutes, progress.display());
    finish(command)
}

/// Replaces this process by the command, so that only the command receives Ctrl-C.
#[cfg(unix)]
fn finish(mut command: std::process::Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;
    Err(command.exec()).context("cannot start cargo; is it on the PATH?")
}

#[cfg(not(unix))]
fn finish(mut command: std::process::Command) -> Result<ExitCode> {
    let status = command.status().context("cannot start cargo; is it on the PATH?")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Args, String> {
        Args::parse(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_duration_is_in_minutes_or_hours() {
        assert_eq!(parse(&[]), Ok(Args { minutes: 30, fresh: false }));
        assert_eq!(parse(&["--fresh", "--duration", "5min"]), Ok(Args { minutes: 5, fresh: true }));
        assert_eq!(parse(&["--duration=1h"]).map(|args| args.minutes), Ok(60));
        assert_eq!(parse(&["--duration=90min"]), Ok(Args { minutes: 90, fresh: false }));
        for wrong in [&["--duration"][..], &["--duration", "0min"], &["--duration=5"], &["7"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse(&["--duration=99999min"]).unwrap_err().contains("1min to 10000min"));
        assert!(parse(&["--minutes", "5"]).unwrap_err().contains("try --duration 30min"));
    }
}
