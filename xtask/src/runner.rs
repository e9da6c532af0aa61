//! Runs programs, possibly several at once and at low priority, each with its own log file.

use crate::binaries::Binary;
use crate::steps::Outcome;
use crate::tally::Tally;
use crate::{chrony, python};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A program that runs longer than this is considered hung, even on a slow machine.
const HANGS_AFTER: Duration = Duration::from_secs(900);

/// The processor share of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Share {
    /// Normal priority.
    Even,
    /// The lowest priority: other programs get a processor as soon as they wake.
    Rest,
}

/// The folder of the log files, one per program.
#[derive(Debug)]
pub(crate) struct Logs(PathBuf);

impl Logs {
    pub(crate) fn new(root: &Path) -> Self {
        Self(crate::web::target(root).join("xtask"))
    }

    #[cfg(test)]
    pub(crate) fn within(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    fn file(&self, name: &str) -> io::Result<(PathBuf, File)> {
        fs::create_dir_all(&self.0)?;
        let plain = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
        let path = self.0.join(plain + ".log");
        let file = File::create(&path)?;
        Ok((path, file))
    }
}

/// The result of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) took: Duration,
    pub(crate) output: String,
}

/// Runs a program to its end, and kills it if it hangs.
pub(crate) fn run(
    logs: &Logs,
    name: &str,
    share: Share,
    program: &Command,
) -> Result<Ended, String> {
    let no_log = |error| format!("{name}: cannot write its output: {error}");
    let (path, file) = logs.file(name).map_err(no_log)?;
    let both = file.try_clone().map_err(no_log)?;
    let mut command = limited(share, program);
    let target = logs.0.parent();
    command.envs(target.and_then(chrony::find).map(|file| (chrony::CHRONYD, file)));
    command.envs(target.and_then(python::interpreter).map(|file| (python::PYTHON, file)));
    command.stdin(Stdio::null()).stdout(file).stderr(both);
    let start = Instant::now();
    let status = command.status().map_err(|error| format!("cannot start {name}: {error}"))?;
    let output = fs::read(&path).unwrap_or_default();
    let output = String::from_utf8_lossy(&output).into_owned();
    Ok(Ended { status, took: start.elapsed(), output })
}

/// Returns the same program with a time limit, and with the lowest priority for [`Share::Rest`].
fn limited(share: Share, program: &Command) -> Command {
    let mut command = Command::new(if share == Share::Rest { "nice" } else { "timeout" });
    if share == Share::Rest {
        command.args(["-n", "19", "timeout"]);
    }
    // In the foreground process group, so that Ctrl-C ends all programs.
    command.args(["--foreground", "--kill-after=10", &HANGS_AFTER.as_secs().to_string()]);
    command.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(folder) = program.get_current_dir() {
        command.current_dir(folder);
    }
    command
}

/// Runs a program as a step. Its output is shown if it fails, and else what it skips.
pub(crate) fn step(logs: &Logs, name: &str, share: Share, program: &Command) -> Outcome {
    match run(logs, name, share, program) {
        Ok(ended) if ended.status.success() => {
            let skipped = ended.output.lines().filter(|line| line.starts_with("skipped: "));
            skipped.for_each(|line| println!("{name}: {line}"));
            Outcome::passed("")
        }
        Ok(ended) => {
            println!("{}", ended.output);
            Outcome::failed(&ended.status.to_string())
        }
        Err(problem) => Outcome::failed(&problem),
    }
}

/// A test with real clocks can fail because the tests next to it take the processor. At most this many
/// failed tests of a binary run again alone; more of them are no accident.
const AGAIN: usize = 3;

/// Runs test binaries in their order, `lanes` at once.
///
/// Failed tests with the even share, which depend on real clocks, run again one after the other when all
/// binaries have ended. A test that passes then is counted and shown by name.
pub(crate) fn tests(
    logs: &Logs,
    share: Share,
    lanes: usize,
    binaries: &[&Binary],
) -> (Outcome, Tally) {
    let next = Mutex::new(binaries.iter());
    let sum = Mutex::new((Tally::default(), Vec::new(), Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                loop {
                    let taken = lock(&next).next();
                    let Some(binary) = taken else { break };
                    let (tally, problem) = one(logs, share, binary, &[]);
                    let mut sum = lock(&sum);
                    match problem {
                        Some(_) if share == Share::Even && tally.is_repeatable(AGAIN) => {
                            sum.2.push((binary, tally));
                            continue;
                        }
                        problem => sum.1.extend(problem),
                    }
                    sum.0.add(tally);
                }
            });
        }
    });
    let (mut tally, mut problems, again) = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (binary, mut crowded) in again {
        let mut args = vec!["--exact", "--test-threads=1"];
        args.extend(crowded.broken());
        let (alone, problem) = one(logs, share, binary, &args);
        crowded.repeated(&alone);
        let missing = || format!("{}: failed tests did not run again", binary.name());
        problems.extend(problem.or_else(|| crowded.has_failures().then(missing)));
        tally.add(crowded);
    }
    let outcome = match problems.as_slice() {
        [] => Outcome::passed(&tally.detail()),
        _ => Outcome::failed(&format!("{}: {}", tally.detail(), problems.join(", "))),
    };
    (outcome, tally)
}

/// Returns the output of a test binary without that of tests that passed.
fn without_successes(output: &str) -> String {
    let parts = output
        .split_once("\nsuccesses:\n")
        .and_then(|(start, rest)| Some((start, rest.split_once("\nfailures:\n")?.1)));
    parts.map_or_else(|| output.to_owned(), |(start, end)| format!("{start}\nfailures:\n{end}"))
}

/// Runs one test binary. Returns its counts, and a description if it fails.
fn one(logs: &Logs, share: Share, binary: &Binary, args: &[&str]) -> (Tally, Option<String>) {
    let name = binary.name();
    let mut program = Command::new(&binary.file);
    // As cargo does.
    program.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder).args(args);
    // Tests that pass print what they skip.
    program.arg("--show-output");
    let mut tally = Tally::default();
    let ended = match run(logs, &name, share, &program) {
        Ok(ended) => ended,
        Err(problem) => return (tally, Some(problem)),
    };
    tally.read(&ended.output);
    if !ended.status.success() {
        println!("{}", without_successes(&ended.output));
    }
    println!("{name}: {} ({:.1} s)", tally.detail(), ended.took.as_secs_f64());
    let failed = (!ended.status.success()).then(|| format!("{name} ({})", ended.status));
    (tally, failed)
}

/// Locks a value, also after a panic of another thread.
pub(crate) fn lock<T>(value: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(name: &str) -> Logs {
        Logs(std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id())))
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_of_a_program_are_kept() {
        let logs = logs("output");
        let mut program = shell("echo out; echo err >&2; echo $WORD; pwd; exit 3");
        program.env("WORD", "word").current_dir("/");
        for share in [Share::Even, Share::Rest] {
            let ended = run(&logs, "a b/c", share, &program).unwrap();
            assert_eq!(ended.status.code(), Some(3));
            assert_eq!(ended.output, "out\nerr\nword\n/\n");
        }
        assert!(logs.0.join("a_b_c.log").is_file());
        fs::remove_dir_all(&logs.0).unwrap();
    }

    #[test]
    fn the_output_of_passed_tests_is_left_out() {
        let output = "test a ... ok\n\nsuccesses:\n\n---- a stdout ----\nx\n\nfailures:\n\ny";
        assert_eq!(without_successes(output), "test a ... ok\n\nfailures:\n\ny");
        assert_eq!(without_successes("killed"), "killed");
    }

    #[test]
    fn the_rest_share_has_the_lowest_priority() {
        let logs = logs("nice");
        let nice = |share| run(&logs, "nice", share, &shell("nice")).unwrap().output;
        let ours = nice(Share::Even);
        assert_eq!(nice(Share::Rest), "19\n", "ours is {ours}");
        fs::remove_dir_all(&logs.0).unwrap();
    }

    /// A binary whose test `t` fails in its first `failures` runs.
    fn failing(logs: &Logs, failures: u32) -> Binary {
        fs::create_dir_all(&logs.0).unwrap();
        let file = logs.0.join(format!("fails{failures}"));
        let script = format!(
            "#!/bin/sh\nn=$(cat $0.n 2>/dev/null || echo 0)\necho $((n + 1)) > $0.n\n\
             if [ $n -lt {failures} ]; then\n\
             echo 'test t ... FAILED'\necho 'test result: FAILED. 1 passed; 1 failed;'; exit 101\nfi\n\
             echo 'test t ... ok'\necho 'test result: ok. 1 passed; 0 failed;'\n"
        );
        fs::write(&file, script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&file, mode).unwrap();
        let (package, target) = ("p".to_owned(), "t".to_owned());
        Binary { package, target, folder: PathBuf::from("/"), file }
    }

    #[test]
    fn only_tests_with_real_clocks_run_again_alone_and_are_named() {
        let logs = logs("again");
        let result = |failures, share| {
            let binary = failing(&logs, failures);
            let (outcome, tally) = tests(&logs, share, 2, &[&binary]);
            fs::remove_file(binary.file.with_extension("n")).unwrap();
            (outcome.is_passed(), tally.detail())
        };
        let (passed, detail) = result(1, Share::Even);
        assert!(passed && detail.contains("2 tests passed, 0 failed"), "{detail}");
        assert!(detail.contains("1 passed only alone"), "{detail}");
        let (passed, detail) = result(2, Share::Even);
        assert!(!passed && detail.contains("1 tests passed, 1 failed"), "{detail}");
        let (passed, detail) = result(1, Share::Rest);
        assert!(!passed && detail.contains("1 failed"), "{detail}");
        fs::remove_dir_all(&logs.0).unwrap();
    }

    #[test]
    fn a_binary_that_dies_without_a_report_fails() {
        let logs = logs("dies");
        let folder = PathBuf::from("/");
        let binary = |file: &str| Binary {
            package: "p".to_owned(),
            target: file.to_owned(),
            folder: folder.clone(),
            file: PathBuf::from("/bin").join(file),
        };
        let (dies, lives) = (binary("false"), binary("true"));
        let (outcome, _) = tests(&logs, Share::Even, 2, &[&dies, &lives]);
        assert!(!outcome.is_passed() && outcome.to_string().contains("p false"), "{outcome}");
        let (outcome, _) = tests(&logs, Share::Even, 2, &[&lives]);
        assert!(outcome.is_passed(), "{outcome}");
        fs::remove_dir_all(&logs.0).unwrap();
    }
}
