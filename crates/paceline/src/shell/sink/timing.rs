//! Delivery by time: the last step before the application.

mod fresh;
mod group;
mod lateness;
mod ordered;
mod paced;
mod staged;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use fresh::Fresh;
pub(crate) use group::Group;
pub(crate) use staged::Staged;

use crate::shell::pacer::{self, Wake};
use crate::time::Clock;
use paceline_proto::{RawSample, Timestamp};
use paceline_sched::Instant;
use paceline_time::TimeBounds;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, Weak};

/// Returns the capture time as an interval; `None` if the error of the publisher's clock is unknown.
fn captured(sample: &RawSample) -> Option<TimeBounds> {
    let Timestamp { nanos, error } = sample.captured;
    (error != Timestamp::UNKNOWN_ERROR).then(|| TimeBounds::of_stamp(nanos, error))
}

/// The choice of a subscription.
pub(crate) enum Method {
    /// Commands within an age limit.
    Fresh(Fresh),
    /// Samples that wait for their release.
    Staged(Staged),
}

/// The delivery by time of one subscription.
pub(crate) struct Timing {
    /// The clock of the node.
    clock: Clock,
    pub(super) method: Method,
    /// The earliest wake-up that is scheduled, in nanoseconds.
    scheduled: AtomicU64,
    sink: OnceLock<Weak<dyn Wake>>,
}

impl Timing {
    pub(crate) const fn new(method: Method, clock: Clock) -> Self {
        Self { clock, method, scheduled: AtomicU64::new(u64::MAX), sink: OnceLock::new() }
    }

    /// Returns the capture time of a sample and the time `now`, if the errors of both clocks are known.
    pub(super) fn clocks(
        &self,
        now: Instant,
        sample: &RawSample,
    ) -> Option<(TimeBounds, TimeBounds)> {
        captured(sample).zip(self.clock.bounds_at(now))
    }

    /// Returns the interval of UTC that contains `now`, if the error of the clock is known.
    pub(super) fn utc(&self, now: Instant) -> Option<TimeBounds> {
        self.clock.bounds_at(now)
    }

    /// Sets the sink that is woken.
    pub(super) fn bind(&self, sink: Weak<dyn Wake>) {
        let _ = self.sink.set(sink);
    }

    /// Returns true if samples wait for their release.
    pub(super) const fn staged(&self) -> Option<&Staged> {
        match &self.method {
            Method::Staged(staged) => Some(staged),
            Method::Fresh(_) => None,
        }
    }

    /// Returns the age limit of commands.
    pub(crate) const fn fresh(&self) -> Option<&Fresh> {
        match &self.method {
            Method::Fresh(fresh) => Some(fresh),
            Method::Staged(_) => None,
        }
    }

    /// Schedules a wake-up, unless an earlier one is scheduled.
    pub(super) fn schedule(&self, at: Option<Instant>) {
        let (Some(at), Some(sink)) = (at, self.sink.get()) else { return };
        if self.scheduled.fetch_min(at.as_nanos(), Ordering::AcqRel) > at.as_nanos() {
            pacer::wake_at(at, self.staged().is_some(), sink);
        }
    }

    /// Notes that the scheduled wake-up has come.
    pub(super) fn woken(&self) {
        self.scheduled.store(u64::MAX, Ordering::Release);
    }
}
