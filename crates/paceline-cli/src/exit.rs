//! How the command ends: codes, and errors that carry one.

use crate::show;
use std::fmt;
use std::process::ExitCode;

/// It failed while running.
pub(crate) const FAILED: u8 = 1;
/// It was called wrongly; clap ends with the same code.
pub(crate) const USAGE: u8 = 2;
/// It was refused, or not delivered what was required.
pub(crate) const REFUSED: u8 = 3;
/// A signal ended it before it was done.
pub(crate) const INTERRUPTED: u8 = 130;

/// An error with an exit code of its own.
#[derive(Debug)]
struct Coded {
    code: u8,
    message: String,
}

impl fmt::Display for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Coded {}

/// Nobody reads standard output any more: the end, and no error.
#[derive(Debug)]
pub(crate) struct StdoutClosed;

impl fmt::Display for StdoutClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output was closed")
    }
}

impl std::error::Error for StdoutClosed {}

/// The command was called wrongly.
pub(crate) fn usage(message: impl fmt::Display) -> anyhow::Error {
    Coded { code: USAGE, message: message.to_string() }.into()
}

/// What was required was not delivered.
pub(crate) fn refused(message: impl fmt::Display) -> anyhow::Error {
    Coded { code: REFUSED, message: message.to_string() }.into()
}

/// Prints `error` and returns the code to end with.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if error.is::<StdoutClosed>() {
        return ExitCode::SUCCESS;
    }
    // A closed standard error must not turn one error into a panic.
    show::note(&format!("error: {error:#}"));
    ExitCode::from(error.downcast_ref::<Coded>().map_or(FAILED, |coded| coded.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_error_has_its_code() {
        assert_eq!(report(&usage("x")), ExitCode::from(2));
        assert_eq!(report(&refused("x")), ExitCode::from(3));
        assert_eq!(report(&anyhow::anyhow!("x")), ExitCode::from(1));
        assert_eq!(report(&StdoutClosed.into()), ExitCode::SUCCESS);
    }
}
