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
        [] => page(root, &["--duration".to_owned(), "20s".to_owned()]),
        args => page(root, args),
    }
}

/// Runs the demo with its page if Node is installed. Otherwise the page explains how to build it.
fn page(root: &Path, args: &[String]) -> Result<ExitCode> {
    println!("dashboard's page: {}", crate::web::build(root));
    paceline(root, "demo", args)
}

/// Builds `paceline` and runs one of its commands. Returns its exit code.
pub(crate) fn paceline(root: &Path, command: &str, args: &[String]) -> Result<ExitCode> {
    println!("building paceline (the first time takes some minutes: Zenoh is compiled, optimised)");
    let built = crate::cargo(root)
        .args(["build", "--package", "paceline-cli", "--bin", "paceline"])
        .status()
        .context("cargo build does not start; is cargo on the PATH?")?;
    if !built.success() {
        return Ok(ExitCode::FAILURE);
    }
    let mut run = crate::cargo(root);
    run.args(["run", "--quiet", "--package", "paceline-cli", "--bin", "paceline", "--", command]);
    let status = run.args(args).status();
    let status = status.with_context(|| format!("paceline {command} does not start"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}
