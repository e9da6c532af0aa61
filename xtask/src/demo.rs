//! `cargo xtask demo`: from a fresh checkout to pictures and commands on a thin link.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(root: &Path, args: &[String]) -> Result<ExitCode> {
    println!("building paceline (the first time takes some minutes: Zenoh is compiled, optimised)");
    let built = crate::cargo(root)
        .args(["build", "--package", "paceline-cli", "--bin", "paceline"])
        .status()
        .context("cargo build does not start; is cargo on the PATH?")?;
    if !built.success() {
        return Ok(ExitCode::FAILURE);
    }
    let mut demo = crate::cargo(root);
    demo.args(["run", "--quiet", "--package", "paceline-cli", "--bin", "paceline", "--", "demo"]);
    if args.is_empty() {
        demo.args(["--seconds", "20"]);
    }
    let status = demo.args(args).status().context("paceline demo does not start")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}
