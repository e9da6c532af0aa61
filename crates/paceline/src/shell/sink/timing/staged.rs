//! Samples that wait for their release: by the order of their times, or with the publisher's spacing.

use crate::delivery::{OrderedBy, SpacingReport, TimeBuffering};
use crate::sample::Sample;
use crate::shell::lock;
use crate::shell::sink::queue::Unread;
use paceline_proto::{NodeId, PublisherId, RawSample};
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::order::{BufferLimitError, Handled, TimeBuffer, Timed};
use paceline_time::spacing::{Anchor, Depth, Jitter, Spacing};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The limits of samples and bytes that wait for their release times. Beyond them the earliest leave early.
const WAITING_MAX: usize = 4_096;
const WAITING_BYTES_MAX: usize = 64 << 20;
/// The limit of publishers with a state of their own; beyond it, all states start again.
const PUBLISHERS_MAX: usize = 4_096;

/// A sample that waits.
pub(in crate::shell::sink) struct Waiting {
    pub(in crate::shell::sink) unread: Unread,
    arrived: Instant,
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
        let waiting = Waiting { unread, arrived: now };
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
                paced.handle(now, sample, waiting);
                Handled::Buffered
            }
        }
    }

    /// Returns the next sample that leaves at `now`.
    pub(in crate::shell::sink) fn poll(&self, now: Instant) -> Option<Unread> {
        let (mut waiting, place) = match &mut *lock(&self.0) {
            Discipline::Ordered(buffer) | Discipline::OrderedEach(buffer, _) => {
                buffer.poll(now).map(|(waiting, place)| (waiting, Some(place)))?
            }
            Discipline::Paced(paced) => (paced.poll(now)?, None),
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
            Discipline::Paced(paced) => Some(paced.report()),
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
    fn handle(&mut self, now: Instant, sample: &RawSample, waiting: Waiting) {
        let publisher = waiting.unread.delivery.publisher;
        let stamp = sample.captured.nanos;
        let (stream, at, late) = match &mut self.timetable {
            Timetable::Spaced(depth, streams) => {
                let stream = Stream::of(streams, publisher, *depth);
                let release = stream.spacing.handle(now, stamp);
                self.counts.jumps += u64::from(release.jumped);
                (stream, release.at, !release.late.is_zero())
            }
            Timetable::Bound { delay, streams } => {
                let at = sample.published_at + *delay;
                (Stream::of(streams, publisher, Depth::default()), at.max(now), at < now)
            }
        };
        stream.arrivals.add(now, stamp);
        self.counts.late += u64::from(late);
        self.bytes += waiting.unread.delivery.payload.len();
        self.waiting.insert((at, self.number), waiting);
        self.number += 1;
    }

    fn poll(&mut self, now: Instant) -> Option<Waiting> {
        let ((at, _), _) = self.waiting.first_key_value()?;
        let full = self.waiting.len() > WAITING_MAX || self.bytes > WAITING_BYTES_MAX;
        if *at > now && !full {
            return None;
        }
        self.counts.early += u64::from(*at > now);
        let (_, waiting) = self.waiting.pop_first()?;
        let Sample { payload, publisher, captured, .. } = &waiting.unread.delivery;
        self.bytes -= payload.len();
        let (Timetable::Spaced(_, streams) | Timetable::Bound { streams, .. }) =
            &mut self.timetable;
        if let Some(stream) = streams.get_mut(publisher) {
            stream.releases.add(now, captured.nanos);
        }
        self.counts.released += 1;
        Some(waiting)
    }

    /// Returns the counters, and the largest jitter and added delay of all publishers.
    fn report(&self) -> SpacingReport {
        let PacedCounts { released, late, early, jumps } = self.counts;
        let (Timetable::Spaced(_, streams) | Timetable::Bound { streams, .. }) = &self.timetable;
        let max =
            |of: fn(&Stream) -> Duration| streams.values().map(of).max().unwrap_or_default().into();
        SpacingReport {
            released,
            late,
            early,
            jumps,
            jitter_in: max(|stream| stream.arrivals.value()),
            jitter_out: max(|stream| stream.releases.value()),
            added: match &self.timetable {
                Timetable::Spaced(..) => max(|stream| stream.spacing.added()),
                Timetable::Bound { delay, .. } => (*delay).into(),
            },
        }
    }
}
