//! Dropping of samples that can no longer arrive in time, in bounded portions.
//!
//! After a node was suspended for half a minute, everything queued on its links is late at once: up to
//! 250,000 samples on a full link. Each is counted and gets a drop reason, which takes time. If all were
//! dropped in one step, the thread could not process the headers, commands and control that arrived
//! meanwhile.

use super::stream::Stream;
use super::{Link, StreamIndex};
use crate::reason::DropReason;
use paceline_sched::{Instant, Scheduler};

impl Link {
    /// Returns `true` if more samples are late than one iteration drops. The next iteration is then due at
    /// once, and no data is sent before it has finished.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.backlog.is_behind()
    }

    /// Drops late samples, up to the portion of the iteration.
    pub(super) fn drop_missed(&mut self, now: Instant) {
        while self.backlog.has_room() {
            let Some(miss) = self.discipline.poll_missed(now) else {
                self.backlog.set_behind(false);
                return;
            };
            self.backlog.spend(1);
            let Some(stream) = self.streams.get_mut(miss.stream) else { continue };
            stream.note_miss();
            stream.count_violation(miss.violated);
            if miss.dropped {
                self.drop_late(now, miss.stream);
            } else {
                self.note_late(miss.stream);
            }
            self.shed(now, miss.stream);
        }
        self.backlog.set_behind(true);
    }

    fn note_late(&mut self, index: StreamIndex) {
        let stream = self.streams.get_mut(index).filter(|stream| stream.spec.is_patient());
        if stream.is_some_and(|stream| !core::mem::replace(&mut stream.late, true)) {
            self.backlog.note_late(index);
        }
    }

    /// Drops heads that missed their deadline here, stayed queued and can no longer meet the delay bound.
    /// Runs even while no hop has credit, so that new samples find room.
    pub(super) fn drop_hopeless(&mut self, now: Instant) {
        let mut place = 0;
        while let Some(index) = self.backlog.late_at(place) {
            if self.is_hopeless(now, index) {
                self.give_up_hopeless(now, index);
                if self.is_behind() {
                    return;
                }
                continue;
            }
            if self.is_late(now, index) {
                place += 1;
                continue;
            }
            self.streams.get_mut(index).into_iter().for_each(|stream| stream.late = false);
            self.backlog.forget_late(place);
        }
    }

    /// Returns `true` if the head of a stream can no longer meet its deadline on this link.
    fn is_late(&self, now: Instant, index: StreamIndex) -> bool {
        let late = |stream: &Stream| {
            stream.head_is_late(now + self.pacer.wire.left(stream.head_left()).service)
        };
        self.streams.get(index).is_some_and(late)
    }

    /// Returns `true` if the head of a patient stream can no longer meet the delay bound.
    pub(super) fn is_hopeless(&self, now: Instant, index: StreamIndex) -> bool {
        let Some(stream) = self.streams.get(index).filter(|stream| stream.spec.is_patient()) else {
            return false;
        };
        stream.is_hopeless(now, self.pacer.wire.left(stream.head_left()).service)
    }

    /// Drops such a head and counts it against the portion of the iteration.
    pub(super) fn give_up_hopeless(&mut self, now: Instant, index: StreamIndex) {
        if !self.backlog.take_one() {
            return;
        }
        let violated = self.discipline.remove_head(index);
        if let Some(stream) = self.streams.get_mut(index) {
            stream.count_violation(violated);
        }
        self.drop_late(now, index);
    }

    /// Drops the late head of a stream, which the discipline has already removed, and announces the next.
    fn drop_late(&mut self, now: Instant, index: StreamIndex) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let kind = stream.head().map(|sample| sample.kind);
        let begun = stream.drop_head(DropReason::DeadlineMissed);
        let tail = kind.map_or(0, |kind| stream.drop_tail(kind));
        let (hop, id) = (stream.spec.hop, stream.id);
        self.abort(index, hop, id, begun);
        self.backlog.spend(tail);
        self.judge_skipped(index, tail);
        self.announce_head(now, index);
    }
}
