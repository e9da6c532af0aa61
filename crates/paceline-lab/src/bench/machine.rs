//! Measures the load of the whole machine during a benchmark. On few cores the load decides the
//! tail of every delay.

mod witness;

use super::stats::float;
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::fs;
use std::process::Command;
use witness::Witness;

/// The machine's properties, for one line of the report.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Machine {
    pub(super) cores: usize,
    pub(super) kernel: String,
    /// The commit of the current checkout, with `+` if files differ from it; `None` outside of a
    /// checkout.
    pub(super) commit: Option<String>,
}

impl Machine {
    pub(super) fn read() -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { cores, kernel: kernel.trim().to_owned(), commit: commit() }
    }
}

/// Returns the commit of Paceline's own checkout in the current folder.
fn commit() -> Option<String> {
    fs::metadata("crates/paceline-cli/Cargo.toml").ok()?;
    let git = ["describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=9"];
    let output = Command::new("git").args(git).output().ok()?;
    let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}

/// Observes the machine's load during a measurement.
#[derive(Debug)]
pub(super) struct Watch {
    from: Ticks,
    witness: Witness,
}

impl Watch {
    /// Starts the observation.
    pub(super) fn begin() -> Result<Self> {
        Ok(Self { from: Ticks::read()?, witness: Witness::start()? })
    }

    /// Returns the load since the observation started.
    pub(super) fn load(&self) -> Result<Load> {
        let load = Ticks::read()?.since(self.from);
        Ok(Load { stall_millis: self.witness.longest().as_secs_f64() * 1_000.0, ..load })
    }
}

/// Accumulated time of all processors, in ticks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Ticks {
    total: u64,
    idle: u64,
    steal: u64,
}

/// The machine's load in an interval. `busy_percent` and `steal_percent` are shares of the whole
/// machine. `stall_millis` is the longest delay of an idle thread's wake-up.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Load {
    pub(super) busy_percent: f64,
    pub(super) steal_percent: f64,
    pub(super) stall_millis: f64,
}

impl Load {
    pub(super) fn busy(self) -> f64 {
        self.busy_percent
    }

    pub(super) fn steal(self) -> f64 {
        self.steal_percent
    }

    pub(super) fn stall(self) -> f64 {
        self.stall_millis
    }
}

impl Ticks {
    fn read() -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        Self::parse(&text).context("/proc/stat has no line that begins with 'cpu '")
    }

    /// Parses the line `cpu user nice system idle iowait irq softirq steal guest guest_nice`.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> = line.split_whitespace().flat_map(str::parse).take(8).collect();
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        Some(Self { total: fields.iter().sum(), idle: at(3) + at(4), steal: at(7) })
    }

    /// Returns the load since `earlier`. Stolen time counts as busy, because the benchmark could
    /// not use it.
    fn since(self, earlier: Self) -> Load {
        let total = float((self.total - earlier.total).max(1));
        let percent = |ticks: u64| 100.0 * float(ticks) / total;
        let idle = self.idle.saturating_sub(earlier.idle);
        let steal = self.steal.saturating_sub(earlier.steal);
        let busy_percent = 100.0 - percent(idle);
        Load { busy_percent, steal_percent: percent(steal), stall_millis: 0.0 }
    }
}

/// Returns the processor time that a process has used, in seconds, as the kernel counts it.
pub(super) fn cpu_seconds(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    used_ticks(&text).map(|ticks| float(ticks) / TICKS_PER_S).with_context(|| path)
}

/// Returns the resident memory of this process in bytes.
pub(super) fn resident_bytes() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.map(|kib| float(kib) * 1_024.0).context("/proc/self/status has no VmRSS")
}

/// The tick rate of `/proc`, which is 100 Hz on every Linux.
const TICKS_PER_S: f64 = 100.0;

/// Parses user and system time from `/proc/PID/stat`. The name in parentheses may contain any
/// character.
fn used_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).flat_map(str::parse::<u64>);
    Some(fields.next()? + fields.next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_busy_time_and_waiting_for_disks_is_not() {
        let read = |text| Ticks::parse(text).expect("a cpu line");
        let before = read("cpu  100 0 100 700 50 0 0 50 9 9\ncpu0 1 2 3\n");
        let after = read("cpu  120 0 110 750 60 0 0 60 9 9\n");
        let load = after.since(before);
        assert!((load.busy_percent - 40.0).abs() < 1e-9, "{load:?}");
        assert!((load.steal_percent - 10.0).abs() < 1e-9, "{load:?}");
        assert_eq!(Ticks::parse("intr 5"), None);
    }

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0";
        assert_eq!(used_ticks(stat), Some(42));
        assert!(cpu_seconds(std::process::id()).is_ok() && resident_bytes().is_ok());
    }
}
