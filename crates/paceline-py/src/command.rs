//! The `paceline` command line in a Python process.

use paceline_cli::threads;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command line and returns its exit code. `again` are the words that start this program
/// again in a child process.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, arguments: Vec<OsString>, again: Vec<OsString>) -> u8 {
    number(py.detach(|| paceline_cli::main_again(arguments, again)))
}

/// Returns the environment variable with the size of Zenoh's thread pools, and its value. Returns
/// `None` if the environment has the variable.
#[pyfunction]
pub(crate) fn thread_setting() -> Option<(&'static str, &'static str)> {
    threads::setting()
}

/// Returns the number of an exit code. The standard library offers no conversion, only comparison.
fn number(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
}
