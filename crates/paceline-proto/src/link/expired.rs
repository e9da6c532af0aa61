//! Best effort that has waited here for too long: fresh samples are worth more than old ones.
//!
//! A sample expires if it has waited for this link longer than [`StreamSpec::max_wait`](super::StreamSpec) before its
//! first byte was sent. Only the wait here counts, not the sample's age: a long path alone makes nothing expire, and
//! each link of a path bounds what it adds. The check is made where it costs nothing: when the discipline picks the
//! stream, when its class lets the head go, and when a new sample finds the queue full. The sample behind takes the
//! turn. So a stream whose turns are further apart than the limit still sends the oldest sample that is within it.
//!
//! Of video, the pictures that need an expired one are dropped with it, up to the next I. A P or B is dropped earlier if
//! sending it would make the next I expire: Is are worth most, and those behind them need them.

use super::stream::{Queued, Stream};
use super::{Link, StreamIndex};
use crate::reason::DropReason;
use crate::sample::Kind;
use paceline_sched::{Duration, Instant};

impl Stream {
    /// True if the head has waited for too long. What its class has charged for and let go does not expire: the
    /// class would be charged for samples that never leave.
    pub(super) fn head_has_expired(&self, now: Instant) -> bool {
        let Some(max_wait) = self.spec.max_wait else { return false };
        let waited = |since: Instant| now.since(since) > max_wait;
        !self.head_begun
            && !self.passed
            && self.queue.front().is_some_and(|head| waited(head.since))
    }

    /// True if the head is a P or B, and the next I would expire behind it if the head took the link for `service`.
    fn head_costs_an_i(&self, now: Instant, service: Duration) -> bool {
        let Some(max_wait) = self.spec.max_wait else { return false };
        let next_i = self.queue.iter().find(|queued| queued.kind == Kind::VideoI);
        let expires = |i: &Queued| (now + service).since(i.since) > max_wait;
        let needs_others = self.head().is_some_and(|head| head.kind != Kind::VideoI);
        needs_others && !self.head_begun && !self.passed && next_i.is_some_and(expires)
    }

    /// Drops the head, and what needs it.
    fn drop_head_and_tail(&mut self, reason: DropReason) {
        let kind = self.head().map(|sample| sample.kind);
        self.drop_head(reason);
        kind.into_iter().for_each(|kind| {
            self.drop_tail(kind);
        });
    }

    /// Drops heads that have expired, and what needs them, as long as it `goes_on`. Returns how many samples that were.
    fn drop_expired(&mut self, now: Instant, goes_on: impl Fn(&Self) -> bool) -> usize {
        let before = self.waiting();
        while self.head_has_expired(now) && goes_on(self) {
            self.drop_head_and_tail(DropReason::Expired);
        }
        before - self.waiting()
    }
}

impl Link {
    /// Why the head of a stream that is to send now is dropped instead, if it is.
    pub(super) fn expiry(&self, now: Instant, index: StreamIndex) -> Option<DropReason> {
        let stream = self.stream(index)?;
        stream.spec.max_wait?;
        if stream.head_has_expired(now) {
            return Some(DropReason::Expired);
        }
        let costs = || stream.head_costs_an_i(now, self.left(stream.head_left()).service);
        (stream.sheds() && costs()).then_some(DropReason::Superseded)
    }

    /// Drops what has expired at the front of a stream that is to send now. Returns how many samples that were.
    pub(super) fn drop_expired(&mut self, now: Instant, index: StreamIndex) -> usize {
        let waiting = |link: &Self| link.stream(index).map_or(0, Stream::waiting);
        let before = waiting(self);
        while let Some(reason) = self.expiry(now, index)
            && let Some(stream) = self.stream_mut(index)
        {
            stream.drop_head_and_tail(reason);
        }
        self.replace_head(now, index);
        before - waiting(self)
    }

    /// Drops what has expired of a stream whose class is about to be charged for the head, which the discipline does
    /// not know yet.
    pub(super) fn drop_expired_before_charging(&mut self, now: Instant, index: StreamIndex) {
        self.stream_mut(index).into_iter().for_each(|stream| {
            stream.drop_expired(now, |_| true);
        });
    }

    /// Drops what has expired of a stream that is full, until there is room for a sample.
    pub(super) fn make_room(&mut self, now: Instant, index: StreamIndex) {
        let full = |stream: &Stream| !stream.has_room();
        let dropped = self.stream_mut(index).map_or(0, |stream| stream.drop_expired(now, full));
        if dropped > 0 {
            self.replace_head(now, index);
        }
    }
}
