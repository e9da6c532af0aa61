//! Errors for flags that an earlier version, another program, or a user's guess spells in another way.

use crate::exit;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::process::ExitCode;

/// A flag that does not exist, an option of the commands to which the advice applies, and what to write instead. The
/// first match applies.
const RENAMED: &[(&str, &str, &str)] = &[
    ("--seconds", "duration", "--duration 10s"),
    ("--time", "from", "--from -10s --to -5s, either of which may be left out"),
    ("--hz", "max-hz", "--max-hz 10"),
    ("--rate", "max-hz", "--max-hz 10"),
    ("--fps", "max-hz", "--max-hz 10"),
    ("--rate", "hz", "--hz 10"),
    ("--fps", "hz", "--hz 10"),
    ("--deadline", "within", "--within 200ms"),
    ("--latency", "within", "--within 200ms"),
    ("--resolution", "size", "--size 320x240"),
    ("--output", "out", "--out run.mcap"),
    ("--wait", "timeout", "--timeout 5s"),
    // Flags of mosquitto_sub, nats, kcat, ros2 topic and Zenoh's examples.
    ("-t", "link", "the tag without a flag, such as robot/camera"),
    ("-k", "link", "the tag without a flag, such as robot/camera"),
    ("-m", "test-card", "the value after the tag: paceline pub robot/goal left"),
    ("-r", "hz", "--hz 10"),
    ("-n", "count", "--count 10"),
    ("-c", "count", "--count 10"),
    ("-C", "count", "--count 10"),
    (
        "--once",
        "test-card",
        "no flag, because a value is published once: paceline pub robot/goal left",
    ),
    ("--once", "count", "--count 1"),
    (
        "--translate",
        "out",
        "--out -, and a pipe to the program: paceline sub robot/pose --out - | jq .x",
    ),
    ("--raw", "out", "--out - for the payloads unchanged: paceline sub robot/pose --out -"),
    ("-e", "link", "--link connect=tcp/HOST:7600"),
    ("--connect", "link", "--link connect=tcp/HOST:7600"),
    ("-s", "link", "--link connect=tcp/HOST:7600"),
    ("--server", "link", "--link connect=tcp/HOST:7600"),
    // Only a pull has the second without the first.
    (
        "--bitrate",
        "audio",
        "--audio 8000x1 or --size 160x120, because a pull has no bit rate; or buffer coded samples: \
         paceline sub TAG --bitrate 32kbit --history 60s",
    ),
];

/// Prints an error of the command line `words`, or its help, and returns the exit code.
pub fn report(error: &clap::Error, command: &clap::Command, words: &[OsString]) -> ExitCode {
    match old_flag(error, command, words) {
        Some(what) => exit::report(&exit::usage(what)),
        None => {
            // A closed output is no failure.
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 })
        }
    }
}

/// Returns the option and its whole value, such as `--within -5ms`, of which clap reads `flag` as an option.
fn negative(flag: &str, words: &[OsString]) -> Option<String> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let pairs = words.iter().zip(words.iter().skip(1));
    let mut found =
        pairs.filter(|(option, value)| option.starts_with("--") && value.starts_with(flag));
    found.next().map(|(option, value)| format!("{option} {value}"))
}

/// Returns the spelling to use for the unknown flag in `error`, if the subcommand in `words` has it.
fn old_flag(error: &clap::Error, command: &clap::Command, words: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let flag = flag.split('=').next().unwrap_or_default();
    if flag.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        let shown = negative(flag, words).unwrap_or_else(|| flag.to_owned());
        return Some(format!("'{shown}': a value must not be negative; leave out the minus sign"));
    }
    let mut command = command;
    for word in words {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    let has = |name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
    let (old, _, example) = RENAMED.iter().find(|(old, new, _)| *old == flag && has(new))?;
    Some(format!("unexpected argument '{old}': write {example}"))
}
