//! Runs every benchmark and example in the documents for some seconds, checking only bounds on figures in virtual time, and
//! for `cargo xtask long` the benchmarks and reproductions with bounds at their full length.

use crate::runner::{self, Logs, Share, lock};
use crate::setup;
use crate::steps::Outcome;
use crate::tidy::files;
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// The kind of a program, which determines its path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Program {
    /// `paceline-lab bench NAME --short …`
    Bench,
    /// `paceline-lab repro NAME --short`
    Repro,
    /// An example of the workspace.
    Example,
}
use Program::{Bench, Example, Repro};

/// A requirement that a host may not meet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Need {
    Nothing,
    /// Network namespaces.
    Root,
    /// Network namespaces and `$PACELINE_DATA`.
    Recordings,
}
use Need::{Nothing, Recordings, Root};

const RUNS: &[(Program, &str, &[&str], Need)] = &[
    (Bench, "main-job", &[], Root),
    (Bench, "hop", &[], Nothing),
    (Bench, "idle", &[], Root),
    (Bench, "meet", &[], Nothing),
    (Bench, "fanout", &[], Nothing),
    (Bench, "figure7", &[], Nothing),
    (Bench, "plain", &[], Nothing),
    (Bench, "clock", &[], Root),
    (Bench, "tds", &[], Nothing),
    (Bench, "objects", &[], Nothing),
    (Bench, "playout", &[], Root),
    (Bench, "pull", &[], Root),
    (Bench, "radio", &[], Root),
    (Bench, "recordings", &[], Recordings),
    (Bench, "storm", &[], Root),
    (Bench, "soak", &[], Nothing),
    (Bench, "schedule", &[], Nothing),
    (Bench, "whatif", &[], Root),
    (Repro, "christie-1995", &[], Nothing),
    (Repro, "juvva-1999", &[], Nothing),
    (Repro, "narada-2005", &["time"], Nothing),
    (Repro, "west-schwan", &[], Nothing),
    (Example, "frames", &[], Nothing),
    (Example, "rates", &[], Nothing),
    (Example, "contract", &[], Nothing),
    (Example, "capacity", &[], Nothing),
    (Example, "aligned", &[], Nothing),
    (Example, "world", &[], Nothing),
    (Example, "recording", &[], Nothing),
    (Example, "certificates", &[], Nothing),
    (Example, "pub", &[], Nothing),
    (Example, "sub", &[], Nothing),
    (Example, "sub_async", &[], Nothing),
    (Example, "pull", &[], Nothing),
    (Example, "refusal", &[], Nothing),
    (Example, "carriers", &["1"], Nothing),
    (Example, "rights", &[], Nothing),
    (Example, "watchdog", &[], Nothing),
    (Example, "admissions", &["500", "50"], Nothing),
    (Example, "records", &["10"], Nothing),
    (Example, "reservations", &["500"], Nothing),
    (Example, "requests", &["50"], Nothing),
    (Example, "stall", &["vds"], Nothing),
    (Example, "police", &["0", "2000"], Nothing),
    (Example, "promises", &["vds", "0", "2"], Nothing),
    (Example, "opus", &["1"], Nothing),
    (Example, "placements", &["agree=20", "repeat=1", "nodes=500"], Nothing),
    (Example, "scale", &["nodes=30", "streams=300", "seconds=1"], Nothing),
];

/// The benchmarks and reproductions whose bounds `cargo xtask long` checks: those that end in some minutes.
const BOUNDED: &[(Program, &str, &[&str], Need)] = &[
    (Bench, "fanout", &[], Nothing),
    (Bench, "hop", &[], Nothing),
    (Bench, "meet", &[], Nothing),
    (Bench, "plain", &[], Nothing),
    (Bench, "playout", &[], Root),
    (Bench, "pull", &[], Root),
    (Bench, "storm", &["--duration", "5s"], Root),
    (Repro, "christie-1995", &[], Nothing),
    (Repro, "juvva-1999", &[], Root),
    (Repro, "narada-2005", &["time"], Nothing),
    (Repro, "west-schwan", &[], Nothing),
];

/// Programs in the documents that this step does not run, with the reasons.
const ELSEWHERE: &[(Program, &str)] = &[
    // Run by the newcomer's test.
    (Example, "hello"),
    // Writes into the checkout; the fuzz tests read its output.
    (Example, "corpus"),
    // In a separate workspace, see below.
    (Example, "decision"),
    (Example, "introductions"),
    (Example, "objects"),
];

/// Programs of the workspace `benches`: one iteration of a criterion benchmark, and its examples. Not optimised, which
/// saves minutes of compilation, because no figure counts here.
const DECISIONS: [(&str, &[&str]); 3] = [
    ("cargo bench", &["bench", "--profile", "dev", "--", "--test", "/dwcs/4$"]),
    ("example decision", &["run", "--example", "decision", "--", "dwcs", "4", "6400"]),
    ("example introductions", &["run", "--example", "introductions", "--", "1000", "100", "5"]),
];

/// The scenarios. Each runs on real nodes …
const SCENARIOS: &str = "examples/scenarios";
/// … except those that need the simulator: video, wrong clocks, and measured links, on which no sample arrives live yet.
const SIMULATED: [&str; 3] = ["bursty-radio.toml", "clock-drift.toml", "fading-radio.toml"];

/// The number of programs at once. Most of them sleep most of the time, and no figure counts here.
const LANES: usize = 4;
/// Programs that run alone, behind the others: their contracts end if others take the processor.
const ALONE: [&str; 1] = ["bench main-job"];

pub(crate) fn step(root: &Path, logs: &Logs) -> Outcome {
    let unknown = unknown(root);
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.into_iter().collect();
        return Outcome::failed(&format!(
            "the documents name {}; add it to xtask/src/benches.rs",
            names.join(", ")
        ));
    }
    let (mut ran, mut queue) = (0_usize, Vec::new());
    for (name, need, command) in commands(root) {
        if let Some(lack) = lack(need) {
            println!("skipped: {name}: {lack}");
            continue;
        }
        ran += 1;
        queue.push((name, command));
    }
    let (single, queue): (Vec<_>, Vec<_>) =
        queue.into_iter().partition(|(name, _)| ALONE.contains(&name.as_str()));
    let left = Mutex::new(queue.into_iter());
    let crowded = Mutex::new(Vec::new());
    let next = || lock(&left).next();
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some((name, command)) = next() {
                    if !one(logs, &name, Share::Rest, &command).is_passed() {
                        lock(&crowded).push((name, command));
                    }
                }
            });
        }
    });
    let mut again = crowded.into_inner().unwrap_or_else(PoisonError::into_inner);
    let fails =
        |(name, command): &(String, Command)| !one(logs, name, Share::Even, command).is_passed();
    again.extend(single.into_iter().filter(fails));
    outcome(ran, again.len(), &alone(logs, &again))
}

/// Runs a program, and shows how long it took.
fn one(logs: &Logs, name: &str, share: Share, command: &Command) -> Outcome {
    let start = Instant::now();
    let outcome = runner::step(logs, name, share, command);
    println!("{name}: {outcome} ({:.1} s)", start.elapsed().as_secs_f64());
    outcome
}

/// Runs again, one after the other and with an equal share of the processors, the programs that failed: a contract on a thin
/// link can end because the programs next to it take the processor. Returns the names of those that fail again.
fn alone(logs: &Logs, crowded: &[(String, Command)]) -> Vec<String> {
    let failed = crowded.iter().filter(|(name, command)| {
        println!("again, alone: {name}");
        !one(logs, name, Share::Even, command).is_passed()
    });
    failed.map(|(name, _)| name.clone()).collect()
}

/// Returns the result of `ran` programs, of which `crowded` ran twice and `failed` failed twice.
fn outcome(ran: usize, crowded: usize, failed: &[String]) -> Outcome {
    let again = crowded - failed.len();
    let again = if again == 0 { String::new() } else { format!(", {again} only alone") };
    if failed.is_empty() {
        return Outcome::passed(&format!("{ran} completed{again}"));
    }
    Outcome::failed(&format!("{} of {ran}: {}{again}", failed.len(), failed.join(", ")))
}

/// Runs the benchmarks with bounds, alone and one after the other, because they measure time and memory. Returns the names
/// of those that missed a bound or ended with an error.
pub(crate) fn bounded(root: &Path) -> anyhow::Result<Vec<&'static str>> {
    let mut failed = Vec::new();
    for &(program, name, args, need) in BOUNDED {
        let (shown, word) =
            (shown(program, name), if program == Repro { "repro" } else { "bench" });
        if let Some(lack) = lack(need) {
            println!("skipped: {shown}: {lack}");
            continue;
        }
        let mut command = Command::new(crate::web::lab(root));
        let status = command.current_dir(root).args([word, name]).args(args).status();
        if !status.context("cannot start paceline-lab")?.success() {
            failed.push(name);
        }
    }
    Ok(failed)
}

/// Returns all programs with their requirements.
fn commands(root: &Path) -> Vec<(String, Need, Command)> {
    let mut all = Vec::new();
    for &(program, name, args, need) in RUNS {
        let mut command = match program {
            Bench => lab(root, "bench", name),
            Repro => lab(root, "repro", name),
            Example => {
                let target = crate::web::target(root);
                let mut command = Command::new(target.join("debug/examples").join(name));
                command.current_dir(root);
                command
            }
        };
        command.args(args);
        all.push((shown(program, name), need, command));
    }
    for (name, args) in DECISIONS {
        let mut cargo = crate::cargo(&root.join("benches"));
        cargo.args(args);
        all.push((name.to_owned(), Nothing, cargo));
    }
    let mut scenarios: Vec<_> = files::with_extension(root, "toml")
        .into_iter()
        .map(|path| files::relative(root, &path))
        .filter(|name| name.starts_with(SCENARIOS))
        .collect();
    scenarios.sort();
    all.extend(scenarios.iter().map(|name| scenario(root, name)));
    all
}

fn scenario(root: &Path, name: &str) -> (String, Need, Command) {
    if SIMULATED.iter().any(|file| name.ends_with(file)) {
        let mut command = Command::new(crate::web::binary(root));
        command.current_dir(root).args(["simulate", name]);
        return (format!("simulate {name}"), Nothing, command);
    }
    (format!("bench {name}"), Root, lab(root, "bench", name))
}

fn lab(root: &Path, word: &str, name: &str) -> Command {
    let mut command = Command::new(crate::web::lab(root));
    command.current_dir(root).args([word, name, "--short"]);
    command
}

fn shown(program: Program, name: &str) -> String {
    match program {
        Bench => format!("bench {name}"),
        Repro => format!("repro {name}"),
        Example => format!("example {name}"),
    }
}

/// Returns the missing requirement as text.
fn lack(need: Need) -> Option<&'static str> {
    let root = setup::is_root();
    match need {
        Root | Recordings if !root => Some("needs root"),
        Recordings if std::env::var_os("PACELINE_DATA").is_none() => Some("needs PACELINE_DATA"),
        Nothing | Root | Recordings => None,
    }
}

/// Returns the programs in the documents that no step runs.
fn unknown(root: &Path) -> BTreeSet<String> {
    let known = |program, name: &str| {
        RUNS.iter().any(|run| (run.0, run.1) == (program, name))
            || ELSEWHERE.contains(&(program, name))
    };
    let mut unknown = BTreeSet::new();
    for path in files::with_extension(root, "md") {
        let text = fs::read_to_string(&path).unwrap_or_default();
        // Joined across lines.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for (program, before) in [
            (Bench, "paceline-lab bench "),
            (Repro, "paceline-lab repro "),
            (Example, "--example "),
            (Example, "debug/examples/"),
        ] {
            let names = text.split(before).skip(1).map(name).filter(|name| !name.is_empty());
            let names = names.filter(|name| !known(program, name));
            unknown.extend(names.map(|name| shown(program, name)));
        }
    }
    unknown
}

/// Returns the name at the start of a text, or an empty text for anything else, such as a file or
/// an option.
fn name(text: &str) -> &str {
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let end = text.find(|c| !inside(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let file = rest.starts_with(['/', '.']) && !rest.starts_with(". ");
    if file || name.starts_with('-') { "" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_the_first_other_character() {
        assert_eq!(name("main-job`, then"), "main-job");
        assert_eq!(name("figure7` ([page]"), "figure7");
        assert_eq!(name("hop. Then"), "hop");
        assert_eq!(name("examples/scenarios/flood.toml"), "");
        assert_eq!(name("FILE.toml"), "");
        assert_eq!(name("--help"), "");
    }

    #[test]
    fn benchmarks_with_bounds_are_in_the_documents() {
        for (program, name, ..) in BOUNDED {
            assert!(RUNS.iter().any(|run| (run.0, run.1) == (*program, *name)), "{name}");
        }
        // Every reproduction has bounds.
        let reproductions = RUNS.iter().filter(|run| run.0 == Repro);
        for (program, name, ..) in reproductions {
            assert!(BOUNDED.iter().any(|run| (run.0, run.1) == (*program, *name)), "{name}");
        }
    }

    /// A program that fails in its first `failures` runs.
    fn failing(folder: &Path, failures: u32) -> (String, Command) {
        let name = format!("fails {failures}");
        let file = folder.join(&name);
        let mut command = Command::new("sh");
        command
            .env("FILE", &file)
            .args(["-c", "echo >> \"$FILE\"; [ $(wc -l < \"$FILE\") -gt $0 ]"]);
        command.arg(failures.to_string());
        (name, command)
    }

    #[test]
    fn only_a_program_that_fails_again_alone_fails_the_step() {
        let folder = std::env::temp_dir().join(format!("xtask-benches-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let logs = Logs::within(&folder);
        let programs = [failing(&folder, 1), failing(&folder, 2)];
        assert!(
            programs
                .iter()
                .all(|(name, command)| { !one(&logs, name, Share::Rest, command).is_passed() })
        );
        let failed = alone(&logs, &programs);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(failed, ["fails 2"]);
        let shown = outcome(9, programs.len(), &failed).to_string();
        assert_eq!(shown, "FAILED 1 of 9: fails 2, 1 only alone");
        assert_eq!(outcome(9, 1, &[]).to_string(), "passed 9 completed, 1 only alone");
        assert_eq!(outcome(9, 0, &[]).to_string(), "passed 9 completed");
    }

    #[test]
    fn every_documented_benchmark_is_known() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!(unknown(root), BTreeSet::new());
        let scenarios = commands(root).into_iter().filter(|(name, ..)| name.contains(".toml"));
        assert!(scenarios.count() >= 10);
    }
}
