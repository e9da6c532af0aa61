//! The common part of all disciplines: heads, eligibility and misses. A discipline adds the rank of
//! heads and the window rules.
//!
//! Two tournaments store the order of all streams. One ranks the heads, class before class, so its
//! winner is served next. The other orders the instants at which time alone changes a stream: its period
//! begins, or its head can no longer end in time.

mod events;
mod head;
mod streams;

use super::lists::{Lists, turn};
use super::rules::{Arrival, Rules};
use super::stream::{Place, Stream};
use super::{
    Earlier, Eligibility, Head, Left, Miss, Scheduler, Service, StreamIndex, Terms, WindowState,
};
use crate::time::{Duration, Instant};
use crate::tournament::{Key, Tournament};
use core::fmt::Debug;
use head::{begin, charge, end, meet};
use streams::Streams;

/// A link under the rules `R`.
#[derive(Clone, Debug)]
pub(super) struct Core<R: Rules> {
    rules: R,
    eligibility: Eligibility,
    streams: Streams<R::Own>,
    lists: Lists,
    announced: u64,
    /// The stream whose head was sent last and that is still listed. Its next head usually follows at
    /// once and then replaces the entry in one step.
    vacated: StreamIndex,
}

/// No stream; memory is exhausted before an index this large.
const NOBODY: StreamIndex = StreamIndex(u32::MAX);

impl<R: Rules> Core<R> {
    pub(super) fn new(rules: R, eligibility: Eligibility) -> Self {
        Self {
            rules,
            eligibility,
            streams: Streams::new(),
            lists: Lists { ranks: Tournament::new(), events: Tournament::new(), turns: 0 },
            announced: 0,
            vacated: NOBODY,
        }
    }

    /// Marks `index` as without a head. It stays listed until its next head or [`Self::settle`].
    #[inline]
    fn vacate(&mut self, index: StreamIndex) {
        if self.vacated != index {
            self.settle();
            self.vacated = index;
        }
    }

    /// Removes the vacated stream from the lists, so that every listed stream has a head.
    #[inline]
    fn settle(&mut self) {
        if self.vacated != NOBODY {
            self.unlist();
        }
    }

    /// Prefetches the data of streams that the next decisions will probably need.
    #[inline(never)]
    fn look_ahead(&mut self) {
        for slot in [self.lists.ranks.coming(), self.lists.events.coming()].into_iter().flatten() {
            self.streams.fetch(StreamIndex(slot));
            self.lists.ranks.fetch(slot);
            self.lists.events.fetch(slot);
        }
    }

    /// Removes the vacated stream from the lists, because no head followed at once.
    #[inline(never)]
    fn unlist(&mut self) {
        let index = core::mem::replace(&mut self.vacated, NOBODY);
        self.lists.ranks.set(index.0, Key::ABSENT);
        self.lists.events.set(index.0, Key::ABSENT);
        if let Some((stream, _)) = self.streams.get_mut(index) {
            self.rules.emptied(stream);
        }
    }

    /// Updates the head of `index` in the lists, after a change of its window or remaining service.
    fn list_anew(&mut self, index: StreamIndex) {
        let Some((stream, clauses)) = self.streams.get_mut(index).filter(|(s, _)| s.has_head())
        else {
            return;
        };
        let changes = stream.changes_at(self.rules.expires_at(stream, clauses), clauses);
        self.lists.events.set(index.0, changes.as_nanos());
        if stream.suspended || stream.place != Place::Ranked {
            return;
        }
        if let Some(rank) = self.rules.rank(stream) {
            self.lists.ranks.set(index.0, rank);
        }
    }

    /// Serves the head of a stream, on time or late, and begins the next one if there is one.
    #[inline(never)]
    fn serve(
        &mut self,
        index: StreamIndex,
        (bytes, finish): (u32, Instant),
        next: Option<Head>,
    ) -> Service {
        let nothing = Service { on_time: true, violated: false };
        let Some((stream, clauses)) = self.streams.get_mut(index) else { return nothing };
        let service = end(&mut self.rules, stream, bytes, finish);
        let Some(head) = next else {
            self.vacated = index;
            return service;
        };
        let Self { rules, lists, announced, eligibility, .. } = self;
        let how = (announced, *eligibility, true);
        begin(rules, lists, (stream, clauses), (index, head), how);
        service
    }

    /// Handles a service report for a stream without a head.
    #[cold]
    #[inline(never)]
    fn start(&mut self, index: StreamIndex, next: Option<Head>) -> Service {
        if let Some(head) = next {
            self.handle_head(index, head);
        }
        Service { on_time: true, violated: false }
    }

    /// Handles the rare case of a service report after another stream was vacated since the last pick.
    #[cold]
    #[inline(never)]
    fn settle_and_serve(
        &mut self,
        index: StreamIndex,
        served: (u32, Instant),
        next: Option<Head>,
    ) -> Service {
        self.settle();
        let (bytes, finish) = served;
        let service = self.handle_served(index, bytes, finish);
        self.start(index, next);
        service
    }

    /// Applies rule (B) for each of the `deadlines` that passed, but counts the sample once. Returns
    /// true if that violated the window.
    #[inline]
    fn charge(&mut self, index: StreamIndex, deadlines: u64) -> bool {
        self.streams
            .get_mut(index)
            .is_some_and(|(stream, _)| charge(&mut self.rules, stream, deadlines))
    }

    /// Returns the stream `index` if it has a contract and a head.
    fn promised_head(&self, index: StreamIndex) -> Option<&Stream<R::Own>> {
        let (stream, _) = self.streams.get(index)?;
        (stream.contracted() && stream.has_head()).then_some(stream)
    }
}

impl<R: Rules> Scheduler for Core<R> {
    fn reserve(&mut self, streams: usize) {
        self.streams.reserve(streams);
        self.lists.ranks.grow(streams);
        self.lists.events.grow(streams);
        self.rules.reserve(streams);
    }

    fn join(&mut self, index: StreamIndex, terms: impl Into<Terms>) {
        let terms = terms.into();
        self.leave(index);
        let slots = index.0 as usize + 1;
        if self.streams.len() < slots {
            // Reserve one twenty-fourth more. Doubling would leave half of the memory unused with many
            // streams.
            self.reserve(slots + slots / 24);
        }
        let own = self.rules.open(&terms);
        self.streams.put(index, &terms, own);
    }

    fn leave(&mut self, index: StreamIndex) {
        self.settle();
        let Some(mut stream) = self.streams.take(index) else { return };
        self.lists.ranks.set(index.0, Key::ABSENT);
        self.lists.events.set(index.0, Key::ABSENT);
        self.rules.closed(&mut stream);
    }

    #[inline]
    fn handle_head(&mut self, index: StreamIndex, head: Head) {
        let Some((stream, clauses)) = self.streams.get_mut(index) else { return };
        if stream.has_head() {
            return;
        }
        let follows = self.vacated == index;
        if follows {
            self.vacated = NOBODY;
        }
        let Self { rules, lists, announced, eligibility, .. } = self;
        let how = (announced, *eligibility, follows);
        begin(rules, lists, (stream, clauses), (index, head), how);
    }

    fn handle_demoted(&mut self, index: StreamIndex, head: Head) {
        // For the rules the stream pauses here: its earlier samples are already accounted for.
        self.settle();
        let Some((stream, clauses)) = self.streams.get_mut(index).filter(|(s, _)| !s.has_head())
        else {
            return;
        };
        stream.set_left(head.left);
        stream.begin_demoted(head.arrived, clauses);
        let (arrived, serial) = (head.arrived, self.announced);
        self.announced += 1;
        let due = stream.due(clauses);
        // It has no period by which it could be replaced.
        let (released, whole) = (arrived, true);
        let arrival = Arrival { index, follows: false, arrived, released, due, serial, whole };
        self.rules.announced(stream, arrival);
        stream.place = Place::Demoted;
        self.lists.list(&mut self.rules, (stream, clauses), index);
    }

    fn handle_long(&mut self, index: StreamIndex, over: Duration) {
        if self.eligibility != Eligibility::OncePerPeriod {
            return;
        }
        self.settle();
        let Some((stream, clauses)) = self.streams.get_mut(index).filter(|(s, _)| s.has_period())
        else {
            return;
        };
        stream.put_off(over);
        self.rules.postpone(&mut stream.own, over);
        stream.place = Place::Early;
        self.lists.list(&mut self.rules, (stream, clauses), index);
    }

    fn suspend(&mut self, index: StreamIndex) {
        self.settle();
        let Some((stream, clauses)) = self.streams.get_mut(index) else { return };
        if !core::mem::replace(&mut stream.suspended, true) {
            self.rules.suspended(stream);
        }
        if stream.has_head() {
            self.lists.ranks.set(index.0, Key::ABSENT);
            self.lists.events.set(index.0, self.rules.expires_at(stream, clauses).as_nanos());
        }
    }

    fn resume(&mut self, index: StreamIndex) {
        self.settle();
        let Some((stream, clauses)) = self.streams.get_mut(index) else { return };
        if core::mem::take(&mut stream.suspended) {
            self.rules.resumed(stream);
            if stream.has_head() {
                self.lists.list(&mut self.rules, (stream, clauses), index);
            }
        }
    }

    #[inline]
    fn pick(&mut self, now: Instant) -> Option<StreamIndex> {
        self.settle();
        if self.lists.events.best().0 <= now.as_nanos() {
            // A head that was missed and not polled stays listed.
            self.release(now);
        }
        self.rules.prepare(now, self.streams.slots(), &mut self.lists.ranks);
        if self.lists.ranks.tells() {
            self.look_ahead();
        }
        loop {
            let (rank, slot) = self.lists.ranks.best();
            if rank.is_absent() {
                return None;
            }
            let index = StreamIndex(slot);
            if !R::RECONSIDERS {
                return Some(index);
            }
            let (stream, _) = self.streams.get_mut(index)?;
            let again = match stream.place {
                Place::Ranked => self.rules.reconsider(stream),
                Place::Nowhere
                | Place::Early
                | Place::Ahead
                | Place::Round
                | Place::Demoted
                | Place::Background => None,
            };
            match again {
                Some(rank) => self.lists.ranks.set(slot, rank),
                None => return Some(index),
            }
        }
    }

    fn handle_segment(&mut self, index: StreamIndex, bytes: u32, left: Left) {
        let Some((stream, clauses)) = self.streams.get_mut(index).filter(|(s, _)| s.has_head())
        else {
            return;
        };
        stream.set_left(left);
        let rank = match stream.place {
            Place::Ranked => self.rules.sent(stream, bytes),
            Place::Early | Place::Round | Place::Demoted | Place::Background => {
                self.lists.turns += 1;
                Some(turn(stream.place, self.lists.turns))
            }
            Place::Nowhere | Place::Ahead => None,
        };
        let changes = stream.changes_at(self.rules.expires_at(stream, clauses), clauses);
        self.lists.events.set(index.0, changes.as_nanos());
        if let Some(rank) = rank.filter(|_| !stream.suspended) {
            self.lists.ranks.set(index.0, rank);
        }
    }

    #[inline]
    fn handle_served(&mut self, index: StreamIndex, bytes: u32, finish: Instant) -> Service {
        self.handle_served_and_next(index, (bytes, finish), None)
    }

    #[inline]
    fn handle_served_and_next(
        &mut self,
        index: StreamIndex,
        (bytes, finish): (u32, Instant),
        next: Option<Head>,
    ) -> Service {
        let Some((stream, clauses)) = self.streams.get_mut(index).filter(|(s, _)| s.has_head())
        else {
            return self.start(index, next);
        };
        if self.vacated != NOBODY {
            return self.settle_and_serve(index, (bytes, finish), next);
        }
        let Some(head) = next.filter(|_| stream.is_met(finish)) else {
            return self.serve(index, (bytes, finish), next);
        };
        // The fast path of [`Self::serve`] for almost all heads: contracted, on time and followed by
        // another. It reads no field of the stream that was written just now.
        let Self { rules, lists, announced, eligibility, .. } = self;
        let how = (announced, *eligibility, true);
        meet(rules, stream, bytes);
        begin(rules, lists, (stream, clauses), (index, head), how);
        Service { on_time: true, violated: false }
    }

    fn handle_left(&mut self, index: StreamIndex, left: Left) {
        let Some((stream, _)) = self.streams.get_mut(index).filter(|(s, _)| s.has_head()) else {
            return;
        };
        stream.set_left(left);
        self.list_anew(index);
    }

    #[inline]
    fn poll_missed(&mut self, now: Instant) -> Option<Miss> {
        self.settle();
        if self.lists.events.best().0 > now.as_nanos() { None } else { self.find_missed(now) }
    }

    fn remove_head(&mut self, index: StreamIndex) -> bool {
        let Some((stream, _)) = self.streams.get_mut(index).filter(|(s, _)| s.has_head()) else {
            return false;
        };
        stream.place = Place::Nowhere;
        let judged = !stream.contracted() || stream.charged;
        let violated = !judged && self.charge(index, 1);
        self.vacate(index);
        violated
    }

    fn handle_skipped(&mut self, index: StreamIndex) -> bool {
        self.settle();
        let contracted = self.streams.get_mut(index).filter(|(stream, _)| stream.contracted());
        let Some((stream, _)) = contracted else { return false };
        let loss = stream.loss();
        self.rules.missed(&mut stream.own, loss, 1);
        let violated = stream.account.record_missed(loss);
        self.list_anew(index);
        violated
    }

    fn handle_earlier(&mut self, index: StreamIndex, Earlier { samples, missed }: Earlier) {
        self.settle();
        let contracted = self.streams.get_mut(index).filter(|(stream, _)| stream.contracted());
        let Some((stream, _)) = contracted else { return };
        let loss = stream.loss();
        for at in 0..samples.checked_rem(u64::from(loss.y())).unwrap_or_default() {
            if at < u64::from(missed) {
                self.rules.missed(&mut stream.own, loss, 1);
                stream.account.record_missed(loss);
            } else {
                self.rules.met(&mut stream.own, loss);
                stream.account.record_met(loss);
            }
        }
        self.list_anew(index);
    }

    fn earlier(&self, index: StreamIndex) -> Option<Earlier> {
        let (stream, _) = self.streams.get(index).filter(|(stream, _)| stream.contracted())?;
        Some(stream.earlier())
    }

    fn next_change(&self, now: Instant) -> Option<Instant> {
        let (at, slot) = self.lists.events.best();
        if self.vacated == StreamIndex(slot) {
            // The entry of the vacated stream is out of date; the next call finds the new winner.
            return Some(Instant::from_nanos(now.as_nanos().saturating_add(1)));
        }
        self.first_change(now, at)
    }

    fn next_wake(&self, now: Instant) -> Option<Instant> {
        if self.vacated != NOBODY {
            return self.next_change(now);
        }
        let at =
            self.lists.events.least_where(|slot, at| match self.streams.get(StreamIndex(slot)) {
                Some((stream, clauses)) if stream.charged && stream.waits() => {
                    stream.moves_at(clauses).as_nanos().max(at)
                }
                Some((stream, _)) if stream.charged => Key::ABSENT,
                Some(_) | None => at,
            });
        self.first_change(now, at)
    }

    fn window(&self, index: StreamIndex) -> Option<WindowState> {
        let (stream, _) = self.streams.get(index).filter(|(stream, _)| stream.contracted())?;
        Some(self.rules.window(stream))
    }

    fn deadline(&self, index: StreamIndex) -> Option<Instant> {
        let stream = self.promised_head(index)?;
        Some(stream.deadline)
    }

    fn virtual_deadline(&self, index: StreamIndex) -> Option<Instant> {
        let stream = self.promised_head(index)?;
        let ranked = stream.place == Place::Ranked;
        Some(if ranked { self.rules.virtual_deadline(stream) } else { Instant::FAR })
    }
}
