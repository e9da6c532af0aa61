//! Load shedding for video: B pictures before P before I, and undecodable pictures together with their
//! reference.
//!
//! One rule applies to every stream whose publisher declares video. Each sent sample follows every sample
//! that it references, since the stream or its hop came up.
//!
//! *Best effort.* While more than 4 samples are queued, unsent Bs are shed, oldest first. When more than 32
//! samples or more than 4 MiB are queued, the oldest B is shed. If there is none, the newest P is shed, and
//! then all samples up to the next I. That I, or one that arrives at a full queue, supersedes the queued Ps
//! and Bs. If only Is are queued, the oldest is shed. So no P is shed for lack of room while a B is queued,
//! and no I while a P is queued. A link that can carry the reference pictures loses none of them.
//!
//! *Contracted.* A sample that can no longer arrive in time is dropped when the discipline reaches it, and an
//! I or P takes its tail with it. Earlier shedding drops Bs, oldest first, and then Ps that precede a queued
//! I, from the end of their group. It happens in two cases:
//! - A queued I or P behind them could not arrive in time even if the link carried nothing else but control
//!   and one more frame.
//! - One of the last 64 samples missed its deadline and other samples are queued too, since other streams use
//!   a share of the link.
//!
//! Neither case breaks the contract. Shedding stops when the window tolerates no further miss, unless a
//! window was violated since the last 64 good samples. A stream that is alone on the link thus sheds Bs
//! first, as far as the contract allows. On a shared link, the first miss may hit any sample. Every sample
//! that such a stream drops while its hop is up counts as a miss.

use super::stream::{Offer, Queued, Stream};
use super::{Link, StreamIndex};
use crate::budget::CONTROL_SHARE;
use crate::reason::DropReason;
use crate::sample::Kind;
use paceline_sched::Instant;
use paceline_sched::Scheduler;

/// The number of queued samples of a best-effort stream above which Bs are shed.
const WAITING_WITH_B: usize = 4;
/// The maximum number of queued samples of a best-effort video stream.
const VIDEO_MAX: usize = 32;
/// The number of samples after a miss during which a contracted stream counts as short of time.
const SHORT_FOR: u64 = 64;

impl Link {
    /// Queues a sample on a video stream. Returns `false` if it was dropped.
    pub(super) fn handle_video(
        &mut self,
        now: Instant,
        index: StreamIndex,
        sample: Queued,
    ) -> bool {
        let seq = sample.seq;
        let Some(stream) = self.streams.get_mut(index) else { return false };
        let renews = sample.kind == Kind::VideoI && !stream.gate.is_open();
        match stream.offer(now, sample) {
            Offer::IsHead => self.announce_head(now, index),
            Offer::Waits | Offer::ReplacedHead => {}
            Offer::Dropped => {
                self.judge_skipped(index, 1);
                return false;
            }
        }
        if renews || self.streams.get(index).is_some_and(Stream::ends_over_bound) {
            self.supersede(now, index);
        }
        self.shed(now, index);
        self.streams.get(index).is_some_and(|stream| stream.ends_with(seq))
    }

    /// Sheds queued samples of a video stream as far as necessary. No effect on other streams.
    pub(super) fn shed(&mut self, now: Instant, index: StreamIndex) {
        while let Some((place, reason)) = self.next_to_shed(now, index) {
            self.give_up(now, index, place, reason);
        }
    }

    /// Counts `samples` dropped samples that never were a stream's head as misses, if the stream has a
    /// contract.
    pub(super) fn judge_skipped(&mut self, index: StreamIndex, samples: usize) {
        for _ in 0..samples {
            let violated = self.discipline.handle_skipped(index);
            if let Some(stream) = self.streams.get_mut(index) {
                stream.count_violation(violated);
            }
        }
    }

    fn next_to_shed(&self, now: Instant, index: StreamIndex) -> Option<(usize, DropReason)> {
        let stream = self.streams.get(index).filter(|stream| stream.sheds())?;
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

    /// Returns `true` if a later I or P cannot arrive in time when everything before it, including `place`,
    /// is sent.
    fn delays_another(&self, now: Instant, stream: &Stream, place: usize) -> bool {
        let Some(contract) = stream.spec.contract else { return false };
        let mut bytes = 0;
        stream.queue.iter().enumerate().any(|(at, sample)| {
            bytes += sample.payload.len();
            let service = self.pacer.wire.service(bytes - stream.head_sent);
            // Traffic that may intervene: the frames in transmission, and control's share of the time.
            let control = service.mul_div(1, CONTROL_SHARE - 1);
            let finish =
                now + service.saturating_add(control).saturating_add(self.pacer.wire.burst());
            let due = (sample.published_at + stream.spec.upstream).min(now) + contract.deadline;
            at > place && matches!(sample.kind, Kind::VideoI | Kind::VideoP) && finish > due
        })
    }

    /// Returns `true` if one more miss breaks no unbroken contract.
    fn tolerates_loss(&self, index: StreamIndex, stream: &Stream) -> bool {
        let unlimited = stream.spec.contract.is_some_and(|contract| contract.loss.y() == 0);
        let window = self.discipline.window(index);
        stream.violated || unlimited || window.is_some_and(|window| window.x > 0)
    }

    /// Drops the Ps and Bs that the newest I supersedes.
    fn supersede(&mut self, now: Instant, index: StreamIndex) {
        let end = self.streams.get(index).map_or(0, |stream| stream.waiting().saturating_sub(1));
        for place in (0..end).rev() {
            if self.streams.get(index).is_some_and(|stream| stream.needs_others(place)) {
                self.give_up(now, index, place, DropReason::Superseded);
            }
        }
    }

    /// Drops the queued sample at `place`, whose sending has not begun.
    fn give_up(&mut self, now: Instant, index: StreamIndex, place: usize, reason: DropReason) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        stream.remove(place, reason);
        if place > 0 {
            self.judge_skipped(index, 1);
            return;
        }
        let violated = self.discipline.remove_head(index);
        if let Some(stream) = self.streams.get_mut(index) {
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
            || self.queue_bytes > self.spec.waiting_bytes_max() && self.waiting() > 1
    }

    /// Returns `true` if the queue exceeds its bound and ends with an I.
    fn ends_over_bound(&self) -> bool {
        self.is_over_bound() && self.queue.back().is_some_and(|last| last.kind == Kind::VideoI)
    }

    fn ends_with(&self, seq: u64) -> bool {
        self.queue.back().is_some_and(|last| last.seq == seq)
    }

    /// Iterates over the kinds of the samples whose sending has not begun, with their positions.
    fn unbegun(&self) -> impl DoubleEndedIterator<Item = (usize, Kind)> {
        let kinds = self.queue.iter().map(|sample| sample.kind).enumerate();
        kinds.skip(usize::from(self.head_begun))
    }

    fn oldest_b(&self) -> Option<usize> {
        self.unbegun().find(|(_, kind)| *kind == Kind::VideoB).map(|(place, _)| place)
    }

    /// Returns a P that no queued sample references, because an I without leading samples follows it.
    fn last_p_of_a_group(&self) -> Option<usize> {
        let kind_at = |place: usize| self.queue.get(place).map(|sample| sample.kind);
        let is_last = |place: usize| {
            kind_at(place + 1) == Some(Kind::VideoI)
                && kind_at(place + 2) != Some(Kind::VideoLeading)
        };
        self.unbegun()
            .find(|&(place, kind)| kind == Kind::VideoP && is_last(place))
            .map(|(place, _)| place)
    }

    /// Returns `true` if the sample at `place` is an unsent P or B.
    fn needs_others(&self, place: usize) -> bool {
        let kind = self.unbegun().find(|(at, _)| *at == place).map(|(_, kind)| kind);
        kind.is_some_and(|kind| kind.is_video() && kind != Kind::VideoI)
    }

    /// Returns the first sample to shed from a queue over its bound.
    fn next_over_bound(&self) -> Option<(usize, DropReason)> {
        if let Some(place) = self.oldest_b() {
            return Some((place, DropReason::QueueFull));
        }
        let (last, kind) = self.unbegun().next_back().filter(|(place, _)| *place > 0)?;
        if kind != Kind::VideoI {
            return Some((last, DropReason::QueueFull));
        }
        // The limit was lowered after they were queued: shed Ps from the end of a group.
        if let Some(place) = self.last_p_of_a_group() {
            return Some((place, DropReason::Superseded));
        }
        // No P is queued: shed the oldest I.
        let oldest = self.unbegun().next().filter(|(place, _)| *place < last);
        oldest.map(|(place, _)| (place, DropReason::Superseded))
    }

    /// Drops the sample at `place`, whose sending has not begun.
    fn remove(&mut self, place: usize, reason: DropReason) {
        let Some(sample) = self.queue.remove(place) else { return };
        self.count_out(&sample);
        if place == 0 {
            self.head_changed();
        }
        self.counters.drops.add(reason, 1);
        self.gate_after(place, sample.kind);
    }

    /// Updates the decode gate after the sample at `place` was dropped. A queued I behind it restarts
    /// decoding, except of its leading samples.
    pub(super) fn gate_after(&mut self, place: usize, kind: Kind) {
        let behind = self.queue.iter().skip(place);
        match behind.filter(|sample| sample.kind == Kind::VideoI).take(2).count() {
            0 => self.gate.broke(kind),
            1 if matches!(kind, Kind::VideoI | Kind::VideoP) => {
                self.gate.broke(Kind::VideoLeading);
            }
            _ => {}
        }
    }

    /// Drops the queued samples that depend on a dropped head of `kind`. Returns their number.
    pub(super) fn drop_tail(&mut self, kind: Kind) -> usize {
        let mut groups = 0;
        let mut tail = Vec::new();
        for (place, sample) in self.queue.iter().enumerate() {
            groups += u32::from(sample.kind == Kind::VideoI);
            let depends = match (kind, groups) {
                (Kind::VideoI | Kind::VideoP, 0) => self.needs_others(place),
                (Kind::VideoI | Kind::VideoP, 1) | (Kind::VideoLeading, 0) => {
                    sample.kind == Kind::VideoLeading
                }
                _ => break,
            };
            if depends {
                tail.push(place);
            }
        }
        tail.iter().rev().for_each(|&place| self.remove(place, DropReason::Undecodable));
        tail.len()
    }

    /// Records a missed deadline.
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
