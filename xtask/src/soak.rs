//! `cargo xtask soak`: builds Paceline and runs its soak test.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(root: &Path, minutes: u64) -> Result<ExitCode> {
    let built = crate::cargo(root)
        .args(["build", "--workspace", "--bins"])
        .status()
        .context("cargo build does not start; is cargo on the PATH?")?;
    if !built.success() {
        return Ok(ExitCode::FAILURE);
    }
    let duration = format!("{minutes}min");
    let mut soak = crate::cargo(root);
    soak.args(["run", "--quiet", "--package", "paceline-lab", "--bin", "paceline-lab", "--"]);
    let status = soak
        .args(["bench", "soak", "--duration", &duration])
        .status()
        .context("cannot start paceline-lab bench soak")?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}
