//! Reports of each stream's first queued sample to the discipline.

use super::stream::Stream;
use super::{Link, StreamIndex};
use paceline_sched::discipline::Head;
use paceline_sched::{Duration, Instant, Scheduler};

impl Link {
    /// Reports the stream's head to the discipline, if it has one.
    pub(super) fn announce_head(&mut self, now: Instant, index: StreamIndex) {
        let Some(head) = self.next_head(now, index) else { return };
        if self.streams.get(index).is_some_and(Stream::head_is_demoted) {
            self.discipline.handle_demoted(index, head);
        } else {
            self.discipline.handle_head(index, head);
            self.announce_length(index);
        }
    }

    /// Returns the next head if it was not demoted; it follows the sample that just left.
    pub(super) fn following_head(&mut self, now: Instant, index: StreamIndex) -> Option<Head> {
        let demoted = self.streams.get(index).is_some_and(Stream::head_is_demoted);
        if demoted { None } else { self.next_head(now, index) }
    }

    /// Reports that a newer sample has replaced the head. With best effort the new sample keeps the old one's
    /// position in the schedule. Otherwise a stream whose samples arrive faster than it is scheduled would
    /// never be served.
    pub(super) fn replace_head(&mut self, now: Instant, index: StreamIndex) {
        let contracted =
            self.streams.get(index).is_some_and(|stream| stream.spec.contract.is_some());
        let head = if contracted { None } else { self.next_head(now, index) };
        match head {
            Some(head) => {
                self.discipline.handle_left(index, head.left);
                // There may be no head if its class has not admitted it.
                self.discipline.handle_head(index, head);
            }
            None => {
                self.discipline.remove_head(index);
                self.announce_head(now, index);
            }
        }
    }

    /// Returns the stream's head, if its class admits one.
    pub(super) fn next_head(&mut self, now: Instant, index: StreamIndex) -> Option<Head> {
        if !self.passes(now, index) {
            return None;
        }
        let stream = self.streams.get(index)?;
        let arrived = stream.head_arrived(now)?;
        Some(Head { arrived, left: self.pacer.wire.left(stream.head_left()) })
    }

    /// Informs the discipline if the head that was just announced is longer than declared.
    pub(super) fn announce_length(&mut self, index: StreamIndex) {
        let over = self.streams.get(index).map_or(Duration::ZERO, Stream::head_over);
        if !over.is_zero() {
            self.discipline.handle_long(index, over);
        }
    }
}
