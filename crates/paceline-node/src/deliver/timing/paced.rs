//! Samples with a release time: by the publisher's spacing, a constant delay, or a group.

use super::super::report::{SpacingReport, SyncReport};
use super::group::{Member, ReleaseTime};
use super::lateness::{Lateness, PacedCounts};
use super::waiting::{PUBLISHERS_MAX, Waiting};
use crate::Sample;
use crate::status::{TimedMethod, TimedStatus};
use paceline_proto::{PublisherId, RawSample};
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::spacing::{Anchor, Depth, Jitter, Spacing};
use std::collections::BTreeMap;

/// The limits of samples and bytes that wait for their release times. Beyond them the earliest leave early.
const WAITING_MAX: usize = 4_096;
const WAITING_BYTES_MAX: usize = 64 << 20;
/// The samples with a release time.
#[derive(Debug)]
pub(super) struct Paced {
    timetable: Timetable,
    waiting: BTreeMap<(Instant, u64), Waiting>,
    /// The newest sample of each publisher that has samples here.
    newest: BTreeMap<PublisherId, (Instant, u64)>,
    bytes: usize,
    number: u64,
    counts: PacedCounts,
    lateness: Lateness,
}

/// The origin of release times.
#[derive(Debug)]
pub(super) enum Timetable {
    /// The spacing of each publisher's capture times.
    Spaced(Depth, BTreeMap<PublisherId, Stream>),
    /// This time after publish.
    Bound { delay: Duration, jitter: Duration, streams: BTreeMap<PublisherId, Stream> },
    /// The capture time plus the delay of a group.
    Together(Member),
}

/// The spacing of one publisher, and the jitter at its arrival and its release.
#[derive(Debug)]
pub(super) struct Stream {
    spacing: Spacing,
    arrivals: Jitter,
    releases: Jitter,
}

impl Stream {
    /// Returns the stream of a publisher.
    fn of(
        streams: &mut BTreeMap<PublisherId, Self>,
        publisher: PublisherId,
        depth: Depth,
    ) -> &mut Self {
        if streams.len() >= PUBLISHERS_MAX && !streams.contains_key(&publisher) {
            streams.clear();
        }
        streams.entry(publisher).or_insert_with(|| Self {
            spacing: Spacing::new(Anchor::Adaptive, depth),
            arrivals: Jitter::default(),
            releases: Jitter::default(),
        })
    }
}

impl Paced {
    pub(super) fn new(timetable: Timetable) -> Self {
        Self {
            timetable,
            waiting: BTreeMap::new(),
            newest: BTreeMap::new(),
            bytes: 0,
            number: 0,
            counts: PacedCounts::default(),
            lateness: Lateness::default(),
        }
    }

    pub(super) fn handle(
        &mut self,
        now: Instant,
        sample: &RawSample,
        clocks: Option<(TimeBounds, TimeBounds)>,
        mut waiting: Waiting,
    ) {
        let publisher = waiting.unread.delivery.publisher;
        let stamp = sample.captured.nanos;
        let (at, late) = match &mut self.timetable {
            Timetable::Spaced(depth, streams) => {
                let stream = Stream::of(streams, publisher, *depth);
                let release = stream.spacing.handle(now, stamp);
                self.counts.jumps += u64::from(release.jumped);
                stream.arrivals.add(now, stamp);
                (release.at, !release.late.is_zero())
            }
            Timetable::Bound { delay, jitter, streams } => {
                let at = sample.published_at + *delay;
                if sample.doubt < RawSample::UNPROVEN {
                    self.counts.doubt = self.counts.doubt.max(Some(sample.doubt));
                    waiting.slack = jitter.saturating_sub(sample.doubt);
                } else {
                    waiting.slack = *jitter;
                }
                Stream::of(streams, publisher, Depth::default()).arrivals.add(now, stamp);
                (at.max(now), at < now)
            }
            Timetable::Together(member) => {
                let ReleaseTime { at, captured } =
                    member.release(now, sample, publisher.node, clocks);
                waiting.captured = captured;
                (at.max(now), at < now)
            }
        };
        waiting.late = late;
        self.counts.late += u64::from(late);
        self.wait(at, waiting);
    }

    /// Adds a sample that leaves at `at`, but not before the earlier ones of its publisher, whatever their times.
    pub(super) fn wait(&mut self, at: Instant, waiting: Waiting) {
        let Sample { payload, publisher, .. } = &waiting.unread.delivery;
        let before = self.newest.get(publisher).map(|(at, _)| *at);
        self.bytes += payload.len();
        self.insert((before.map_or(at, |before| at.max(before)), self.number), waiting);
        self.number += 1;
    }

    fn insert(&mut self, key: (Instant, u64), waiting: Waiting) {
        let newest = self.newest.entry(waiting.unread.delivery.publisher).or_insert(key);
        if newest.1 <= key.1 {
            *newest = key;
        }
        self.waiting.insert(key, waiting);
    }

    fn pop(&mut self) -> Option<((Instant, u64), Waiting)> {
        let (key, waiting) = self.waiting.pop_first()?;
        let publisher = &waiting.unread.delivery.publisher;
        if self.newest.get(publisher).is_some_and(|newest| newest.1 == key.1) {
            self.newest.remove(publisher);
        }
        Some((key, waiting))
    }

    /// Returns the next sample that leaves at `now`, and the time for which it should have waited.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        utc: impl Fn() -> Option<TimeBounds>,
    ) -> Option<(Waiting, Duration)> {
        loop {
            let ((at, _), waiting) = self.waiting.first_key_value()?;
            let full = self.waiting.len() > WAITING_MAX || self.bytes > WAITING_BYTES_MAX;
            if *at > now && !full {
                return None;
            }
            let follows_clock = !full && !waiting.late;
            let later = if follows_clock { self.later(now, waiting, &utc) } else { None };
            let ((at, number), waiting) = self.pop()?;
            if let Some(later) = later {
                self.insert((later, number), waiting);
                continue;
            }
            self.count(now, at, &waiting);
            let planned = at.since(waiting.unread.since);
            return Some((waiting, planned));
        }
    }

    /// Returns the time of the next release.
    pub(super) fn next_release(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Returns the new release time of the first sample, if the clock has been corrected and it is later.
    fn later(
        &self,
        now: Instant,
        first: &Waiting,
        utc: impl Fn() -> Option<TimeBounds>,
    ) -> Option<Instant> {
        let Timetable::Together(member) = &self.timetable else { return None };
        let later = member.later(now, first.captured?, utc()?)?;
        let publisher = first.unread.delivery.publisher;
        for ((at, _), other) in self.waiting.range(..=(later, u64::MAX)).skip(1) {
            // A sample whose time does not follow the clock may not pass it.
            other.captured?;
            // Nor may the next one of its publisher.
            if other.unread.delivery.publisher == publisher {
                return Some(*at).filter(|at| *at > now);
            }
        }
        Some(later)
    }

    /// Counts a sample that leaves at `now`, and whose time was `at`.
    fn count(&mut self, now: Instant, at: Instant, waiting: &Waiting) {
        self.counts.early += u64::from(at > now);
        let Sample { payload, publisher, captured, .. } = &waiting.unread.delivery;
        self.bytes -= payload.len();
        let too_late = now.since(at);
        match &mut self.timetable {
            Timetable::Spaced(_, streams) => {
                if let Some(stream) = streams.get_mut(publisher) {
                    stream.releases.add(now, captured.nanos);
                }
            }
            Timetable::Bound { streams, .. } => {
                if let Some(stream) = streams.get_mut(publisher) {
                    stream.releases.add(now, captured.nanos);
                }
                let beyond = waiting.late || at > now || too_late > waiting.slack;
                self.counts.beyond += u64::from(beyond);
            }
            Timetable::Together(member) => member.count(waiting.captured),
        }
        if !waiting.late && at <= now {
            self.lateness.add(too_late);
        }
        self.counts.released += 1;
    }

    /// Returns the counters, and the largest jitter and added delay of all publishers; `None` for a group.
    pub(super) fn report(&self) -> Option<SpacingReport> {
        let PacedCounts { released, late, early, jumps, beyond, doubt } = self.counts;
        let (streams, bound) = match &self.timetable {
            Timetable::Spaced(_, streams) => (streams, None),
            Timetable::Bound { delay, streams, .. } => (streams, Some(*delay)),
            Timetable::Together(_) => return None,
        };
        let max =
            |of: fn(&Stream) -> Duration| streams.values().map(of).max().unwrap_or_default().into();
        Some(SpacingReport {
            released,
            late,
            early,
            jumps,
            jitter_in: max(|stream| stream.arrivals.value()),
            jitter_out: max(|stream| stream.releases.value()),
            added: bound.map_or_else(|| max(|stream| stream.spacing.added()), Into::into),
            wakeup: self.lateness.p99(),
            beyond,
            doubt: doubt.map(Into::into),
        })
    }

    pub(super) fn sync_report(&self, utc: Option<TimeBounds>) -> Option<SyncReport> {
        let Timetable::Together(member) = &self.timetable else { return None };
        Some(member.report(self.counts, self.lateness.p99(), utc))
    }

    pub(super) fn status(&self, utc: Option<TimeBounds>) -> TimedStatus {
        let text = |time: Duration| format!("{:?}", std::time::Duration::from(time));
        let (method, setting) = match &self.timetable {
            Timetable::Spaced(depth, _) => (TimedMethod::Spacing, text(depth.max)),
            Timetable::Bound { jitter, .. } => (TimedMethod::MaxJitter, text(*jitter)),
            Timetable::Together(member) => (TimedMethod::SyncGroup, member.setting()),
        };
        let PacedCounts { released, late, early, jumps, beyond, doubt } = self.counts;
        let wakeup = self.lateness.p99();
        let status = TimedStatus {
            released,
            late,
            early,
            jumps,
            beyond,
            wakeup: (released > 0).then_some(wakeup),
            ..TimedStatus::new(method, setting)
        };
        if let Some(SyncReport { delay, bound, .. }) = self.sync_report(utc) {
            return TimedStatus { added: Some(delay), bound, ..status };
        }
        let Some(report) = self.report() else { return status };
        TimedStatus {
            jitter_in: Some(report.jitter_in),
            jitter_out: Some(report.jitter_out),
            added: Some(report.added),
            bound: doubt.map(|doubt| wakeup + std::time::Duration::from(doubt)),
            ..status
        }
    }
}
