//! Runs a node next to a hostile neighbour that completes the handshake: see `src/hostile.rs`.
#![cfg(test)]

use paceline_fuzz::{HostileOutcome, hostile};
use std::io::Write as _;
use std::time::Instant;

/// The number of runs, and the frames that the node has to acknowledge in each. `cargo xtask long` continues
/// with other seeds.
const RUNS: u64 = 20;
const FRAMES: u64 = 6_000;
/// The peak memory limit of this process in bytes. Receivers buffer at most 128 MiB per neighbour.
const MEMORY_MAX: u64 = 600 << 20;

/// Returns the peak memory of this process in bytes, if the system reports it.
fn memory_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[test]
fn a_hundred_thousand_hostile_frames_have_no_effect() {
    let began = Instant::now();
    let mut all = HostileOutcome::default();
    for seed in 0..RUNS {
        let run = hostile(seed, FRAMES).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        assert!(run.handshakes > 0 && run.promised > 100, "seed {seed}: {run:?}");
        all.sent += run.sent;
        all.acknowledged += run.acknowledged;
        all.malformed += run.malformed;
        all.handshakes += run.handshakes;
        all.promised += run.promised;
        all.oldest = all.oldest.max(run.oldest);
    }
    assert!(all.acknowledged >= 100_000, "{all:?}");
    let memory = memory_peak();
    let line = format!("hostile: {all:?}, {memory:?} bytes of memory, {:.1?}", began.elapsed());
    let _ = writeln!(std::io::stderr(), "{line}");
    assert!(memory.is_none_or(|bytes| bytes < MEMORY_MAX), "{memory:?} bytes");
}
