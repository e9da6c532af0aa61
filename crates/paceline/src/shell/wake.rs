//! A waker for a thread that sleeps until a given instant. Waking a running thread costs one atomic
//! load.

use paceline_sched::Instant;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::thread::Thread;

/// Wakes one thread.
#[derive(Debug, Default)]
pub(crate) struct Waker {
    asleep: AtomicBool,
    /// The end of its sleep in nanoseconds.
    until: AtomicU64,
    thread: OnceLock<Thread>,
}

impl Waker {
    /// Registers the calling thread as the one to wake.
    pub(crate) fn adopt(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    /// Wakes the thread if it sleeps. Writes before this call are visible to it.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed)
            && self.asleep.swap(false, Ordering::AcqRel)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Wakes the thread if it sleeps beyond `at`. Writes before this call are visible to it.
    pub(crate) fn wake_by(&self, at: Instant) {
        fence(Ordering::SeqCst);
        if at.as_nanos() < self.until.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Sleeps until `until` or a wake-up, unless `busy` returns true.
    pub(crate) fn sleep(&self, now: Instant, until: Instant, busy: impl FnOnce() -> bool) {
        self.until.store(until.as_nanos(), Ordering::Relaxed);
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if until > now && !busy() {
            std::thread::park_timeout(until.since(now).into());
        }
        self.asleep.store(false, Ordering::Relaxed);
    }
}

/// Reduces the timer slack of this thread from 50 µs to 1 ns.
pub(crate) fn exact_timers() {
    let nanosecond = std::num::NonZeroU64::new(1);
    if let Err(error) = rustix::thread::set_current_timer_slack(nanosecond) {
        tracing::debug!("cannot set the timer slack, so timers stay 50 µs late: {error}");
    }
}
