//! Runs a node next to a hostile neighbour that completes the handshake: see `src/hostile.rs`.
#![cfg(test)]

use paceline_fuzz::{HostileOutcome, hostile};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// The number of runs, and the frames that the node has to acknowledge in each. The rights of the neighbour differ between
/// successive seeds.
const RUNS: u64 = 20;
const FRAMES: u64 = 6_000;
/// The same for the long form.
const RUNS_LONG: u64 = 168;
const FRAMES_LONG: u64 = 60_000;
/// The peak memory limit of this process in bytes. Receivers buffer at most 128 MiB per neighbour.
const MEMORY_MAX: u64 = 600 << 20;

/// Returns the peak memory of this process in bytes, if the system reports it.
fn memory_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Runs `runs` seeds on all cores, and returns the sum of their results.
fn all(runs: u64, frames: u64) -> HostileOutcome {
    let next = AtomicU64::new(0);
    let work = || {
        let mut all = HostileOutcome::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= runs {
                return all;
            }
            let run = hostile(seed, frames).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
            assert!(run.handshakes > 0 && run.promised > 100, "seed {seed}: {run:?}");
            all = sum(all, run);
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .fold(HostileOutcome::default(), sum)
    })
}

fn sum(one: HostileOutcome, other: HostileOutcome) -> HostileOutcome {
    HostileOutcome {
        sent: one.sent + other.sent,
        acknowledged: one.acknowledged + other.acknowledged,
        malformed: one.malformed + other.malformed,
        handshakes: one.handshakes + other.handshakes,
        promised: one.promised + other.promised,
        oldest: one.oldest.max(other.oldest),
    }
}

fn check(runs: u64, frames: u64) {
    let began = Instant::now();
    let all = all(runs, frames);
    assert!(all.acknowledged >= runs * frames, "{all:?}");
    let memory = memory_peak();
    let line = format!("hostile: {all:?}, {memory:?} bytes of memory, {:.1?}", began.elapsed());
    let _ = writeln!(std::io::stderr(), "{line}");
    assert!(memory.is_none_or(|bytes| bytes < MEMORY_MAX), "{memory:?} bytes");
}

#[test]
fn a_hundred_thousand_hostile_frames_have_no_effect() {
    check(RUNS, FRAMES);
}

#[test]
#[ignore = "an hour: cargo xtask long runs it"]
fn ten_million_hostile_frames_have_no_effect() {
    check(RUNS_LONG, FRAMES_LONG);
}
