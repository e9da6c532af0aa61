//! Dropping of samples that can no longer arrive in time, in bounded portions.
//!
//! After a node was suspended for half a minute, everything queued on its links is late at once: up to
//! 250,000 samples on a full link. Each is counted and gets a drop reason, which takes time. If all were
//! dropped in one step, the thread could not process the headers, commands and control that arrived
//! meanwhile.

use super::stream::Queued;
use super::{Link, StreamIndex};
use crate::reason::DropReason;
use paceline_sched::{Instant, Scheduler};
use std::collections::VecDeque;

/// The maximum number of late samples that a link drops per iteration. Video pictures that depend on them may
/// be dropped in addition, at most the queue of one stream.
pub const MISSES_PER_TURN: usize = 512;

/// The progress of an iteration with late samples.
#[derive(Debug)]
pub(super) struct Backlog {
    /// The number of samples that this iteration may still drop.
    left: usize,
    /// The iteration ended with misses left.
    behind: bool,
    /// The start of the iteration.
    begun: Instant,
    /// Counted samples of closed or down streams that are not yet freed.
    gone: Vec<VecDeque<Queued>>,
    /// Streams whose head missed its deadline here and stays queued, each once.
    pub(super) late: Vec<StreamIndex>,
}

impl Default for Backlog {
    fn default() -> Self {
        let (left, behind, begun) = (MISSES_PER_TURN, false, Instant::ZERO);
        Self { left, behind, begun, gone: Vec::new(), late: Vec::new() }
    }
}

impl Backlog {
    /// Starts an iteration with a new portion.
    pub(super) fn begin_turn(&mut self, now: Instant) {
        (self.left, self.begun) = (MISSES_PER_TURN, now);
        for _ in 0..MISSES_PER_TURN {
            let Some(last) = self.gone.last_mut() else { return };
            if last.pop_front().is_none() {
                self.gone.pop();
            }
        }
    }

    /// Takes samples that are already counted, to free them in portions.
    pub(super) fn free_later(&mut self, gone: VecDeque<Queued>) {
        if !gone.is_empty() {
            self.gone.push(gone);
        }
    }

    /// Returns `true` if the next iteration is due at once.
    pub(super) const fn is_due(&self) -> bool {
        self.behind || !self.gone.is_empty()
    }

    /// Counts dropped samples against the portion. If they exceed it, the next iteration is due at once.
    pub(super) const fn note_dropped(&mut self, samples: usize) {
        self.behind |= samples > self.left;
        self.left = self.left.saturating_sub(samples);
    }

    /// Starts an iteration if time has passed, for callers that only poll for frames.
    pub(super) fn continue_turn(&mut self, now: Instant) {
        if now > self.begun {
            self.begin_turn(now);
        }
    }
}

impl Link {
    /// Returns `true` if more samples are late than one iteration drops. The next iteration is then due at
    /// once, and no data is sent before it has finished.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.backlog.behind
    }

    /// Drops late samples, up to the portion of the iteration.
    pub(super) fn drop_missed(&mut self, now: Instant) {
        while self.backlog.left > 0 {
            let Some(miss) = self.discipline.poll_missed(now) else {
                self.backlog.behind = false;
                return;
            };
            self.backlog.left -= 1;
            let Some(stream) = self.stream_mut(miss.stream) else { continue };
            stream.note_miss();
            stream.count_violation(miss.violated);
            if miss.dropped {
                self.drop_late(now, miss.stream);
            } else {
                self.note_late(miss.stream);
            }
            self.shed(now, miss.stream);
        }
        self.backlog.behind = true;
    }

    fn note_late(&mut self, index: StreamIndex) {
        let stream = self.stream_mut(index).filter(|stream| stream.spec.is_patient());
        if stream.is_some_and(|stream| !core::mem::replace(&mut stream.late, true)) {
            self.backlog.late.push(index);
        }
    }

    /// Drops heads that missed their deadline here, stayed queued and can no longer meet the delay bound.
    /// Runs even while no hop has credit, so that new samples find room.
    pub(super) fn drop_hopeless(&mut self, now: Instant) {
        let mut place = 0;
        while let Some(&index) = self.backlog.late.get(place) {
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
            self.stream_mut(index).into_iter().for_each(|stream| stream.late = false);
            self.backlog.late.swap_remove(place);
        }
    }

    /// Returns `true` if the head of a stream can no longer meet its deadline on this link.
    fn is_late(&self, now: Instant, index: StreamIndex) -> bool {
        let late = |stream: &super::Stream| {
            stream.head_is_late(now + self.left(stream.head_left()).service)
        };
        self.stream(index).is_some_and(late)
    }

    /// Returns `true` if the head of a patient stream can no longer meet the delay bound.
    pub(super) fn is_hopeless(&self, now: Instant, index: StreamIndex) -> bool {
        let Some(stream) = self.stream(index).filter(|stream| stream.spec.is_patient()) else {
            return false;
        };
        stream.is_hopeless(now, self.left(stream.head_left()).service)
    }

    /// Drops such a head and counts it against the portion of the iteration.
    pub(super) fn give_up_hopeless(&mut self, now: Instant, index: StreamIndex) {
        let Some(left) = self.backlog.left.checked_sub(1) else {
            self.backlog.behind = true;
            return;
        };
        self.backlog.left = left;
        let violated = self.discipline.remove_head(index);
        if let Some(stream) = self.stream_mut(index) {
            stream.count_violation(violated);
        }
        self.drop_late(now, index);
    }

    /// Drops the late head of a stream, which the discipline has already removed, and announces the next.
    fn drop_late(&mut self, now: Instant, index: StreamIndex) {
        let Some(stream) = self.stream_mut(index) else { return };
        let kind = stream.head().map(|sample| sample.kind);
        let begun = stream.drop_head(DropReason::DeadlineMissed);
        let tail = kind.map_or(0, |kind| stream.drop_tail(kind));
        let (hop, id) = (stream.spec.hop, stream.id);
        self.abort(index, hop, id, begun);
        self.backlog.left = self.backlog.left.saturating_sub(tail);
        self.judge_skipped(index, tail);
        self.announce_head(now, index);
    }
}
