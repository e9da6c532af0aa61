//! The resource usage of a process, as the kernel counts it.

use super::super::stats::float;
use anyhow::{Context as _, Result};
use std::fs;

/// Memory, descriptors and threads at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vitals {
    resident_bytes: u64,
    descriptors: u64,
    threads: u64,
}

/// The growth of these figures over a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    pub(super) bytes: f64,
    pub(super) descriptors: f64,
    pub(super) threads: f64,
}

impl Vitals {
    pub(super) fn read(process: u32) -> Result<Self> {
        let path = format!("/proc/{process}/status");
        let status = fs::read_to_string(&path).with_context(|| path.clone())?;
        let field = |name: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let resident_kib = field("VmRSS:").with_context(|| format!("{path} has no VmRSS"))?;
        let threads = field("Threads:").with_context(|| format!("{path} has no Threads"))?;
        let folder = format!("/proc/{process}/fd");
        let descriptors = fs::read_dir(&folder).with_context(|| folder)?.count() as u64;
        Ok(Self { resident_bytes: resident_kib * 1_024, descriptors, threads })
    }
}

impl Growth {
    /// Returns the growth from the second fifth of a run to its last. The first fifth includes the
    /// set-up.
    pub(super) fn of(run: &[Vitals]) -> Self {
        let fifth = run.len() / 5;
        let early = run.get(fifth..2 * fifth).unwrap_or_default();
        let late = run.get(run.len() - fifth..).unwrap_or_default();
        let grew = |of: fn(&Vitals) -> u64| median(late, of) - median(early, of);
        Self {
            bytes: grew(|vitals| vitals.resident_bytes),
            descriptors: grew(|vitals| vitals.descriptors),
            threads: grew(|vitals| vitals.threads),
        }
    }
}

fn median(run: &[Vitals], of: fn(&Vitals) -> u64) -> f64 {
    let mut values: Vec<u64> = run.iter().map(of).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().map_or(0.0, float)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_from_the_second_fifth_to_the_last() {
        let run: Vec<Vitals> = (0..50)
            .map(|n| Vitals { resident_bytes: 1_000 * n, descriptors: 7, threads: n / 10 })
            .collect();
        let grew = Growth::of(&run);
        let near = |value: f64, other: f64| (value - other).abs() < 1e-9;
        assert!(
            near(grew.bytes, 30_000.0) && near(grew.descriptors, 0.0) && near(grew.threads, 3.0)
        );
        assert!(near(Growth::of(&run[..3]).bytes, 0.0), "too few measurements");
    }

    #[test]
    fn the_vitals_of_this_process_are_read() {
        let vitals = Vitals::read(std::process::id()).unwrap();
        assert!(vitals.resident_bytes > 0 && vitals.descriptors > 2 && vitals.threads > 0);
    }
}
