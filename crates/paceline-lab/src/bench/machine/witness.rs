//! A thread that only sleeps. Its late wake-ups show how long the machine delayed every thread.

use anyhow::{Context as _, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The duration of each sleep: short enough to notice the delays that matter to a deadline, and too
/// long to be a load itself.
const NAP: Duration = Duration::from_millis(2);

/// The sleeping thread; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Witness(Arc<Seen>);

#[derive(Debug, Default)]
struct Seen {
    longest_nanos: AtomicU64,
    over: AtomicBool,
}

impl Witness {
    pub(super) fn start() -> Result<Self> {
        let seen = Arc::new(Seen::default());
        let it = Arc::clone(&seen);
        let watch = move || {
            while !it.over.load(Ordering::Relaxed) {
                it.nap();
            }
        };
        thread::Builder::new()
            .name("witness".to_owned())
            .spawn(watch)
            .context("cannot start the thread that watches the machine")?;
        Ok(Self(seen))
    }

    /// Returns the longest delay of a wake-up.
    pub(super) fn longest(&self) -> Duration {
        Duration::from_nanos(self.0.longest_nanos.load(Ordering::Relaxed))
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

impl Seen {
    fn nap(&self) {
        let asleep = Instant::now();
        thread::sleep(NAP);
        let over = asleep.elapsed().saturating_sub(NAP);
        let nanos = u64::try_from(over.as_nanos()).unwrap_or(u64::MAX);
        self.longest_nanos.fetch_max(nanos, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_delay_of_the_thread_is_reported() {
        let seen = Seen::default();
        seen.nap();
        assert!(seen.longest_nanos.load(Ordering::Relaxed) > 0, "nothing sleeps to the nanosecond");
        let witness = Witness::start().expect("a thread");
        let seen = Arc::clone(&witness.0);
        while witness.longest().is_zero() {
            thread::yield_now();
        }
        drop(witness);
        while Arc::strong_count(&seen) > 1 {
            thread::yield_now();
        }
    }
}
