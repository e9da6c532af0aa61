//! Samples that wait for their release: by the order of their times, with the publisher's spacing, or together with a
//! group.

use super::group::{Group, Member};
use super::ordered::Ordered;
use super::paced::{Paced, Timetable};
use super::waiting::Waiting;
use crate::delivery::{SpacingReport, SyncReport, TimeBuffering, TimedStatus};
use crate::sample::Sample;
use crate::shell::lock;
use crate::shell::sink::queue::Unread;
use paceline_proto::RawSample;
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::order::BufferLimitError;
use paceline_time::spacing::Depth;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The release of a subscription's samples.
enum Discipline {
    /// The order of times.
    Ordered(Box<Ordered>),
    /// Release times.
    Paced(Box<Paced>),
}

/// The samples of a subscription that wait.
pub(crate) struct Staged(Mutex<Discipline>);

impl Staged {
    /// Returns a time buffer.
    pub(crate) fn ordered(order: TimeBuffering) -> Result<Self, BufferLimitError> {
        let ordered = Ordered::new(order)?;
        Ok(Self(Mutex::new(Discipline::Ordered(Box::new(ordered)))))
    }

    /// Returns the spacing of capture times.
    pub(crate) fn spaced(depth: Depth) -> Self {
        Self::paced(Timetable::Spaced(depth, BTreeMap::new()))
    }

    /// Returns a constant delay after publish, which may vary by `jitter`.
    pub(crate) fn delayed(delay: Duration, jitter: Duration) -> Self {
        Self::paced(Timetable::Bound { delay, jitter, streams: BTreeMap::new() })
    }

    /// Returns the release with a group.
    pub(crate) fn together(group: Arc<Group>) -> Self {
        Self::paced(Timetable::Together(Member::new(group)))
    }

    fn paced(timetable: Timetable) -> Self {
        let paced = Paced::new(timetable);
        Self(Mutex::new(Discipline::Paced(Box::new(paced))))
    }

    /// Adds a sample; `sample` has its times, but no payload, and `clocks` are the capture time and the present time, if
    /// their errors are known. Returns false if it is dropped.
    pub(in crate::shell::sink) fn handle(
        &self,
        now: Instant,
        sample: &RawSample,
        clocks: Option<(TimeBounds, TimeBounds)>,
        unread: Unread,
    ) -> bool {
        let waiting = Waiting::new(now, unread);
        match &mut *lock(&self.0) {
            Discipline::Ordered(ordered) => ordered.handle(now, sample, clocks, waiting),
            Discipline::Paced(paced) => {
                paced.handle(now, sample, clocks, waiting);
                true
            }
        }
    }

    /// Adds the newest sample of a latched publisher. It leaves at once, behind those of its publisher that wait.
    pub(in crate::shell::sink) fn handle_latched(&self, now: Instant, unread: Unread) {
        let waiting = Waiting::new(now, unread);
        match &mut *lock(&self.0) {
            Discipline::Ordered(ordered) => ordered.handle_latched(now, waiting),
            Discipline::Paced(paced) => paced.wait(now, waiting),
        }
    }

    /// Returns the next sample that leaves at `now`; `utc` returns the interval of UTC that contains it.
    pub(in crate::shell::sink) fn poll(
        &self,
        now: Instant,
        utc: impl Fn() -> Option<TimeBounds>,
    ) -> Option<Unread> {
        let (mut waiting, place) = match &mut *lock(&self.0) {
            Discipline::Ordered(ordered) => {
                let (waiting, place) = ordered.poll(now)?;
                (waiting, Some(place))
            }
            Discipline::Paced(paced) => (paced.poll(now, utc)?, None),
        };
        let delivery: &mut Sample = &mut waiting.unread.delivery;
        delivery.placement = place;
        delivery.age += std::time::Duration::from(now.since(waiting.arrived));
        Some(waiting.unread)
    }

    /// Returns the counters and measurements of release times; `None` for a time buffer.
    pub(crate) fn report(&self) -> Option<SpacingReport> {
        match &*lock(&self.0) {
            Discipline::Ordered(_) => None,
            Discipline::Paced(paced) => paced.report(),
        }
    }

    /// Returns the measurements of a member of a group; `utc` is the present time, if the error of the clock is known.
    pub(crate) fn sync_report(&self, utc: Option<TimeBounds>) -> Option<SyncReport> {
        match &*lock(&self.0) {
            Discipline::Ordered(_) => None,
            Discipline::Paced(paced) => paced.sync_report(utc),
        }
    }

    /// Returns the setting and the counters; `utc` is the present time, if the error of the clock is known.
    pub(in crate::shell::sink) fn status(&self, utc: Option<TimeBounds>) -> TimedStatus {
        match &*lock(&self.0) {
            Discipline::Ordered(ordered) => ordered.status(),
            Discipline::Paced(paced) => paced.status(utc),
        }
    }

    /// Returns the time at which the next sample leaves.
    pub(in crate::shell::sink) fn next_release(&self) -> Option<Instant> {
        match &*lock(&self.0) {
            Discipline::Ordered(ordered) => ordered.next_release(),
            Discipline::Paced(paced) => paced.next_release(),
        }
    }
}
