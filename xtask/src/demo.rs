//! `cargo xtask demo` and `cargo xtask impair`: from a fresh checkout to a command of the product.

use anyhow::{Context, Result};
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

/// Pictures and commands on a thin link.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<ExitCode> {
    match args {
        // Whoever looks at the page ends it; a machine wants an end.
        [] if std::io::stdout().is_terminal() => page(root, &[]),
        [] => page(root, &["--seconds".to_owned(), "20".to_owned()]),
        args => page(root, args),
    }
}

/// The demo with its page, where that can be built; without Node the page says how to get it.
fn page(root: &Path, args: &[String]) -> Result<ExitCode> {
    println!("dashboard's page: {}", crate::web::build(root));
    paceline(root, "demo", args)
}

/// Builds `paceline` and runs one of its commands; ends with its exit code.
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
