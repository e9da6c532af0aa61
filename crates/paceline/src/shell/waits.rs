//! The time for which the threads of this process wait for a processor, as the kernel counts it.

use crate::status::ProcessorWait;
use paceline_sched::Instant;
use std::collections::BTreeMap;

/// The most threads that are read.
const THREADS_MAX: usize = 64;

/// The waiting times at the last reading.
#[derive(Debug, Default)]
pub(crate) struct ProcessorWaits {
    at: Instant,
    /// Nanoseconds by thread.
    threads: BTreeMap<u32, u64>,
    /// The result of the last two readings.
    pub(crate) longest: Option<ProcessorWait>,
}

impl ProcessorWaits {
    /// Reads the waiting times of all threads of this process.
    pub(crate) fn read(&mut self, now: Instant) {
        self.handle_reading(now, threads());
    }

    fn handle_reading(&mut self, now: Instant, threads: BTreeMap<u32, u64>) {
        let over = now.since(self.at).as_nanos();
        let waited = threads.iter().filter_map(|(thread, nanos)| {
            let before = self.threads.get(thread)?;
            let micros = u128::from(nanos.saturating_sub(*before)) * 1_000_000;
            micros.checked_div(u128::from(over))
        });
        let longest = waited.max().map(|it| u64::try_from(it).unwrap_or(u64::MAX));
        self.longest = longest.map(|longest_us_per_s| ProcessorWait { longest_us_per_s });
        (self.at, self.threads) = (now, threads);
    }
}

/// Returns the nanoseconds for which each thread of this process has waited; empty if the kernel does not count them.
fn threads() -> BTreeMap<u32, u64> {
    let entries = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let waited = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path().join("schedstat")).ok()?;
        let nanos = text.split(' ').nth(1)?.trim().parse().ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, nanos))
    };
    entries.take(THREADS_MAX).filter_map(waited).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_waited_longest_counts() {
        let mut waits = ProcessorWaits::default();
        waits.handle_reading(Instant::from_millis(5_000), [(1, 7_000_000), (2, 0)].into());
        assert_eq!(waits.longest, None);
        let next = [(1, 9_000_000), (2, 300_000_000), (3, 900_000_000)].into();
        waits.handle_reading(Instant::from_millis(7_000), next);
        assert_eq!(waits.longest, Some(ProcessorWait { longest_us_per_s: 150_000 }));
        assert!(waits.longest.is_some_and(|longest| longest.is_much()));
    }
}
