//! `cargo xtask test`: runs all tests.
//!
//! Tests that need processor time run at the lowest priority next to tests that mostly sleep. So
//! tests with real clocks get a processor as promptly as if they ran alone. Tests of the page and of
//! measured rates run alone, at the end.

use crate::binaries::{Binary, Need};
use crate::runner::{Logs, Share, lock};
use crate::steps::{Outcome, Steps};
use crate::tally::Tally;
use crate::{benches, binaries, cargo, chrony, commands, python, runner, setup, tidy, web};
use anyhow::Result;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread;

/// The number of concurrent test binaries that mostly sleep.
const SLEEPERS: usize = 2;

pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let run = Run { root, logs: Logs::new(root), steps: Steps::default(), sum: Mutex::default() };
    run.steps.run("setup", 60, setup::run);
    run.steps.run("chronyd", 60, || chrony::step(&web::target(root)));
    thread::scope(|scope| {
        scope.spawn(|| run.looks());
        scope.spawn(|| run.steps.run("packages", 120, || python::prepare(root)));
        // Before anything is compiled, because the binary embeds the page.
        run.steps.run("web", 60, || web::build(root));
    });
    let binaries = run.builds();
    thread::scope(|scope| {
        scope.spawn(|| {
            run.processor(&binaries);
            // After the steps that take each processor: a benchmark that gets none measures nothing.
            run.short();
        });
        run.clock(&binaries);
    });
    // A page that gets no processor shows old figures.
    run.steps.run("browser", 170, || web::test(run.root));
    run.tests("newcomer", 90, (Share::Even, 1), &binaries, Need::Machine);
    println!();
    lock(&run.sum).show();
    print!("{}", run.steps.table());
    Ok(if run.steps.all_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Run<'a> {
    root: &'a Path,
    logs: Logs,
    steps: Steps,
    sum: Mutex<Tally>,
}

impl Run<'_> {
    /// Runs the steps that only read files.
    fn looks(&self) {
        let mut fmt = cargo(self.root);
        fmt.args(["fmt", "--all", "--", "--check"]);
        self.command("fmt", 20, &fmt);
        self.steps.run("tidy", 20, || tidy::step(self.root));
    }

    /// Runs the steps that compile, one after the other, because cargo uses all processors itself.
    fn builds(&self) -> Vec<Binary> {
        self.steps.run("clippy", 300, || {
            let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
            Outcome::of(cargo(self.root).args(clippy))
        });
        let mut built = Vec::new();
        self.steps.run("build", 400, || match binaries::build(self.root) {
            Ok(binaries) => {
                built = binaries;
                Outcome::passed(&format!("{} test binaries", built.len()))
            }
            Err(problem) => Outcome::failed(&problem),
        });
        built
    }

    /// Runs the steps that need processor time, concurrently with all others.
    fn processor(&self, binaries: &[Binary]) {
        self.tests("virtual", 400, (Share::Rest, 1), binaries, Need::Processor);
        let mut doctests = cargo(self.root);
        doctests.args(["test", "--workspace", "--doc"]);
        self.command("doctests", 120, &doctests);
        let mut doc = cargo(self.root);
        doc.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        self.command("doc", 120, &doc);
    }

    /// Runs the commands of the documents, and each benchmark for some seconds.
    fn short(&self) {
        self.steps.run("commands", 60, || commands::step(self.root));
        self.steps.run("benches", 400, || benches::step(self.root, &self.logs));
    }

    /// Runs the steps with real clocks, sockets and processes.
    fn clock(&self, binaries: &[Binary]) {
        self.tests("live", 400, (Share::Even, SLEEPERS), binaries, Need::Clock);
        // Before the newcomer's test, which runs the Python examples of the README.
        self.steps.run("python", 240, || python::run(self.root));
    }

    /// Runs the test binaries with one requirement, `lanes` at once.
    fn tests(
        &self,
        name: &'static str,
        seconds: u64,
        (share, lanes): (Share, usize),
        binaries: &[Binary],
        need: Need,
    ) {
        let binaries: Vec<&Binary> = binaries.iter().filter(|it| it.need() == need).collect();
        self.steps.run(name, seconds, || {
            if binaries.is_empty() {
                return Outcome::failed("no tests found: see the output of the build");
            }
            let (outcome, tally) = runner::tests(&self.logs, share, lanes, &binaries);
            lock(&self.sum).add(tally);
            outcome
        });
    }

    /// Runs a command in the background.
    fn command(&self, name: &'static str, seconds: u64, command: &Command) {
        self.steps.run(name, seconds, || runner::step(&self.logs, name, Share::Rest, command));
    }
}
