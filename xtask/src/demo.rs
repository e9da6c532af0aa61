//! `cargo xtask demo` and `cargo xtask impair`: build the product and run one of its commands.

use anyhow::{Context, Result};
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

/// Runs the demo: pictures and steering commands on a thin link.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<ExitCode> {
    match args {
        // A user of the page ends the demo; without a terminal it ends after 20 s.
        [] if std::io::stdout().is_terminal() => page(root, &[]),
        [] => {
            println!(
                "without a terminal the demo ends after 20 s; --duration 1min sets another time"
            );
            page(root, &["--duration".to_owned(), "20s".to_owned()])
        }
        args => page(root, args),
    }
}

/// Runs the demo with its page if Node is installed. Otherwise the page explains how to build it.
fn page(root: &Path, args: &[String]) -> Result<ExitCode> {
    println!("dashboard's page: {}", crate::web::build(root));
    command(root, ["paceline-cli", "paceline"], "demo", args)
}

/// Joins two programs by an impaired network.
pub(crate) fn impair(root: &Path, args: &[String]) -> Result<ExitCode> {
    // The programs are usually commands of `paceline`.
    if !build(root, ["paceline-cli", "paceline"])? {
        return Ok(ExitCode::FAILURE);
    }
    command(root, ["paceline-lab", "paceline-lab"], "impair", args)
}

/// Builds a binary, given by its package and name, and runs one of its commands. Returns its exit code.
fn command(root: &Path, program: [&str; 2], command: &str, args: &[String]) -> Result<ExitCode> {
    if !build(root, program)? {
        return Ok(ExitCode::FAILURE);
    }
    let [package, name] = program;
    let mut run = crate::cargo(root);
    run.args(["run", "--quiet", "--package", package, "--bin", name, "--", command]);
    let status = run.args(args).status();
    let status = status.with_context(|| format!("cannot start {name} {command}"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// Builds a binary, given by its package and name. Returns false if that fails.
fn build(root: &Path, [package, name]: [&str; 2]) -> Result<bool> {
    println!("building {name} (the first time takes some minutes: Zenoh is compiled, optimised)");
    let built = crate::cargo(root)
        .args(["build", "--package", package, "--bin", name])
        .status()
        .context("cargo build does not start; is cargo on the PATH?")?;
    Ok(built.success())
}
