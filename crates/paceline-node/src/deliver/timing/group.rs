//! Groups of subscriptions that release their samples at the same instant.

use super::super::report::SyncReport;
use super::lateness::PacedCounts;
use paceline_proto::{NodeId, RawSample};
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::playout::{Origins, until_release};
use std::sync::{Arc, Mutex, PoisonError};

/// A release that would come so little too early is not delayed.
const NEAR: Duration = Duration::from_micros(2);

/// A group: its members in a process share the delay and the origins of publishing nodes, so it has the only lock of a
/// delivery.
#[derive(Debug)]
pub struct SyncGroup {
    name: String,
    delay: Duration,
    origins: Mutex<Origins<NodeId>>,
}

impl SyncGroup {
    /// Returns a group without members, which release samples `delay` after their capture.
    #[must_use]
    pub fn new(name: &str, delay: Duration) -> Self {
        Self { name: name.to_owned(), delay, origins: Mutex::default() }
    }

    /// Returns the time from capture to release.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.delay
    }
}

/// The release of one member's samples.
#[derive(Debug)]
pub(super) struct Member {
    group: Arc<SyncGroup>,
    /// Samples released by clocks with known errors.
    by_clocks: u64,
    /// The largest error of a publisher's clock among samples released by clocks, in nanoseconds.
    publisher_error: u64,
}

/// The release time of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReleaseTime {
    pub(super) at: Instant,
    /// The capture time, if clocks determine the release.
    pub(super) captured: Option<TimeBounds>,
}

impl Member {
    pub(super) const fn new(group: Arc<SyncGroup>) -> Self {
        Self { group, by_clocks: 0, publisher_error: 0 }
    }

    /// Returns the name and the delay.
    pub(super) fn setting(&self) -> String {
        format!("{}={:?}", self.group.name, std::time::Duration::from(self.group.delay))
    }

    /// Returns the release time of a sample; `clocks` are the capture time and the present time, if their errors are
    /// known.
    pub(super) fn release(
        &mut self,
        now: Instant,
        sample: &RawSample,
        publisher: NodeId,
        clocks: Option<(TimeBounds, TimeBounds)>,
    ) -> ReleaseTime {
        let delay = self.group.delay;
        let by_clocks = clocks.and_then(|(captured, utc)| {
            let left = until_release(captured, delay.as_nanos(), utc)?;
            let at = Instant::from_nanos(now.as_nanos().saturating_add_signed(left));
            Some(ReleaseTime { at, captured: Some(captured) })
        });
        by_clocks.unwrap_or_else(|| {
            let mut origins = self.group.origins.lock().unwrap_or_else(PoisonError::into_inner);
            let (published, stamp) = (sample.published_at, sample.captured.nanos);
            let at = origins.release(publisher, published, stamp, delay);
            ReleaseTime { at, captured: None }
        })
    }

    /// Returns the release time of a sample whose time has come, if the clock has been corrected meanwhile and it is
    /// later.
    pub(super) fn later(
        &self,
        now: Instant,
        captured: TimeBounds,
        utc: TimeBounds,
    ) -> Option<Instant> {
        let left = until_release(captured, self.group.delay.as_nanos(), utc)?;
        let left = Duration::from_nanos(u64::try_from(left).ok()?);
        (left > NEAR).then(|| now + left)
    }

    /// Notes the capture time of a release.
    pub(super) fn count(&mut self, captured: Option<TimeBounds>) {
        if let Some(captured) = captured {
            self.by_clocks += 1;
            let error = (captured.latest - captured.earliest) / 2;
            self.publisher_error = self.publisher_error.max(error);
        }
    }

    /// Returns the report; `utc` is the present time, if the error of the clock is known.
    pub(super) fn report(
        &self,
        counts: PacedCounts,
        wakeup: std::time::Duration,
        utc: Option<TimeBounds>,
    ) -> SyncReport {
        let nanos = std::time::Duration::from_nanos;
        let error = utc.map(|utc| nanos((utc.latest - utc.earliest) / 2));
        let clocks = error.filter(|_| self.by_clocks > 0);
        SyncReport {
            group: self.group.name.clone(),
            delay: self.group.delay.into(),
            released: counts.released,
            late: counts.late,
            early: counts.early,
            by_clocks: self.by_clocks,
            clock_error: error,
            publisher_error: (self.by_clocks > 0).then(|| nanos(self.publisher_error)),
            wakeup,
            bound: clocks.map(|error| error + wakeup),
        }
    }
}
