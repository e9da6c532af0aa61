//! The time buffer of a subscription: samples in the order of their times.

use super::super::report::{OrderedBy, TimeBuffering};
use super::waiting::{PUBLISHERS_MAX, Waiting};
use crate::Sample;
use crate::status::{TimedMethod, TimedStatus};
use paceline_proto::{NodeId, PublisherId, RawSample};
use paceline_sched::{Duration, Instant};
use paceline_time::TimeBounds;
use paceline_time::order::{
    BEFORE_START, BufferLimitError, Handled, Placement, TimeBuffer, Timed, on_this_host,
};
use std::collections::BTreeMap;

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
#[derive(Debug)]
pub(super) struct Ordered {
    buffer: TimeBuffer<PublisherId, Waiting>,
    setting: TimeBuffering,
    counts: OrderedCounts,
    /// With one order per publisher, the differences of the local clock and the publishers'.
    offsets: BTreeMap<PublisherId, u64>,
}

/// The clock of all publishers: their times are comparable.
const SHARED: PublisherId = PublisherId { node: NodeId(0), index: 0 };

/// Returns the best estimate of the time of a sample by this host's monotonic clock, on the time line of
/// [`on_this_host`], and an interval that contains it.
///
/// The capture time counts if the errors of both clocks are known, else the publish time as the hops measured it.
fn placed(
    now: Instant,
    sample: &RawSample,
    clocks: Option<(TimeBounds, TimeBounds)>,
) -> (u64, TimeBounds) {
    let by_clocks = clocks.and_then(|(stamp, utc)| on_this_host(now, stamp, utc));
    by_clocks.unwrap_or_else(|| {
        let published = BEFORE_START.saturating_add(sample.published_at.as_nanos());
        let present = BEFORE_START.saturating_add(now.as_nanos());
        let TimeBounds { earliest, latest } = TimeBounds::new(published, sample.doubt.as_nanos());
        (published, TimeBounds { earliest, latest: latest.min(present).max(published) })
    })
}

impl Ordered {
    pub(super) fn new(setting: TimeBuffering) -> Result<Self, BufferLimitError> {
        let buffer = TimeBuffer::new(setting.limits, setting.late)?;
        let (counts, offsets) = (OrderedCounts::default(), BTreeMap::new());
        Ok(Self { buffer, setting, counts, offsets })
    }

    /// Adds a sample. Returns false if it is dropped.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        sample: &RawSample,
        clocks: Option<(TimeBounds, TimeBounds)>,
        waiting: Waiting,
    ) -> bool {
        let publisher = waiting.unread.delivery.publisher;
        let timed = match self.setting.by {
            OrderedBy::Time => {
                let (nanos, bounds) = placed(now, sample, clocks);
                let bytes = waiting.unread.delivery.payload.len();
                let source = Some(publisher);
                Timed { clock: SHARED, source, nanos, bounds, bytes, item: waiting }
            }
            OrderedBy::Publisher => self.by_publisher(now, waiting),
        };
        self.add(now, timed)
    }

    fn add(&mut self, now: Instant, timed: Timed<PublisherId, Waiting>) -> bool {
        let is_kept = matches!(self.buffer.handle(now, timed), Handled::Buffered);
        self.counts.refused += u64::from(!is_kept);
        is_kept
    }

    /// Adds the newest sample of a latched publisher: it leaves at once, behind the samples of its publisher.
    pub(super) fn handle_latched(&mut self, now: Instant, waiting: Waiting) {
        let Sample { publisher, payload, .. } = &waiting.unread.delivery;
        let (publisher, bytes) = (*publisher, payload.len());
        match self.setting.by {
            OrderedBy::Time => self.buffer.pass(now, publisher, bytes, waiting),
            OrderedBy::Publisher => {
                let timed = self.by_publisher(now, waiting);
                self.add(now, timed);
            }
        }
    }

    /// Returns a sample with its time by its publisher's clock, on the time line of the local one.
    fn by_publisher(&mut self, now: Instant, waiting: Waiting) -> Timed<PublisherId, Waiting> {
        let Sample { publisher, payload, captured, .. } = &waiting.unread.delivery;
        let (publisher, bytes, captured) = (*publisher, payload.len(), captured.nanos);
        if self.offsets.len() >= PUBLISHERS_MAX && !self.offsets.contains_key(&publisher) {
            self.offsets.clear();
        }
        let offset = now.as_nanos().wrapping_sub(captured);
        let nanos = captured.wrapping_add(*self.offsets.entry(publisher).or_insert(offset));
        // Times of one clock have no error in comparison.
        let bounds = TimeBounds::new(nanos, 0);
        Timed { clock: publisher, source: None, nanos, bounds, bytes, item: waiting }
    }

    /// Returns the next sample that leaves at `now`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Waiting, Placement)> {
        let (waiting, place) = self.buffer.poll(now)?;
        self.counts.add(place);
        Some((waiting, place))
    }

    /// Returns the longest time for which a sample waits.
    pub(super) const fn hold(&self) -> Duration {
        self.setting.limits.hold
    }

    /// Returns the time at which the next sample leaves.
    pub(super) fn next_release(&self) -> Option<Instant> {
        self.buffer.next_release()
    }

    pub(super) fn status(&self) -> TimedStatus {
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
