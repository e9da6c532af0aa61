//! Exit codes, and errors with an exit code.

use crate::show::{self, StdoutClosed};
use std::fmt;
use std::io;
use std::process::ExitCode;

/// The command failed while running.
pub const FAILED: u8 = 1;
/// The command line was invalid; clap uses the same code.
pub const USAGE: u8 = 2;
/// The request was refused, or the required quality was not delivered.
pub const REFUSED: u8 = 3;
/// A signal interrupted the command before it was done.
pub const INTERRUPTED: u8 = 130;

/// An error with its own exit code.
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

/// Returns an error for an invalid command line.
pub fn usage(message: impl fmt::Display) -> anyhow::Error {
    Coded { code: USAGE, message: message.to_string() }.into()
}

/// Returns an error for a required quality that was not delivered.
pub fn refused(message: impl fmt::Display) -> anyhow::Error {
    Coded { code: REFUSED, message: message.to_string() }.into()
}

/// Returns an error for a command that a signal has ended before its purpose was reached.
pub fn interrupted(message: impl fmt::Display) -> anyhow::Error {
    Coded { code: INTERRUPTED, message: message.to_string() }.into()
}

/// Returns the text of an error of opening or reading a file, with a fix for the usual ones.
pub fn file_error(error: &io::Error) -> String {
    let fixes = [
        (io::ErrorKind::NotFound, "check the path; a relative one begins at the current folder"),
        (io::ErrorKind::PermissionDenied, "check its owner and mode with ls -l"),
    ];
    let fix = fixes.into_iter().find(|(kind, _)| *kind == error.kind());
    fix.map_or_else(|| error.to_string(), |(_, fix)| format!("{error}; {fix}"))
}

/// Prints `error` and returns the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if error.is::<StdoutClosed>() {
        return ExitCode::SUCCESS;
    }
    // Not `eprintln!`, which panics if standard error is closed.
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

    #[test]
    fn errors_of_files_have_a_fix() {
        let text = |kind: io::ErrorKind| file_error(&kind.into());
        assert!(
            text(io::ErrorKind::NotFound)
                .ends_with("; check the path; a relative one begins at the current folder")
        );
        assert!(
            text(io::ErrorKind::PermissionDenied)
                .ends_with("; check its owner and mode with ls -l")
        );
        assert_eq!(text(io::ErrorKind::InvalidData), "invalid data");
    }
}
