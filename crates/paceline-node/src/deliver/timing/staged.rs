//! Samples that wait for their release: by the order of their times, with the publisher's spacing, or together with a
//! group.

use super::super::queue::Unread;
use super::super::report::{SpacingReport, SyncReport, TimeBuffering};
use super::group::{Member, SyncGroup};
use super::ordered::Ordered;
use super::paced::{Paced, Timetable};
use super::waiting::Waiting;
use crate::status::TimedStatus;
use paceline_proto::RawSample;
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::order::BufferLimitError;
use paceline_time::spacing::Depth;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The release of a subscription's samples.
#[derive(Debug)]
enum Discipline {
    /// The order of times.
    Ordered(Box<Ordered>),
    /// Release times.
    Paced(Box<Paced>),
}

/// The samples of a subscription that wait.
#[derive(Debug)]
pub struct Staged(Discipline);

impl Staged {
    /// Returns a time buffer.
    ///
    /// # Errors
    /// The first limit that is out of range.
    pub fn ordered(order: TimeBuffering) -> Result<Self, BufferLimitError> {
        let ordered = Ordered::new(order)?;
        Ok(Self(Discipline::Ordered(Box::new(ordered))))
    }

    /// Returns the spacing of capture times.
    #[must_use]
    pub fn spaced(depth: Depth) -> Self {
        Self::paced(Timetable::Spaced(depth, BTreeMap::new()))
    }

    /// Returns a constant delay after publish, which may vary by `jitter`.
    #[must_use]
    pub fn delayed(delay: Duration, jitter: Duration) -> Self {
        Self::paced(Timetable::Bound { delay, jitter, streams: BTreeMap::new() })
    }

    /// Returns the release with a group.
    #[must_use]
    pub fn together(group: Arc<SyncGroup>) -> Self {
        Self::paced(Timetable::Together(Member::new(group)))
    }

    fn paced(timetable: Timetable) -> Self {
        Self(Discipline::Paced(Box::new(Paced::new(timetable))))
    }

    /// Adds a sample; `sample` has its times, but no payload, and `clocks` are the capture time and the present time, if
    /// their errors are known. Returns false if it is dropped.
    pub(in crate::deliver) fn handle(
        &mut self,
        now: Instant,
        sample: &RawSample,
        clocks: Option<(TimeBounds, TimeBounds)>,
        unread: Unread,
    ) -> bool {
        let waiting = Waiting::new(unread);
        match &mut self.0 {
            Discipline::Ordered(ordered) => ordered.handle(now, sample, clocks, waiting),
            Discipline::Paced(paced) => {
                paced.handle(now, sample, clocks, waiting);
                true
            }
        }
    }

    /// Adds the newest sample of a latched publisher. It leaves at once, behind the samples of its publisher that wait.
    pub(in crate::deliver) fn handle_latched(&mut self, now: Instant, unread: Unread) {
        let waiting = Waiting::new(unread);
        match &mut self.0 {
            Discipline::Ordered(ordered) => ordered.handle_latched(now, waiting),
            Discipline::Paced(paced) => paced.wait(now, waiting),
        }
    }

    /// Returns the next sample that leaves at `now`; `utc` returns the interval of UTC that contains it.
    pub(in crate::deliver) fn poll(
        &mut self,
        now: Instant,
        utc: impl Fn() -> Option<TimeBounds>,
    ) -> Option<Unread> {
        let (mut waiting, place, planned) = match &mut self.0 {
            Discipline::Ordered(ordered) => {
                let (waiting, place) = ordered.poll(now)?;
                (waiting, Some(place), ordered.hold())
            }
            Discipline::Paced(paced) => {
                let (waiting, planned) = paced.poll(now, utc)?;
                (waiting, None, planned)
            }
        };
        let unread = &mut waiting.unread;
        unread.delivery.placement = place;
        // Waiting beyond the plan was not requested.
        let waited = unread.grow_old(now);
        unread.requested = unread.requested.saturating_add(waited.min(planned.into()));
        Some(waiting.unread)
    }

    /// Returns the counters and measurements of release times; `None` for a time buffer.
    pub(in crate::deliver) fn report(&self) -> Option<SpacingReport> {
        match &self.0 {
            Discipline::Ordered(_) => None,
            Discipline::Paced(paced) => paced.report(),
        }
    }

    /// Returns the measurements of a member of a group; `utc` is the present time, if the error of the clock is known.
    pub(in crate::deliver) fn sync_report(&self, utc: Option<TimeBounds>) -> Option<SyncReport> {
        match &self.0 {
            Discipline::Ordered(_) => None,
            Discipline::Paced(paced) => paced.sync_report(utc),
        }
    }

    /// Returns the setting and the counters; `utc` is the present time, if the error of the clock is known.
    pub(in crate::deliver) fn status(&self, utc: Option<TimeBounds>) -> TimedStatus {
        match &self.0 {
            Discipline::Ordered(ordered) => ordered.status(),
            Discipline::Paced(paced) => paced.status(utc),
        }
    }

    /// Returns the time at which the next sample leaves.
    pub(in crate::deliver) fn next_release(&self) -> Option<Instant> {
        match &self.0 {
            Discipline::Ordered(ordered) => ordered.next_release(),
            Discipline::Paced(paced) => paced.next_release(),
        }
    }
}
