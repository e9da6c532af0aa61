//! The clock and the wake-ups of a delivery by time.

use crate::delivery::Otherwise;
use crate::shell::pacer::{self, Wake};
use crate::time::Clock;
use paceline_sched::Instant;
use paceline_time::TimeBounds;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, Weak};

/// The wake-ups of one subscription by the pacer.
pub(super) struct Timer {
    clock: Clock,
    /// Samples wait for their release, as opposed to commands within an age limit.
    pub(super) is_staged: bool,
    /// The safe action of commands.
    pub(super) otherwise: Otherwise,
    /// The earliest wake-up that is scheduled, in nanoseconds.
    scheduled: AtomicU64,
    sink: OnceLock<Weak<dyn Wake>>,
}

impl Timer {
    pub(super) fn new(clock: Clock, is_staged: bool, otherwise: Otherwise) -> Self {
        let (scheduled, sink) = (AtomicU64::new(u64::MAX), OnceLock::new());
        Self { clock, is_staged, otherwise, scheduled, sink }
    }

    /// Returns the interval of UTC that contains `now`, if the error of the clock is known.
    pub(super) fn utc(&self, now: Instant) -> Option<TimeBounds> {
        self.clock.bounds_at(now)
    }

    /// Sets the sink that is woken.
    pub(super) fn bind(&self, sink: Weak<dyn Wake>) {
        let _ = self.sink.set(sink);
    }

    /// Schedules a wake-up, unless an earlier one is scheduled.
    pub(super) fn schedule(&self, at: Option<Instant>) {
        let (Some(at), Some(sink)) = (at, self.sink.get()) else { return };
        if self.scheduled.fetch_min(at.as_nanos(), Ordering::AcqRel) > at.as_nanos() {
            pacer::wake_at(at, self.is_staged, sink);
        }
    }

    /// Notes that the scheduled wake-up has come.
    pub(super) fn woken(&self) {
        self.scheduled.store(u64::MAX, Ordering::Release);
    }
}
