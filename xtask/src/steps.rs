//! Steps of a run, some of them concurrent, each timed against its budget and reported in one
//! table.

use std::fmt::{self, Write as _};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The result of a step.
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

    /// Runs a command with this process's output streams.
    pub(crate) fn of(command: &mut Command) -> Self {
        match command.status() {
            Ok(status) if status.success() => Self::passed(""),
            Ok(status) => Self::failed(&status.to_string()),
            Err(error) => Self::failed(&format!("cannot start: {error}")),
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
    budget: Duration,
}

impl Step {
    /// Returns the last column of the table.
    fn detail(&self) -> String {
        let over = self.took > self.budget;
        let over =
            if over { format!("OVER its {} s", self.budget.as_secs()) } else { String::new() };
        let parts = [over.as_str(), self.outcome.detail.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// The completed steps. Several threads may add to them.
pub(crate) struct Steps {
    began: Instant,
    done: Mutex<Vec<Step>>,
}

impl Default for Steps {
    fn default() -> Self {
        Self { began: Instant::now(), done: Mutex::default() }
    }
}

impl Steps {
    /// Runs a step, regardless of earlier failures. A step that takes longer than `seconds` is
    /// marked in the table but does not fail, because the speed of the machine is not under test.
    pub(crate) fn run(&self, name: &'static str, seconds: u64, step: impl FnOnce() -> Outcome) {
        println!("== {name}");
        let start = Instant::now();
        let outcome = step();
        let took = start.elapsed();
        println!("== {name} {outcome} ({:.1} s)", took.as_secs_f64());
        let step = Step { name, outcome, took, budget: Duration::from_secs(seconds) };
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    }

    pub(crate) fn all_passed(&self) -> bool {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.iter().all(|step| step.outcome.passed)
    }

    /// Returns the table and a final line `N passed, N failed`. The last row has the total elapsed
    /// time, which is less than the sum if steps ran concurrently.
    pub(crate) fn table(&self) -> String {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text =
            format!("{:<10} {:<7} {:>8} {:>7}  detail\n", "step", "result", "seconds", "budget");
        for step in &*done {
            let result = if step.outcome.passed { "passed" } else { "FAILED" };
            let (seconds, budget) = (step.took.as_secs_f64(), step.budget.as_secs());
            let name = step.name;
            let line =
                format!("{name:<10} {result:<7} {seconds:>8.1} {budget:>7}  {}", step.detail());
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let all = self.began.elapsed().as_secs_f64();
        let _ = writeln!(text, "{:<10} {:<7} {all:>8.1}", "all", "");
        let passed = done.iter().filter(|step| step.outcome.passed).count();
        let _ = writeln!(text, "\n{passed} passed, {} failed", done.len() - passed);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_stops_nothing_and_is_counted() {
        let steps = Steps::default();
        steps.run("first", 60, || Outcome::failed("exit status: 1"));
        steps.run("second", 60, || Outcome::passed("12 tests"));
        assert!(!steps.all_passed());
        let table = steps.table();
        assert!(table.lines().any(|line| line == "1 passed, 1 failed"), "{table}");
        assert!(table.contains("FAILED") && table.contains("12 tests"), "{table}");
    }

    #[test]
    fn a_step_beyond_its_budget_is_reported_and_passes() {
        let steps = Steps::default();
        steps.run("quick", 60, || Outcome::passed(""));
        steps.run("slow", 0, || Outcome::passed("12 tests"));
        assert!(steps.all_passed());
        let table = steps.table();
        let over: Vec<&str> = table.lines().filter(|line| line.contains("OVER")).collect();
        let [line] = over[..] else { panic!("{table}") };
        assert!(line.starts_with("slow") && line.ends_with("OVER its 0 s; 12 tests"), "{table}");
    }

    #[test]
    fn steps_may_run_at_the_same_time() {
        let steps = Steps::default();
        let both = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for name in ["left", "right"] {
                let (steps, both) = (&steps, &both);
                scope.spawn(move || {
                    steps.run(name, 60, || {
                        both.wait();
                        Outcome::passed("")
                    });
                });
            }
        });
        assert!(steps.table().ends_with("\n2 passed, 0 failed\n"), "{}", steps.table());
    }
}
