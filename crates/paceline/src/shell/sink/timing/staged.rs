//! Samples that wait for their release: by the order of their times, with the publisher's spacing, or together with a
//! group.

use super::group::{Group, Member, ReleaseTime};
use crate::delivery::{OrderedBy, SpacingReport, SyncReport, TimeBuffering};
use crate::sample::Sample;
use crate::shell::lock;
use crate::shell::sink::queue::Unread;
use paceline_proto::{NodeId, PublisherId, RawSample};
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::order::{BufferLimitError, Handled, TimeBuffer, Timed};
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
}

/// The release of a subscription's samples.
enum Discipline {
    /// One order of all samples.
    Ordered(TimeBuffer<PublisherId, Waiting>),
    /// One order per publisher, with the difference of the local clock and the publisher's.
    OrderedEach(TimeBuffer<PublisherId, Waiting>, BTreeMap<PublisherId, u64>),
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
}

/// The origin of release times.
pub(crate) enum Timetable {
    /// The spacing of each publisher's capture times.
    Spaced(Depth, BTreeMap<PublisherId, Stream>),
    /// This time after publish.
    Bound { delay: Duration, streams: BTreeMap<PublisherId, Stream> },
    /// The capture time plus the delay of a group, and the last release time of each publisher.
    Together(Member, BTreeMap<PublisherId, Instant>),
}

/// The spacing of one publisher, and the jitter at its arrival and its release.
pub(crate) struct Stream {
    spacing: Spacing,
    arrivals: Jitter,
    releases: Jitter,
}

/// Counters of samples with release times.
#[derive(Clone, Copy, Debug, Default)]
struct PacedCounts {
    /// Samples that have left.
    released: u64,
    /// Samples that arrived after their release time.
    late: u64,
    /// Samples that left before their release time, because too many waited.
    early: u64,
    /// Jumps of time stamps.
    jumps: u64,
}

/// The samples of a subscription that wait.
pub(crate) struct Staged(Mutex<Discipline>);

impl Staged {
    /// Returns a time buffer.
    pub(crate) fn ordered(order: TimeBuffering) -> Result<Self, BufferLimitError> {
        let buffer = TimeBuffer::new(order.limits, order.late)?;
        Ok(Self(Mutex::new(match order.by {
            OrderedBy::Time => Discipline::Ordered(buffer),
            OrderedBy::Publisher => Discipline::OrderedEach(buffer, BTreeMap::new()),
        })))
    }

    /// Returns the spacing of capture times.
    pub(crate) fn spaced(depth: Depth) -> Self {
        Self::paced(Timetable::Spaced(depth, BTreeMap::new()))
    }

    /// Returns a constant delay after publish.
    pub(crate) fn delayed(delay: Duration) -> Self {
        Self::paced(Timetable::Bound { delay, streams: BTreeMap::new() })
    }

    /// Returns the release with a group.
    pub(crate) fn together(group: Arc<Group>) -> Self {
        Self::paced(Timetable::Together(Member::new(group), BTreeMap::new()))
    }

    fn paced(timetable: Timetable) -> Self {
        let (waiting, counts) = (BTreeMap::new(), PacedCounts::default());
        let paced = Paced { timetable, waiting, bytes: 0, number: 0, counts };
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
        let waiting = Waiting { unread, arrived: now, captured: None, late: false };
        let publisher = waiting.unread.delivery.publisher;
        let bytes = waiting.unread.delivery.payload.len();
        match &mut *lock(&self.0) {
            Discipline::Ordered(buffer) => {
                let bounds = placed(now, sample, clocks);
                let clock = PublisherId { node: NodeId(0), index: 0 };
                let timed = Timed { clock, nanos: bounds.middle(), bounds, bytes, item: waiting };
                buffer.handle(now, timed).map(|waiting| waiting.unread)
            }
            Discipline::OrderedEach(buffer, offsets) => {
                if offsets.len() >= PUBLISHERS_MAX && !offsets.contains_key(&publisher) {
                    offsets.clear();
                }
                let captured = sample.captured.nanos;
                let offset = now.as_nanos().wrapping_sub(captured);
                let offset = *offsets.entry(publisher).or_insert(offset);
                // Times of one clock have no error in comparison.
                let nanos = captured.wrapping_add(offset);
                let bounds = TimeBounds::new(nanos, 0);
                let timed = Timed { clock: publisher, nanos, bounds, bytes, item: waiting };
                buffer.handle(now, timed).map(|waiting| waiting.unread)
            }
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
            Discipline::Ordered(buffer) | Discipline::OrderedEach(buffer, _) => {
                buffer.poll(now).map(|(waiting, place)| (waiting, Some(place)))?
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
            Discipline::Ordered(_) | Discipline::OrderedEach(..) => None,
            Discipline::Paced(paced) => paced.report(),
        }
    }

    /// Returns the measurements of a member of a group; `utc` is the present time, if the error of the clock is known.
    pub(crate) fn sync_report(&self, utc: Option<TimeBounds>) -> Option<SyncReport> {
        match &*lock(&self.0) {
            Discipline::Ordered(_) | Discipline::OrderedEach(..) => None,
            Discipline::Paced(paced) => paced.sync_report(utc),
        }
    }

    /// Returns the time at which the next sample leaves.
    pub(in crate::shell::sink) fn next_release(&self) -> Option<Instant> {
        match &*lock(&self.0) {
            Discipline::Ordered(buffer) | Discipline::OrderedEach(buffer, _) => {
                buffer.next_release()
            }
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
    let by_clocks = clocks.and_then(|(stamp, utc)| {
        // The age, from the latest to the earliest possible capture.
        let TimeBounds { earliest, latest } = stamp.until(utc)?;
        let since =
            |captured: u64, utc: u64| now.as_nanos().saturating_sub(utc.saturating_sub(captured));
        Some(TimeBounds {
            earliest: since(earliest, utc.latest),
            latest: since(latest, utc.earliest),
        })
    });
    by_clocks.unwrap_or_else(|| {
        let published = sample.published_at.as_nanos();
        let doubt = sample.doubt.as_nanos();
        TimeBounds::new(published, doubt)
    })
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
            Timetable::Bound { delay, streams } => {
                let at = sample.published_at + *delay;
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
        match &mut self.timetable {
            Timetable::Spaced(_, streams) | Timetable::Bound { streams, .. } => {
                if let Some(stream) = streams.get_mut(publisher) {
                    stream.releases.add(now, captured.nanos);
                }
            }
            Timetable::Together(member, _) => {
                let late = (!waiting.late && at <= now).then(|| now.since(at));
                member.count(late, waiting.captured);
            }
        }
        self.counts.released += 1;
    }

    /// Returns the counters, and the largest jitter and added delay of all publishers; `None` for a group.
    fn report(&self) -> Option<SpacingReport> {
        let PacedCounts { released, late, early, jumps } = self.counts;
        let (streams, bound) = match &self.timetable {
            Timetable::Spaced(_, streams) => (streams, None),
            Timetable::Bound { delay, streams } => (streams, Some(*delay)),
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
        })
    }

    fn sync_report(&self, utc: Option<TimeBounds>) -> Option<SyncReport> {
        let Timetable::Together(member, _) = &self.timetable else { return None };
        Some(member.report(self.counts.late, self.counts.early, utc))
    }
}
