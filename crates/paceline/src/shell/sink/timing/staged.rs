//! Samples that wait for their release: by the order of their times, with the publisher's spacing, or together with a
//! group.

use super::group::{Group, Member, ReleaseTime};
use super::lateness::{Lateness, PacedCounts};
use crate::delivery::{
    OrderedBy, SpacingReport, SyncReport, TimeBuffering, TimedMethod, TimedStatus,
};
use crate::sample::Sample;
use crate::shell::lock;
use crate::shell::sink::queue::Unread;
use paceline_proto::{NodeId, PublisherId, RawSample};
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::order::{BufferLimitError, Handled, Placement, TimeBuffer, Timed, on_this_host};
use paceline_time::spacing::{Anchor, Depth, Jitter, Spacing};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The limits of samples and bytes that wait for their release times. Beyond them the earliest leave early.
const WAITING_MAX: usize = 4_096;
const WAITING_BYTES_MAX: usize = 64 << 20;
/// The limit of publishers with a state of their own; beyond it, all states start again.
const PUBLISHERS_MAX: usize = 4_096;

/// A sample that waits.
pub(in crate::shell::sink) struct Waiting {
    pub(in crate::shell::sink) unread: Unread,
    arrived: Instant,
    /// The capture time, if it determines the release by the clock of this node.
    captured: Option<TimeBounds>,
    /// It arrived after its release time.
    late: bool,
    /// The time by which it may leave too late, with a largest jitter.
    slack: Duration,
}

/// The release of a subscription's samples.
enum Discipline {
    /// The order of times.
    Ordered(Box<Ordered>),
    /// Release times.
    Paced(Box<Paced>),
}

/// The samples with a release time.
pub(crate) struct Paced {
    timetable: Timetable,
    waiting: BTreeMap<(Instant, u64), Waiting>,
    bytes: usize,
    number: u64,
    counts: PacedCounts,
    lateness: Lateness,
}

/// The origin of release times.
pub(crate) enum Timetable {
    /// The spacing of each publisher's capture times.
    Spaced(Depth, BTreeMap<PublisherId, Stream>),
    /// This time after publish.
    Bound { delay: Duration, jitter: Duration, streams: BTreeMap<PublisherId, Stream> },
    /// The capture time plus the delay of a group, and the last release time of each publisher.
    Together(Member, BTreeMap<PublisherId, Instant>),
}

/// The spacing of one publisher, and the jitter at its arrival and its release.
pub(crate) struct Stream {
    spacing: Spacing,
    arrivals: Jitter,
    releases: Jitter,
}

/// Counters of a time buffer.
#[derive(Clone, Copy, Debug, Default)]
struct OrderedCounts {
    /// Samples that have left.
    released: u64,
    /// Those whose order is not known.
    unknown: u64,
    /// Those after a later one.
    late: u64,
    /// Samples that were dropped after a later one.
    refused: u64,
}

impl OrderedCounts {
    fn add(&mut self, place: Placement) {
        self.released += 1;
        match place {
            Placement::InOrder => {}
            Placement::Unknown => self.unknown += 1,
            Placement::Late => self.late += 1,
        }
    }
}

/// A time buffer and its setting.
pub(crate) struct Ordered {
    buffer: TimeBuffer<PublisherId, Waiting>,
    setting: TimeBuffering,
    counts: OrderedCounts,
    /// With one order per publisher, the differences of the local clock and the publishers'.
    offsets: BTreeMap<PublisherId, u64>,
}

/// The samples of a subscription that wait.
pub(crate) struct Staged(Mutex<Discipline>);

impl Staged {
    /// Returns a time buffer.
    pub(crate) fn ordered(order: TimeBuffering) -> Result<Self, BufferLimitError> {
        let buffer = TimeBuffer::new(order.limits, order.late)?;
        let (setting, counts, offsets) = (order, OrderedCounts::default(), BTreeMap::new());
        let ordered = Ordered { buffer, setting, counts, offsets };
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
        Self::paced(Timetable::Together(Member::new(group), BTreeMap::new()))
    }

    fn paced(timetable: Timetable) -> Self {
        let (waiting, counts) = (BTreeMap::new(), PacedCounts::default());
        let lateness = Lateness::default();
        let paced = Paced { timetable, waiting, bytes: 0, number: 0, counts, lateness };
        Self(Mutex::new(Discipline::Paced(Box::new(paced))))
    }

    /// Adds a sample; `sample` has its times, but no payload, and `clocks` are the capture time and the present time, if
    /// their errors are known. Returns it if it leaves at once or is dropped.
    pub(in crate::shell::sink) fn handle(
        &self,
        now: Instant,
        sample: &RawSample,
        clocks: Option<(TimeBounds, TimeBounds)>,
        unread: Unread,
    ) -> Handled<Unread> {
        let waiting =
            Waiting { unread, arrived: now, captured: None, late: false, slack: Duration::ZERO };
        match &mut *lock(&self.0) {
            Discipline::Ordered(ordered) => ordered.handle(now, sample, clocks, waiting),
            Discipline::Paced(paced) => {
                paced.handle(now, sample, clocks, waiting);
                Handled::Buffered
            }
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
                let (waiting, place) = ordered.buffer.poll(now)?;
                ordered.counts.add(place);
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
            Discipline::Ordered(ordered) => ordered.buffer.next_release(),
            Discipline::Paced(paced) => paced.waiting.first_key_value().map(|((at, _), _)| *at),
        }
    }
}

/// Returns the interval of this host's monotonic clock that contains the time of a sample.
///
/// The capture time counts if the errors of both clocks are known, else the publish time as the hops measured it.
fn placed(
    now: Instant,
    sample: &RawSample,
    clocks: Option<(TimeBounds, TimeBounds)>,
) -> TimeBounds {
    let by_clocks = clocks.and_then(|(stamp, utc)| on_this_host(now, stamp, utc));
    by_clocks.unwrap_or_else(|| {
        let published = sample.published_at.as_nanos();
        let doubt = sample.doubt.as_nanos();
        TimeBounds::new(published, doubt)
    })
}

impl Ordered {
    /// Adds a sample. Returns it if it leaves at once or is dropped.
    fn handle(
        &mut self,
        now: Instant,
        sample: &RawSample,
        clocks: Option<(TimeBounds, TimeBounds)>,
        waiting: Waiting,
    ) -> Handled<Unread> {
        let publisher = waiting.unread.delivery.publisher;
        let bytes = waiting.unread.delivery.payload.len();
        let (clock, nanos, bounds) = match self.setting.by {
            OrderedBy::Time => {
                let bounds = placed(now, sample, clocks);
                (PublisherId { node: NodeId(0), index: 0 }, bounds.middle(), bounds)
            }
            OrderedBy::Publisher => {
                if self.offsets.len() >= PUBLISHERS_MAX && !self.offsets.contains_key(&publisher) {
                    self.offsets.clear();
                }
                let captured = sample.captured.nanos;
                let offset = now.as_nanos().wrapping_sub(captured);
                let offset = *self.offsets.entry(publisher).or_insert(offset);
                // Times of one clock have no error in comparison.
                let nanos = captured.wrapping_add(offset);
                (publisher, nanos, TimeBounds::new(nanos, 0))
            }
        };
        let handled = self.buffer.handle(now, Timed { clock, nanos, bounds, bytes, item: waiting });
        match &handled {
            Handled::Buffered => {}
            Handled::Deliver(_, place) => self.counts.add(*place),
            Handled::Drop(_) => self.counts.refused += 1,
        }
        handled.map(|waiting| waiting.unread)
    }

    fn status(&self) -> TimedStatus {
        let by = match self.setting.by {
            OrderedBy::Time => "time",
            OrderedBy::Publisher => "publisher",
        };
        let hold = std::time::Duration::from(self.setting.limits.hold);
        let status = TimedStatus::new(TimedMethod::Ordered, format!("{by} {hold:?}"));
        let OrderedCounts { released, unknown, late, refused } = self.counts;
        TimedStatus { released, unknown, late, refused, added: Some(hold), ..status }
    }
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
    fn handle(
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
            Timetable::Together(member, last) => {
                let ReleaseTime { at, captured } =
                    member.release(now, sample, publisher.node, clocks);
                waiting.captured = captured;
                if last.len() >= PUBLISHERS_MAX && !last.contains_key(&publisher) {
                    last.clear();
                }
                // The samples of a publisher stay in order, also when the basis of their times changes.
                let before = last.get(&publisher).copied().unwrap_or(at);
                last.insert(publisher, at.max(before));
                (at.max(before).max(now), at < now)
            }
        };
        waiting.late = late;
        self.counts.late += u64::from(late);
        self.bytes += waiting.unread.delivery.payload.len();
        self.waiting.insert((at, self.number), waiting);
        self.number += 1;
    }

    fn poll(&mut self, now: Instant, utc: impl Fn() -> Option<TimeBounds>) -> Option<Waiting> {
        loop {
            let ((at, number), waiting) = self.waiting.first_key_value()?;
            let full = self.waiting.len() > WAITING_MAX || self.bytes > WAITING_BYTES_MAX;
            if *at > now && !full {
                return None;
            }
            let (at, number, is_late) = (*at, *number, waiting.late);
            let captured = waiting.captured.filter(|_| !full && !is_late);
            let later = captured.and_then(|captured| self.later(now, captured, &utc));
            let (_, waiting) = self.waiting.pop_first()?;
            if let Some(later) = later {
                self.waiting.insert((later, number), waiting);
                continue;
            }
            self.count(now, at, &waiting);
            return Some(waiting);
        }
    }

    /// Returns the new release time of the first sample, if the clock has been corrected and it is later.
    fn later(
        &self,
        now: Instant,
        captured: TimeBounds,
        utc: impl Fn() -> Option<TimeBounds>,
    ) -> Option<Instant> {
        let Timetable::Together(member, _) = &self.timetable else { return None };
        let later = member.later(now, captured, utc())?;
        // A sample whose time does not follow the clock may not pass it.
        let mut others = self.waiting.range(..=(later, u64::MAX)).map(|(_, other)| other);
        others.all(|other| other.captured.is_some()).then_some(later)
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
            Timetable::Together(member, _) => member.count(waiting.captured),
        }
        if !waiting.late && at <= now {
            self.lateness.add(too_late);
        }
        self.counts.released += 1;
    }

    /// Returns the counters, and the largest jitter and added delay of all publishers; `None` for a group.
    fn report(&self) -> Option<SpacingReport> {
        let PacedCounts { released, late, early, jumps, beyond, doubt } = self.counts;
        let (streams, bound) = match &self.timetable {
            Timetable::Spaced(_, streams) => (streams, None),
            Timetable::Bound { delay, streams, .. } => (streams, Some(*delay)),
            Timetable::Together(..) => return None,
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

    fn sync_report(&self, utc: Option<TimeBounds>) -> Option<SyncReport> {
        let Timetable::Together(member, _) = &self.timetable else { return None };
        Some(member.report(self.counts, self.lateness.p99(), utc))
    }

    fn status(&self, utc: Option<TimeBounds>) -> TimedStatus {
        let text = |time: Duration| format!("{:?}", std::time::Duration::from(time));
        let (method, setting) = match &self.timetable {
            Timetable::Spaced(depth, _) => (TimedMethod::Spacing, text(depth.max)),
            Timetable::Bound { jitter, .. } => (TimedMethod::MaxJitter, text(*jitter)),
            Timetable::Together(member, _) => (TimedMethod::SyncGroup, member.setting()),
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
