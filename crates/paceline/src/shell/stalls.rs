//! The times for which this process did not run: it was stopped, or the host had no processor for it.
//!
//! A thread that wakes up long after the end of its sleep shows such a time. Only the part after that end is certain, so all
//! times here are at least so long.

use super::clock;
use super::lock;
use paceline_sched::{Duration, Instant};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Shorter times are not noted: a thread may also need them for its own iteration.
const NOTED_MIN: Duration = Duration::from_millis(5);
/// The number of times that are kept.
const KEPT: usize = 16;

/// The threads of all nodes of this process.
static SLEEPS: Mutex<Vec<Weak<Sleep>>> = Mutex::new(Vec::new());
/// The newest times, which do not overlap.
static STALLS: Mutex<Stalls> = Mutex::new(Stalls(Vec::new()));
/// The end of the newest one, in nanoseconds.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// The sleep of one thread.
#[derive(Debug, Default)]
pub(super) struct Sleep {
    /// Its end, in nanoseconds; 0 while the thread runs.
    wakes: AtomicU64,
}

impl Sleep {
    /// Returns the state of a new thread, whose stalls are noticed until it is dropped.
    pub(super) fn of_new_thread() -> Arc<Self> {
        let sleep = Arc::<Self>::default();
        let mut sleeps = lock(&SLEEPS);
        sleeps.retain(|sleep| sleep.strong_count() > 0);
        sleeps.push(Arc::downgrade(&sleep));
        sleep
    }

    /// Records the begin of a sleep until `until`.
    pub(super) fn begin(&self, until: Instant) {
        self.wakes.store(until.as_nanos(), Ordering::Relaxed);
    }

    /// Records that the thread runs.
    pub(super) fn end(&self, now: Instant) {
        if let Some(since) = self.is_over_since(now) {
            note(since, now);
        }
        self.wakes.store(0, Ordering::Relaxed);
    }

    /// Returns the end of the sleep if the thread should have run since then for a noticeable time.
    fn is_over_since(&self, now: Instant) -> Option<Instant> {
        let wakes = Instant::from_nanos(self.wakes.load(Ordering::Relaxed));
        (wakes > Instant::ZERO && now.since(wakes) > NOTED_MIN).then_some(wakes)
    }
}

/// Notes that a thread should have run in this time.
fn note(from: Instant, to: Instant) {
    lock(&STALLS).add(from, to);
    ENDED.fetch_max(to.as_nanos(), Ordering::Relaxed);
}

/// Returns the part of a time for which this process certainly did not run. `to` is about now.
pub(super) fn within(from: Instant, to: Instant) -> Duration {
    // The threads of a process that continues run in any order, so some may still have to wake up.
    let now = clock::now();
    let late = {
        let sleeps = lock(&SLEEPS);
        let late = sleeps.iter().filter_map(|sleep| sleep.upgrade()?.is_over_since(now));
        late.min()
    };
    if let Some(since) = late {
        note(since, now);
    }
    if ENDED.load(Ordering::Relaxed) <= from.as_nanos() {
        return Duration::ZERO;
    }
    lock(&STALLS).within(from, to)
}

/// Times that do not overlap.
struct Stalls(Vec<(Instant, Instant)>);

impl Stalls {
    fn add(&mut self, mut from: Instant, mut to: Instant) {
        self.0.retain(|(begun, ended)| {
            let overlaps = *begun <= to && from <= *ended;
            if overlaps {
                (from, to) = (from.min(*begun), to.max(*ended));
            }
            !overlaps
        });
        if self.0.len() >= KEPT {
            self.0.remove(0);
        }
        self.0.push((from, to));
    }

    fn within(&self, from: Instant, to: Instant) -> Duration {
        let parts = self.0.iter().map(|(begun, ended)| (*ended).min(to).since((*begun).max(from)));
        parts.fold(Duration::ZERO, Duration::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_times_count_once() {
        let (mut stalls, at) = (Stalls(Vec::new()), Instant::from_millis);
        stalls.add(at(100), at(130));
        stalls.add(at(200), at(300));
        stalls.add(at(120), at(150));
        assert_eq!(stalls.within(at(0), at(1_000)), Duration::from_millis(150));
        assert_eq!(stalls.within(at(140), at(210)), Duration::from_millis(20));
        assert_eq!(stalls.within(at(301), at(400)), Duration::ZERO);
        (0..100).for_each(|step| stalls.add(at(1_000 + 10 * step), at(1_005 + 10 * step)));
        assert_eq!(stalls.0.len(), KEPT);
        assert_eq!(stalls.within(at(0), at(900)), Duration::ZERO, "the oldest are forgotten");
    }
}
