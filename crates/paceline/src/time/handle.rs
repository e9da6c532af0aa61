//! The handle of a node's clock.

use super::host;
use paceline_node::status::ClockReport;
use paceline_proto::{NodeId, Timestamp};
use paceline_sched::Instant;
use paceline_time::clock::page::ClockPage;
use paceline_time::clock::service::ServerFacts;
use paceline_time::{ClockReading, ClockStatus, SharedClock, TimeBounds, TimeOrder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The shortest and the longest sleep of [`Clock::wait_until_past`].
const SLEEP: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(100));

/// The state that a clock's thread writes and its handles read.
#[derive(Debug, Default)]
pub(crate) struct ClockState {
    shared: SharedClock,
    /// The clock has followed a server.
    runs: AtomicBool,
    report: Mutex<ClockReport>,
    lineage: Mutex<Option<Lineage>>,
}

/// The facts for neighbours that follow this clock.
#[derive(Clone, Debug)]
pub(crate) struct Lineage {
    pub(crate) facts: ServerFacts,
    /// The nodes from which this clock has its time, the nearest first; empty with a server of its own.
    pub(crate) nodes: Vec<NodeId>,
}

impl ClockState {
    pub(crate) fn publish(&self, page: &ClockPage) {
        self.shared.publish(page);
        let runs = page.status() != ClockStatus::Unsynchronised;
        self.runs.store(runs, Ordering::Release);
    }

    pub(crate) fn lineage(&self) -> MutexGuard<'_, Option<Lineage>> {
        self.lineage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn report(&self) -> MutexGuard<'_, ClockReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The clock of a node: a cheap handle.
///
/// Readings never run backward, except once at the first synchronisation: before that they are those of the system
/// clock, with an unknown error. See [`crate::time`] for an example.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    state: Arc<ClockState>,
}

impl Clock {
    pub(crate) const fn state(&self) -> &Arc<ClockState> {
        &self.state
    }

    /// Returns the present time, its bounds and the state of the clock.
    #[must_use]
    pub fn now(&self) -> ClockReading {
        self.state.shared.read(host::raw(), host::wall)
    }

    /// Returns the interval of UTC that contains `at`, an instant that has just passed; `None` while the error of the
    /// clock is unknown.
    pub(crate) fn bounds_at(&self, at: Instant) -> Option<TimeBounds> {
        // The thread may be interrupted at any of these lines.
        let least = host::monotonic().saturating_sub(at.as_nanos());
        let reading = self.now();
        let most = host::monotonic().saturating_sub(at.as_nanos());
        if reading.error() == u64::MAX {
            return None;
        }
        // The clocks differ by less than 1/1,000 over this time.
        let doubt = most / 1_000 + 1;
        let TimeBounds { earliest, latest } = reading.bounds;
        Some(TimeBounds {
            earliest: earliest.saturating_sub(most.saturating_add(doubt)),
            latest: latest.saturating_sub(least).saturating_add(doubt),
        })
    }

    /// Returns the time at an instant of the raw clock that has just passed.
    pub(crate) fn at(&self, raw: u64) -> ClockReading {
        self.state.shared.read(raw, host::wall)
    }

    /// Returns the present time; it is greater than that of all earlier stamps of this node.
    ///
    /// If the first synchronisation steps back, stamps advance by 1 ns each until the clock has caught up. Their bounds
    /// are those of the true time.
    #[must_use]
    pub fn stamp(&self) -> ClockReading {
        self.state.shared.stamp(host::raw(), host::wall)
    }

    /// Returns the state of the clock.
    #[must_use]
    pub fn status(&self) -> ClockStatus {
        self.now().status
    }

    /// Returns the state of the clock and of its servers; the thread of the clock writes it once per second.
    #[must_use]
    pub fn report(&self) -> ClockReport {
        let reading = self.now();
        let wall = i128::from(host::wall()) - i128::from(reading.nanos);
        let mut report = self.state.report().clone();
        report.status = reading.status;
        report.nanos = reading.nanos;
        report.error_nanos = Some(reading.error()).filter(|error| *error != u64::MAX);
        report.epoch = reading.epoch;
        report.system_offset_nanos = i64::try_from(wall).unwrap_or_default();
        report
    }

    /// Blocks until `nanos` nanoseconds since 1970 have passed with certainty: until the earliest possible present time
    /// is later. Returns false if that has not come after `timeout`, for example because the error is unknown.
    #[must_use]
    pub fn wait_until_past(&self, nanos: u64, timeout: Duration) -> bool {
        let until = std::time::Instant::now() + timeout;
        loop {
            let earliest = self.now().bounds.earliest;
            if earliest > nanos {
                return true;
            }
            let left = until.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return false;
            }
            let (least, most) = SLEEP;
            // Half of the rest: the bound becomes narrower with each answer of a server.
            let rest = Duration::from_nanos((nanos - earliest) / 2);
            std::thread::sleep(rest.clamp(least, most).min(left));
        }
    }

    /// Returns the timestamp of a sample that is published now; `None` before the first synchronisation.
    pub(crate) fn timestamp(&self) -> Option<Timestamp> {
        self.state.runs.load(Ordering::Acquire).then(|| {
            let reading = self.now();
            Timestamp { nanos: reading.nanos, error: reading.error_byte() }
        })
    }
}

/// Returns the interval that contains the true time of a timestamp.
///
/// ```
/// use paceline::Timestamp;
/// use paceline::time::{TimeOrder, bounds};
///
/// let first = bounds(Timestamp { nanos: 1_000_000_000, error: 6 });
/// assert_eq!(first.order(bounds(Timestamp { nanos: 1_000_200_000, error: 6 })), TimeOrder::Before);
/// assert_eq!(first.order(bounds(Timestamp { nanos: 1_000_100_000, error: 6 })), TimeOrder::Unknown);
/// ```
#[must_use]
pub fn bounds(timestamp: Timestamp) -> TimeBounds {
    let micros = 1_u64.checked_shl(u32::from(timestamp.error));
    match micros.and_then(|micros| micros.checked_mul(1_000)) {
        Some(error) => TimeBounds::new(timestamp.nanos, error),
        None => TimeBounds { earliest: 0, latest: u64::MAX },
    }
}

/// Returns true if `first` is before `second` for every possible error.
#[must_use]
pub fn definitely_before(first: TimeBounds, second: TimeBounds) -> bool {
    first.order(second) == TimeOrder::Before
}
