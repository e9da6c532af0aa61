//! Errors for flags that an earlier version spelled in another way.

use crate::exit;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::process::ExitCode;

/// An old flag, the new flag, and an example of the new flag.
const RENAMED: [(&str, &str, &str); 2] = [
    ("--seconds", "duration", "--duration 10s"),
    ("--time", "from", "--from -10s --to -5s, either of which may be left out"),
];

/// Commands that are now in the second binary.
const MOVED: [&str; 3] = ["bench", "impair", "schedule"];

/// Prints an error of the command line `words`, or its help, and returns the exit code.
pub fn report(error: &clap::Error, command: &clap::Command, words: &[OsString]) -> ExitCode {
    match moved_command(error).or_else(|| old_flag(error, command, words)) {
        Some(what) => exit::report(&exit::usage(what)),
        None => {
            // A closed output is no failure.
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 })
        }
    }
}

/// Returns the new place of the unknown command in `error`, if it has moved.
fn moved_command(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let name = MOVED.iter().find(|moved| *moved == name)?;
    Some(format!("'{name}' is a command of the second binary: paceline-lab {name}"))
}

/// Returns the new spelling of the unknown flag in `error`, if the subcommand in `words` has it.
fn old_flag(error: &clap::Error, command: &clap::Command, words: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let flag = flag.split('=').next().unwrap_or_default();
    let (old, new, example) = RENAMED.iter().find(|(old, ..)| *old == flag)?;
    let mut command = command;
    for word in words {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    let has = command.get_arguments().any(|arg| arg.get_long() == Some(new));
    has.then(|| format!("unexpected argument '{old}': write {example}"))
}
