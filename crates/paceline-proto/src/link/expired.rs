//! Expiry of best-effort samples that were queued for too long: fresh samples are more useful than old ones.
//!
//! A sample expires if it was queued on this link longer than [`StreamSpec::max_wait`](super::StreamSpec)
//! before its first byte was sent. Only the wait on this link counts, not the sample's age. So a long path
//! alone causes no expiry, and each link bounds the delay that it adds. The check runs where it is cheap:
//! when the discipline picks the stream, when its class admits the head, and when the queue is full. The next
//! sample replaces an expired one in the schedule. So a stream that is scheduled less often than the limit
//! still sends the oldest sample within it.
//!
//! With video, the pictures that depend on an expired one are dropped with it, up to the next I. A P or B is
//! dropped earlier if sending it would make the next I expire, because the pictures behind an I depend on it.

use super::stream::{Queued, Stream};
use super::{Link, StreamIndex};
use crate::reason::DropReason;
use crate::sample::Kind;
use paceline_sched::{Duration, Instant};

impl Stream {
    /// Returns `true` if the head was queued for too long. A head that its class has charged and admitted
    /// does not expire, since the charge would be for a sample that never leaves.
    pub(super) fn head_has_expired(&self, now: Instant) -> bool {
        let Some(max_wait) = self.spec.max_wait else { return false };
        let waited = |since: Instant| now.since(since) > max_wait;
        !self.head_begun
            && !self.passed
            && self.queue.front().is_some_and(|head| waited(head.since))
    }

    /// Returns `true` if the head is a P or B, and sending it, which takes `service`, would make the next I
    /// expire.
    fn head_costs_an_i(&self, now: Instant, service: Duration) -> bool {
        let Some(max_wait) = self.spec.max_wait else { return false };
        let next_i = self.queue.iter().find(|queued| queued.kind == Kind::VideoI);
        let expires = |i: &Queued| (now + service).since(i.since) > max_wait;
        let needs_others = self.head().is_some_and(|head| head.kind != Kind::VideoI);
        needs_others && !self.head_begun && !self.passed && next_i.is_some_and(expires)
    }

    /// Drops the head and the pictures that depend on it.
    fn drop_head_and_tail(&mut self, reason: DropReason) {
        let kind = self.head().map(|sample| sample.kind);
        self.drop_head(reason);
        kind.into_iter().for_each(|kind| {
            self.drop_tail(kind);
        });
    }

    /// Drops expired heads and their dependants while `goes_on` returns `true`. Returns the number of dropped
    /// samples.
    fn drop_expired(&mut self, now: Instant, goes_on: impl Fn(&Self) -> bool) -> usize {
        let before = self.waiting();
        while self.head_has_expired(now) && goes_on(self) {
            self.drop_head_and_tail(DropReason::Expired);
        }
        before - self.waiting()
    }
}

impl Link {
    /// Returns the reason to drop the head of the stream to send instead of sending it, if any.
    pub(super) fn expiry(&self, now: Instant, index: StreamIndex) -> Option<DropReason> {
        let stream = self.streams.get(index)?;
        stream.spec.max_wait?;
        if stream.head_has_expired(now) {
            return Some(DropReason::Expired);
        }
        let costs =
            || stream.head_costs_an_i(now, self.pacer.wire.left(stream.head_left()).service);
        (stream.sheds() && costs()).then_some(DropReason::Superseded)
    }

    /// Drops expired samples at the front of the stream to send. Returns the number of dropped samples.
    pub(super) fn drop_expired(&mut self, now: Instant, index: StreamIndex) -> usize {
        let waiting = |link: &Self| link.streams.get(index).map_or(0, Stream::waiting);
        let before = waiting(self);
        while let Some(reason) = self.expiry(now, index)
            && let Some(stream) = self.streams.get_mut(index)
        {
            stream.drop_head_and_tail(reason);
        }
        self.replace_head(now, index);
        before - waiting(self)
    }

    /// Drops expired samples of a stream before its class is charged for the head, which the discipline does
    /// not know yet.
    pub(super) fn drop_expired_before_charging(&mut self, now: Instant, index: StreamIndex) {
        self.streams.get_mut(index).into_iter().for_each(|stream| {
            stream.drop_expired(now, |_| true);
        });
    }

    /// Drops expired samples of a full stream until it has room for a sample.
    pub(super) fn make_room(&mut self, now: Instant, index: StreamIndex) {
        let full = |stream: &Stream| !stream.has_room();
        let dropped =
            self.streams.get_mut(index).map_or(0, |stream| stream.drop_expired(now, full));
        if dropped > 0 {
            self.replace_head(now, index);
        }
    }
}
