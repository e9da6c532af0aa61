//! `cargo xtask test`: everything that must pass, in one go.

use crate::steps::{Outcome, Steps};
use crate::{cargo, commands, python, setup, tidy, web};
use anyhow::Result;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ExitCode, Stdio};

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let mut steps = Steps::default();
    let mut tests = Tally::default();
    steps.run("setup", setup::run);
    // Before anything is compiled: the binary embeds it.
    steps.run("web", || web::build(root));
    steps.run("fmt", || Outcome::of(cargo(root).args(["fmt", "--all", "--", "--check"])));
    steps.run("clippy", || {
        let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        Outcome::of(cargo(root).args(clippy))
    });
    steps.run("tidy", || tidy::step(root));
    // Before the tests: the newcomer's run the README's lines of Python.
    steps.run("python", || python::run(root));
    steps.run("test", || cargo_test(root, &mut tests));
    steps.run("browser", || web::test(root));
    steps.run("doc", || {
        let doc = ["doc", "--workspace", "--no-deps"];
        Outcome::of(cargo(root).args(doc).env("RUSTDOCFLAGS", "-D warnings"))
    });
    steps.run("commands", || commands::step(root));
    println!();
    for name in &tests.skipped {
        println!("skipped: {name}");
    }
    for name in &tests.broken {
        println!("failed: {name}");
    }
    print!("{}", steps.table());
    Ok(if steps.all_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What `cargo test` said, added up over its binaries.
#[derive(Debug, Default)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: Vec<String>,
    broken: Vec<String>,
}

impl Tally {
    fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += count(counts, "passed");
            self.failed += count(counts, "failed");
        } else if let Some(test) = line.strip_prefix("test ")
            && let Some((name, result)) = test.split_once(" ... ")
        {
            match result.strip_prefix("ignored") {
                Some("") => self.skipped.push(name.to_owned()),
                Some(reason) => {
                    self.skipped.push(format!("{name}: {}", reason.trim_start_matches(", ")));
                }
                None if result == "FAILED" => self.broken.push(name.to_owned()),
                None => {}
            }
        }
    }

    fn detail(&self) -> String {
        let (passed, failed, skipped) = (self.passed, self.failed, self.skipped.len());
        format!("{passed} tests passed, {failed} failed, {skipped} skipped")
    }
}

/// The number before `word` in "ok. 12 passed; 0 failed; …".
fn count(text: &str, word: &str) -> u64 {
    let words: Vec<&str> = text.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    let pairs = words.iter().zip(words.iter().skip(1));
    pairs.filter(|(_, next)| **next == word).find_map(|(n, _)| n.parse().ok()).unwrap_or(0)
}

/// Runs all tests; what they print goes on to the reader and is counted on its way.
fn cargo_test(root: &Path, tally: &mut Tally) -> Outcome {
    let mut command = cargo(root);
    command.args(["test", "--workspace", "--no-fail-fast"]).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::failed(&format!("cargo test does not start: {error}")),
    };
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            println!("{line}");
            tally.read(&line);
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Outcome::passed(&tally.detail()),
        Ok(status) => Outcome::failed(&format!("{} ({status})", tally.detail())),
        Err(error) => Outcome::failed(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_up_and_skipped_tests_named() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test link::a ... ok",
            "test link::b ... ignored",
            "test link::c ... ignored, needs root",
            "test link::d ... FAILED",
            "test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; in 0.0s",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        ] {
            tally.read(line);
        }
        assert_eq!((tally.passed, tally.failed), (11, 2));
        assert_eq!(tally.skipped, ["link::b", "link::c: needs root"]);
        assert_eq!(tally.broken, ["link::d"]);
    }
}
