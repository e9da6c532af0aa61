//! Shedding video: B before P before I, and what cannot be decoded goes with its cause.
//!
//! What holds for a stream whose publisher declares video, whatever is shed: each sample that is sent
//! has every sample that it needs sent before it, since the stream or its hop came up.
//!
//! *Best effort.* While more than 4 samples wait, Bs that have not begun are shed, oldest first. When
//! more than 32 wait, or more than 4 MiB, the B that waits goes, else the P that came and with it all up
//! to the next I. That I, or one that comes when the queue is full, supersedes the Ps and Bs that wait;
//! of Is alone the oldest goes. So no P goes for want of room while a B waits, no I while a P waits,
//! and a link that carries the references loses none of them.
//!
//! *Contracted.* A sample that can't arrive in time goes when its turn comes, and an I or P takes its
//! tail with it. Before that, Bs go, oldest first, and then Ps that an I waits behind, the end of the
//! group first, in two cases: an I or P behind them could not arrive in time even if the link carried
//! nothing else but control (and a frame to spare); and, for 64 samples after a miss, whenever others wait too,
//! since the rest of the link takes its part. Neither ever breaks the promise: they stop where the
//! window tolerates no miss more, unless its windows were violated since the last 64 good samples. So
//! where the stream is alone what is too much is Bs first, as far as the promise allows; where others
//! share the link, the first miss may be any sample's. Everything that such a stream drops while its
//! hop is up is judged as missed.

use super::pacer::CONTROL_SHARE;
use super::stream::{Offer, Queued, Stream, WAITING_BYTES_MAX};
use super::{Link, StreamIndex};
use crate::reason::DropReason;
use crate::sample::Kind;
use paceline_sched::Instant;
use paceline_sched::Scheduler;

/// Samples that a best-effort stream may have waiting before Bs go.
const WAITING_WITH_B: usize = 4;
/// Samples of video that a best-effort stream may have waiting.
const VIDEO_MAX: usize = 32;
/// So many samples after a miss a contracted stream is short of time.
const SHORT_FOR: u64 = 64;

impl Link {
    /// A sample for a stream of video; false if it was dropped.
    pub(super) fn handle_video(
        &mut self,
        now: Instant,
        index: StreamIndex,
        sample: Queued,
    ) -> bool {
        let seq = sample.seq;
        let Some(stream) = self.stream_mut(index) else { return false };
        let renews = sample.kind == Kind::VideoI && !stream.gate.is_open();
        match stream.offer(now, sample) {
            Offer::IsHead => self.announce_head(now, index),
            Offer::Waits | Offer::ReplacedHead => {}
            Offer::Dropped => {
                self.judge_skipped(index, 1);
                return false;
            }
        }
        if renews || self.stream(index).is_some_and(Stream::ends_over_bound) {
            self.supersede(now, index);
        }
        self.shed(now, index);
        self.stream(index).is_some_and(|stream| stream.ends_with(seq))
    }

    /// Gives up what must go by now of a stream of video; nothing of others.
    pub(super) fn shed(&mut self, now: Instant, index: StreamIndex) {
        while let Some((place, reason)) = self.next_to_shed(now, index) {
            self.give_up(now, index, place, reason);
        }
    }

    /// `samples` that were never the head of a stream were dropped: judged, if anything was promised.
    pub(super) fn judge_skipped(&mut self, index: StreamIndex, samples: usize) {
        for _ in 0..samples {
            let violated = self.discipline.handle_skipped(index);
            if let Some(stream) = self.stream_mut(index) {
                stream.count_violation(violated);
            }
        }
    }

    fn next_to_shed(&self, now: Instant, index: StreamIndex) -> Option<(usize, DropReason)> {
        let stream = self.stream(index).filter(|stream| stream.sheds())?;
        if stream.is_over_bound() {
            return stream.next_over_bound();
        }
        let full = |place| (place, DropReason::QueueFull);
        if stream.spec.contract.is_none() {
            return stream.oldest_b().filter(|_| stream.waiting() > WAITING_WITH_B).map(full);
        }
        if stream.waiting() < 2 || !self.tolerates_loss(index, stream) {
            return None;
        }
        let goes = |place: &usize| stream.is_short() || self.delays_another(now, stream, *place);
        let superseded = || {
            let place = stream.last_p_of_a_group().filter(goes)?;
            Some((place, DropReason::Superseded))
        };
        stream.oldest_b().filter(goes).map(full).or_else(superseded)
    }

    /// An I or P that waits behind `place` cannot arrive in time if everything before it is sent.
    fn delays_another(&self, now: Instant, stream: &Stream, place: usize) -> bool {
        let Some(contract) = stream.spec.contract else { return false };
        let mut bytes = 0;
        stream.queue.iter().enumerate().any(|(at, sample)| {
            bytes += sample.payload.len();
            let service = self.service(bytes - stream.head_sent);
            // What may come between: a frame that is on its way, and control's share of the time.
            let control = service.mul_div(1, CONTROL_SHARE - 1);
            let finish = now + service.saturating_add(control).saturating_add(self.frame_time());
            let due = (sample.born + stream.spec.upstream).min(now) + contract.deadline;
            at > place && sample.kind != Kind::VideoB && finish > due
        })
    }

    /// One more miss breaks no promise that still holds.
    fn tolerates_loss(&self, index: StreamIndex, stream: &Stream) -> bool {
        let unlimited = stream.spec.contract.is_some_and(|contract| contract.loss.y() == 0);
        let window = self.discipline.window(index);
        stream.violated || unlimited || window.is_some_and(|window| window.x > 0)
    }

    /// The I that came last supersedes the Ps and Bs that wait before it.
    fn supersede(&mut self, now: Instant, index: StreamIndex) {
        let end = self.stream(index).map_or(0, |stream| stream.waiting().saturating_sub(1));
        for place in (0..end).rev() {
            if self.stream(index).is_some_and(|stream| stream.needs_others(place)) {
                self.give_up(now, index, place, DropReason::Superseded);
            }
        }
    }

    /// Drops a sample that waits and has not begun.
    fn give_up(&mut self, now: Instant, index: StreamIndex, place: usize, reason: DropReason) {
        let Some(stream) = self.stream_mut(index) else { return };
        stream.remove(place, reason);
        if place > 0 {
            self.judge_skipped(index, 1);
            return;
        }
        let violated = self.discipline.remove_head(index);
        if let Some(stream) = self.stream_mut(index) {
            stream.count_violation(violated);
        }
        self.announce_head(now, index);
    }
}

impl Stream {
    fn video_limit(&self) -> usize {
        if self.spec.contract.is_some() { self.limit } else { VIDEO_MAX }
    }

    fn is_over_bound(&self) -> bool {
        self.waiting() > self.video_limit()
            || self.queue_bytes > WAITING_BYTES_MAX && self.waiting() > 1
    }

    /// It is over its bound, and what came last is an I.
    fn ends_over_bound(&self) -> bool {
        self.is_over_bound() && self.queue.back().is_some_and(|last| last.kind == Kind::VideoI)
    }

    fn ends_with(&self, seq: u64) -> bool {
        self.queue.back().is_some_and(|last| last.seq == seq)
    }

    /// The samples that have not begun, with their places.
    fn unbegun(&self) -> impl DoubleEndedIterator<Item = (usize, Kind)> {
        let kinds = self.queue.iter().map(|sample| sample.kind).enumerate();
        kinds.skip(usize::from(self.head_begun))
    }

    fn oldest_b(&self) -> Option<usize> {
        self.unbegun().find(|(_, kind)| *kind == Kind::VideoB).map(|(place, _)| place)
    }

    /// A P that nothing which waits needs, because an I is next.
    fn last_p_of_a_group(&self) -> Option<usize> {
        let next_is_i = |place: usize| self.queue.get(place + 1).map(|next| next.kind);
        self.unbegun()
            .find(|&(place, kind)| kind == Kind::VideoP && next_is_i(place) == Some(Kind::VideoI))
            .map(|(place, _)| place)
    }

    /// The sample at `place` is a P or B that has not begun.
    fn needs_others(&self, place: usize) -> bool {
        let kind = self.unbegun().find(|(at, _)| *at == place).map(|(_, kind)| kind);
        matches!(kind, Some(Kind::VideoP | Kind::VideoB))
    }

    /// What goes first where too much waits.
    fn next_over_bound(&self) -> Option<(usize, DropReason)> {
        if let Some(place) = self.oldest_b() {
            return Some((place, DropReason::QueueFull));
        }
        let (last, kind) = self.unbegun().next_back().filter(|(place, _)| *place > 0)?;
        if kind != Kind::VideoI {
            return Some((last, DropReason::QueueFull));
        }
        // Less may wait than when they came: of Ps the end of a group goes before its front.
        if let Some(place) = self.last_p_of_a_group() {
            return Some((place, DropReason::Superseded));
        }
        // No P waits any more: of Is the oldest is worth least.
        let oldest = self.unbegun().next().filter(|(place, _)| *place < last);
        oldest.map(|(place, _)| (place, DropReason::Superseded))
    }

    /// Drops the sample at `place`, which has not begun.
    fn remove(&mut self, place: usize, reason: DropReason) {
        let Some(sample) = self.queue.remove(place) else { return };
        self.queue_bytes -= sample.payload.len();
        if place == 0 {
            self.head_changed();
        }
        self.counters.drops.add(reason, 1);
        self.gate_after(place, sample.kind);
    }

    /// What was at `place` was dropped: if nothing that waits behind it begins anew, neither does what
    /// comes.
    pub(super) fn gate_after(&mut self, place: usize, kind: Kind) {
        if !self.queue.iter().skip(place).any(|sample| sample.kind == Kind::VideoI) {
            self.gate.broke(kind);
        }
    }

    /// A head of `kind` was dropped: drops what waits behind it and needs it. Returns how many.
    pub(super) fn drop_tail(&mut self, kind: Kind) -> usize {
        if !matches!(kind, Kind::VideoI | Kind::VideoP) {
            return 0;
        }
        let next_i = self.queue.iter().position(|sample| sample.kind == Kind::VideoI);
        let end = next_i.unwrap_or(self.queue.len());
        let tail: Vec<usize> = (0..end).rev().filter(|&place| self.needs_others(place)).collect();
        tail.iter().for_each(|&place| self.remove(place, DropReason::Undecodable));
        tail.len()
    }

    /// A sample missed its deadline.
    pub(super) fn note_miss(&mut self) {
        self.violated &= self.is_short();
        self.last_miss = Some(self.counters.offered);
    }

    pub(super) fn count_violation(&mut self, violated: bool) {
        self.counters.violations += u64::from(violated);
        self.violated |= violated;
    }

    fn is_short(&self) -> bool {
        self.last_miss.is_some_and(|at| self.counters.offered - at < SHORT_FOR)
    }
}
