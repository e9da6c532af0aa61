//! Steps that run one after the other, each timed, all told in one table.

use std::fmt::{self, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

/// What became of a step.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    passed: bool,
    detail: String,
}

impl Outcome {
    pub(crate) fn passed(detail: &str) -> Self {
        Self { passed: true, detail: detail.to_owned() }
    }

    pub(crate) fn failed(detail: &str) -> Self {
        Self { passed: false, detail: detail.to_owned() }
    }

    pub(crate) const fn is_passed(&self) -> bool {
        self.passed
    }

    /// Runs a command; its output goes where ours goes.
    pub(crate) fn of(command: &mut Command) -> Self {
        match command.status() {
            Ok(status) if status.success() => Self::passed(""),
            Ok(status) => Self::failed(&status.to_string()),
            Err(error) => Self::failed(&format!("does not start: {error}")),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = if self.passed { "passed" } else { "FAILED" };
        write!(f, "{result} {}", self.detail)
    }
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// The steps so far.
#[derive(Default)]
pub(crate) struct Steps(Vec<Step>);

impl Steps {
    /// Runs one more step, whatever became of those before it.
    pub(crate) fn run(&mut self, name: &'static str, step: impl FnOnce() -> Outcome) {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = step();
        let took = start.elapsed();
        if !outcome.passed {
            println!("== {name} FAILED: {}", outcome.detail);
        }
        self.0.push(Step { name, outcome, took });
    }

    pub(crate) fn all_passed(&self) -> bool {
        self.0.iter().all(|step| step.outcome.passed)
    }

    /// The table, closed by a line `N passed, N failed`.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("{:<10} {:<7} {:>8}  detail\n", "step", "result", "seconds");
        for step in &self.0 {
            let result = if step.outcome.passed { "passed" } else { "FAILED" };
            let seconds = step.took.as_secs_f64();
            let line =
                format!("{:<10} {result:<7} {seconds:>8.1}  {}", step.name, step.outcome.detail);
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let total: Duration = self.0.iter().map(|step| step.took).sum();
        let _ = writeln!(text, "{:<10} {:<7} {:>8.1}", "all", "", total.as_secs_f64());
        let passed = self.0.iter().filter(|step| step.outcome.passed).count();
        let _ = writeln!(text, "\n{passed} passed, {} failed", self.0.len() - passed);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_stops_nothing_and_is_counted() {
        let mut steps = Steps::default();
        steps.run("first", || Outcome::failed("exit status: 1"));
        steps.run("second", || Outcome::passed("12 tests"));
        assert!(!steps.all_passed());
        let table = steps.table();
        assert!(table.lines().any(|line| line == "1 passed, 1 failed"), "{table}");
        assert!(table.contains("FAILED") && table.contains("12 tests"), "{table}");
    }
}
