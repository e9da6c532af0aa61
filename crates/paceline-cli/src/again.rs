//! How a command starts this program again, in a child process.

use anyhow::Context as _;
use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the words; the default is the path of this executable.
pub(crate) fn set(words: Vec<OsString>) {
    // A second call, in a test, has no effect.
    let _ = WORDS.set(words);
}

pub(crate) fn words() -> anyhow::Result<Vec<OsString>> {
    match WORDS.get() {
        Some(words) => Ok(words.clone()),
        None => Ok(vec![std::env::current_exe().context("cannot find this program")?.into()]),
    }
}

/// Returns a command that starts this program again.
pub(crate) fn command() -> anyhow::Result<Command> {
    let words = words()?;
    let (program, rest) = words.split_first().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(rest);
    Ok(command)
}
