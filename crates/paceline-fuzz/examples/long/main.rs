//! The program behind `cargo xtask long`: runs random scenarios until a time limit.
//!
//! It cycles through the scheduling drivers, the simulator's chaos tests, contract tests and link
//! cuts, and the hostile neighbour.
//!
//! Usage: `long MINUTES PROGRESS FAILED`. PROGRESS is the file that records the seeds finished by earlier
//! runs. FAILED is the list to which the program appends failing seeds.

mod progress;

use progress::{Done, Progress};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use paceline_fuzz::films::recorded_films;
use paceline_fuzz::sched::{DRIVERS, Driver};
use paceline_sim::cuts::Faults;
use paceline_sim::promises::{Film, PromisesResult, generated_films};

/// Scenarios that a thread runs before it checks the clock and records its progress.
const BLOCK: u64 = 2_000;
/// The block size of the network drivers. Each of their scenarios simulates a network for a minute or more.
const NETWORKS_BLOCK: u64 = 50;
/// The cuts of one network.
const CUTS: u64 = 8;
/// Frames of a hostile neighbour that a node must acknowledge in one scenario.
const HOSTILE_FRAMES: u64 = 60_000;
/// The network drivers, which alternate with the drivers of the scheduling disciplines.
const NETWORKS: [Driver; 7] = [
    Driver { name: "storm", run: storm, watched: None },
    Driver { name: "promises", run: promises, watched: None },
    Driver { name: "tolerances", run: tolerances, watched: None },
    Driver { name: "requests", run: requests, watched: None },
    Driver { name: "films", run: films, watched: None },
    Driver { name: "cuts", run: cuts, watched: None },
    Driver { name: "hostile", run: hostile, watched: None },
];
/// Samples that links carried in this run, in total and under a contract.
static CARRIED: AtomicU64 = AtomicU64::new(0);
static PROMISED: AtomicU64 = AtomicU64::new(0);
/// Link cuts in this run, and the samples published meanwhile.
static CUT: AtomicU64 = AtomicU64::new(0);
static ACCOUNTED: AtomicU64 = AtomicU64::new(0);
/// Frames of hostile neighbours that nodes acknowledged in this run.
static ACKNOWLEDGED: AtomicU64 = AtomicU64::new(0);
/// The interval between two progress reports and writes of the progress file.
const SHOW: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let minutes = args.next().and_then(|minutes| minutes.parse::<u64>().ok());
    let files = (args.next().map(PathBuf::from), args.next().map(PathBuf::from));
    let (Some(minutes), (Some(progress), Some(failed))) = (minutes, files) else {
        eprintln!("usage: long MINUTES PROGRESS FAILED");
        return ExitCode::from(2);
    };
    match run(Duration::from_secs(minutes.saturating_mul(60)), progress, failed) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(count) => {
            println!("{count} seeds failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("long: {error}");
            ExitCode::FAILURE
        }
    }
}

fn storm(seed: u64) -> Result<(), String> {
    let outcome = paceline_sim::storm::run(seed);
    CARRIED.fetch_add(outcome.samples, Ordering::Relaxed);
    Ok(())
}

fn promises(seed: u64) -> Result<(), String> {
    count(&paceline_sim::promises::run(seed)?);
    Ok(())
}

fn tolerances(seed: u64) -> Result<(), String> {
    count(&paceline_sim::promises::run_tolerant(seed)?);
    Ok(())
}

fn requests(seed: u64) -> Result<(), String> {
    count(&paceline_sim::promises::run_full(seed)?);
    Ok(())
}

/// Networks with the sizes of recorded films, or of generated ones without the recordings.
fn films(seed: u64) -> Result<(), String> {
    static FILMS: OnceLock<Vec<Film>> = OnceLock::new();
    let films = FILMS.get_or_init(|| recorded_films().unwrap_or_else(generated_films));
    count(&paceline_sim::promises::run_films(seed, films)?);
    Ok(())
}

fn cuts(seed: u64) -> Result<(), String> {
    for faults in [Faults::Links, Faults::Relays] {
        let outcome = paceline_sim::cuts::run(seed, CUTS, faults)?;
        CUT.fetch_add(outcome.cuts, Ordering::Relaxed);
        ACCOUNTED.fetch_add(outcome.published, Ordering::Relaxed);
    }
    Ok(())
}

fn hostile(seed: u64) -> Result<(), String> {
    let outcome = paceline_fuzz::hostile(seed, HOSTILE_FRAMES)?;
    ACKNOWLEDGED.fetch_add(outcome.acknowledged, Ordering::Relaxed);
    PROMISED.fetch_add(outcome.promised, Ordering::Relaxed);
    Ok(())
}

fn count(outcome: &PromisesResult) {
    CARRIED.fetch_add(outcome.carried, Ordering::Relaxed);
    PROMISED.fetch_add(outcome.samples, Ordering::Relaxed);
}

/// The state shared by all threads.
struct Run {
    turn: AtomicUsize,
    stop: Arc<AtomicBool>,
    until: Instant,
    progress: Mutex<Progress>,
    failures: Mutex<BTreeSet<(&'static str, u64)>>,
    failed: PathBuf,
}

fn run(time: Duration, progress: PathBuf, failed: PathBuf) -> io::Result<usize> {
    let names: Vec<&'static str> = DRIVERS.iter().chain(&NETWORKS).map(|it| it.name).collect();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let run = Run {
        turn: AtomicUsize::new(0),
        stop,
        until: Instant::now() + time,
        progress: Mutex::new(Progress::read(progress, &names)?),
        failures: Mutex::default(),
        failed,
    };
    let began = Instant::now();
    thread::scope(|scope| -> io::Result<()> {
        let cores = thread::available_parallelism()?.get();
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(|| run.work())).collect();
        let mut shown = Instant::now();
        while threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(Duration::from_millis(100));
            if shown.elapsed() >= SHOW {
                shown = Instant::now();
                run.progress().write()?;
                println!("{:>6} s, {} scenarios", began.elapsed().as_secs(), run.progress().now());
            }
        }
        Ok(())
    })?;
    run.progress().write()?;
    print!("{}", run.progress().table());
    println!(
        "{} samples over links, in chaos tests and next to contracts",
        CARRIED.load(Ordering::Relaxed)
    );
    println!("{} samples under a contract that was kept", PROMISED.load(Ordering::Relaxed));
    let (cuts, accounted) = (CUT.load(Ordering::Relaxed), ACCOUNTED.load(Ordering::Relaxed));
    println!("{cuts} link cuts: each of {accounted} samples delivered or missing, none twice");
    println!("{} acknowledged frames of hostile neighbours", ACKNOWLEDGED.load(Ordering::Relaxed));
    Ok(run.failures.lock().unwrap_or_else(PoisonError::into_inner).len())
}

impl Run {
    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs blocks of scenarios, one driver after the other, until the time limit.
    fn work(&self) {
        while !self.stop.load(Ordering::Relaxed) && Instant::now() < self.until {
            let each = || {
                let networks = NETWORKS.iter().map(|it| (it, NETWORKS_BLOCK));
                DRIVERS.iter().map(|it| (it, BLOCK)).chain(networks)
            };
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % each().count();
            let Some((driver, block)) = each().nth(turn) else { return };
            let Done { from, to } = self.progress().take(driver.name, block);
            for seed in from..to {
                if let Err(what) = run_one(driver, seed) {
                    self.keep(driver.name, seed, &what);
                }
            }
            self.progress().finish(driver.name, Done { from, to });
        }
    }

    /// Prints a failure and appends its seed to the list, unless the seed is already there.
    fn keep(&self, name: &'static str, seed: u64, what: &str) {
        println!("FAILED: {name}, seed {seed}\n{what}");
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.insert((name, seed));
        let line = format!("{name} {seed}");
        let known = fs::read_to_string(&self.failed).unwrap_or_default();
        if known.lines().any(|known| known == line) {
            return;
        }
        let file = fs::OpenOptions::new().append(true).create(true).open(&self.failed);
        if let Err(error) = file.and_then(|mut file| writeln!(file, "{line}")) {
            println!("{}: {error}: keep '{line}' by hand", self.failed.display());
        }
    }
}

/// Runs one scenario and reports a panic as a failure.
fn run_one(driver: &Driver, seed: u64) -> Result<(), String> {
    catch_unwind(|| (driver.run)(seed)).unwrap_or_else(|_| Err("it panicked".to_owned()))
}
