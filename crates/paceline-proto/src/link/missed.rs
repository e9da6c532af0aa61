//! Samples that can no longer arrive in time, a bounded portion of them a turn.
//!
//! A node that stood still for half a minute finds everything that waits on its links late at once: on
//! a full link a quarter of a million samples. Each is judged and has its reason, so each takes its
//! time. Given up all in one go they would keep the thread from whatever came meanwhile: headers,
//! commands, control.

use super::stream::Queued;
use super::{Link, StreamIndex};
use crate::reason::DropReason;
use paceline_sched::{Instant, Scheduler};
use std::collections::VecDeque;

/// Samples that one turn of a link gives up at most because they are late, and what goes with them: of
/// a video what cannot be decoded without them may come on top, at most the queue of one stream.
pub const MISSES_PER_TURN: usize = 512;

/// How far a turn has come with what is late.
#[derive(Debug)]
pub(super) struct Backlog {
    /// What the turn may still give up.
    left: usize,
    /// The turn ended before it knew of no miss any more.
    behind: bool,
    /// When the turn began.
    begun: Instant,
    /// What waited for hops that are gone: counted, and still to be freed.
    gone: Vec<VecDeque<Queued>>,
    /// Streams whose head was late here and waits all the same, each once.
    pub(super) late: Vec<StreamIndex>,
}

impl Default for Backlog {
    fn default() -> Self {
        let (left, behind, begun) = (MISSES_PER_TURN, false, Instant::ZERO);
        Self { left, behind, begun, gone: Vec::new(), late: Vec::new() }
    }
}

impl Backlog {
    /// Another portion may be given up.
    pub(super) fn begin_turn(&mut self, now: Instant) {
        (self.left, self.begun) = (MISSES_PER_TURN, now);
        for _ in 0..MISSES_PER_TURN {
            let Some(last) = self.gone.last_mut() else { return };
            if last.pop_front().is_none() {
                self.gone.pop();
            }
        }
    }

    /// Samples that are counted already; what they take is freed turn by turn.
    pub(super) fn free_later(&mut self, gone: VecDeque<Queued>) {
        if !gone.is_empty() {
            self.gone.push(gone);
        }
    }

    /// The next turn is due at once.
    pub(super) const fn is_due(&self) -> bool {
        self.behind || !self.gone.is_empty()
    }

    /// So many samples were dropped as a part of what the turn may give up; beyond that the next turn is due at once.
    pub(super) const fn note_dropped(&mut self, samples: usize) {
        self.behind |= samples > self.left;
        self.left = self.left.saturating_sub(samples);
    }

    /// Whoever asks for frames alone begins a turn whenever time has passed.
    pub(super) fn continue_turn(&mut self, now: Instant) {
        if now > self.begun {
            self.begin_turn(now);
        }
    }
}

impl Link {
    /// True if samples wait that are late already, more than one turn gives up: the next turn is due at
    /// once, and until it is done no data leaves.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.backlog.behind
    }

    /// Gives up what is late, as much as the turn may.
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

    /// Gives up what was late here, has waited and is too late now where it goes: also while no hop has credit,
    /// so that there is room for what comes.
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

    /// True if the head of a stream cannot leave within its part of the delay bound any more.
    fn is_late(&self, now: Instant, index: StreamIndex) -> bool {
        let late = |stream: &super::Stream| {
            stream.head_is_late(now + self.left(stream.head_left()).service)
        };
        self.stream(index).is_some_and(late)
    }

    /// True if the head of a stream waited although it was late here, and is now too late where it goes.
    pub(super) fn is_hopeless(&self, now: Instant, index: StreamIndex) -> bool {
        let Some(stream) = self.stream(index).filter(|stream| stream.spec.is_patient()) else {
            return false;
        };
        stream.is_hopeless(now, self.left(stream.head_left()).service)
    }

    /// Gives up such a head, as a part of what the turn may.
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

    /// The head of a stream is late and given up, which the discipline knows; the next one follows.
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
