//! Retirement of streams that another stream replaces.
//!
//! A subscriber that changes its request is served by a new stream. Samples queued on the old one were
//! published before the change, and dropping them would leave a gap, so they are still sent. They are sent as
//! best effort, since the old reservation may already belong to others, and never after a newer sample.

use super::{Link, StreamIndex};
use crate::reason::DropReason;
use paceline_sched::{Duration, Instant, Scheduler};

/// The maximum time for which the owner of a link lets a replaced stream send its queued samples.
pub const RETIRE_MAX: Duration = Duration::from_millis(500);
/// The least time for which a replaced stream that keeps its contract sends its queue.
const HAND_OVER_MIN: Duration = Duration::from_secs(4);

impl Link {
    /// Retires a stream that another stream of the same publisher and hop replaces.
    ///
    /// Its queued samples, and older samples that still arrive, are sent as best effort until a sample at
    /// least as new has left to the hop. Then they are dropped, and nothing of the stream is retransmitted.
    ///
    /// The caller closes the stream as soon as it [is settled](Self::is_settled) and no more samples can
    /// arrive, but no later than [`RETIRE_MAX`] after this call.
    pub fn retire_stream(&mut self, now: Instant, index: StreamIndex) {
        let Some(stream) = self.streams.get(index) else { return };
        let mut spec = stream.spec.clone();
        (spec.contract, spec.demand) = (None, None);
        if !self.retiring.contains(&index) {
            self.retiring.push(index);
        }
        self.update_stream(now, index, spec);
        self.successions.remove(index);
    }

    /// Returns the time within which a replaced stream sends its queue under its contract, because its samples are promised
    /// to subscriptions of the stream that replaces it. It includes the delay bound of the path.
    #[must_use]
    pub fn hand_over_max(&self, index: StreamIndex) -> Duration {
        let spec = self.streams.get(index).map(|stream| &stream.spec);
        let bound = spec.and_then(|spec| {
            let spent = spec.upstream.saturating_add(spec.contract?.deadline);
            Some(spent.saturating_add(spec.slack))
        });
        bound.map_or(HAND_OVER_MIN, |bound| bound.max(HAND_OVER_MIN))
    }

    /// Returns the sequence number of a stream's head, if any stream is being retired.
    pub(super) fn overtaking(&self, index: StreamIndex) -> Option<u64> {
        if self.retiring.is_empty() {
            return None;
        }
        self.streams.get(index)?.head().map(|head| head.seq)
    }

    /// Drops the samples of retired streams that are older than the sample `seq`, which has left on the
    /// stream `index`.
    pub(super) fn overtake(&mut self, index: StreamIndex, seq: u64) {
        let Some(spec) = self.streams.get(index).map(|stream| &stream.spec) else { return };
        let (publisher, hop) = (spec.publisher, spec.hop);
        for place in 0..self.retiring.len() {
            let Some(&old) = self.retiring.get(place).filter(|old| **old != index) else {
                continue;
            };
            let Some(stream) = self.streams.get_mut(old) else { continue };
            let same = (stream.spec.publisher, stream.spec.hop) == (publisher, hop);
            if !same || stream.head().is_some_and(|head| head.seq > seq) {
                continue;
            }
            let (id, begun) = (stream.id, stream.head_begun.then_some(stream.number));
            let dropped = stream.drop_all(DropReason::Superseded);
            self.backlog.free_later(dropped);
            self.abort(old, hop, id, begun);
            self.repairs.forget(|key| key.stream == old);
            self.discipline.remove_head(old);
        }
    }
}
