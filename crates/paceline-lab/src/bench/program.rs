//! The program `paceline`, which some benchmarks start as a user does.

use anyhow::{Context as _, Result, ensure};
use std::path::PathBuf;

/// The environment variable with the path of the program; the default is next to this executable.
const VARIABLE: &str = "PACELINE_BIN";
const NAME: &str = "paceline";

/// Returns the path of the program. A build of both programs puts it next to this executable, so that a benchmark
/// measures the code of the same build.
pub(super) fn path() -> Result<PathBuf> {
    let path = match std::env::var_os(VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => std::env::current_exe().context("path of this executable")?.with_file_name(NAME),
    };
    ensure!(
        path.is_file(),
        "{} does not exist: build both programs with cargo build --package paceline-cli --package paceline-lab, \
         or set {VARIABLE}",
        path.display()
    );
    Ok(path)
}
