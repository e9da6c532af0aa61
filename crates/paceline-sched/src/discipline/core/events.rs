//! The effects of the passage of time: periods begin, and heads are missed.

use super::super::rules::Rules;
use super::super::stream::Place;
use super::super::{Miss, StreamIndex};
use super::Core;
use super::head::charge;
use crate::time::Instant;
use crate::tournament::Key;

impl<R: Rules> Core<R> {
    /// Moves the heads whose period has begun or will begin soon, up to the first head that is missed at
    /// `now`.
    ///
    /// Returns that head.
    #[inline]
    pub(super) fn release(&mut self, now: Instant) -> Option<StreamIndex> {
        loop {
            let (at, slot) = self.lists.events.best();
            if at > now.as_nanos() || at == Key::ABSENT {
                return None;
            }
            let index = StreamIndex(slot);
            let (stream, clauses) = self.streams.get_mut(index)?;
            if !stream.waits() || stream.moves_at(clauses) > now {
                if !self.rules.handle_late_begin(stream) {
                    return Some(index);
                }
                self.lists.list(&mut self.rules, (stream, clauses), index);
                continue;
            }
            stream.place = stream.place_at(now, clauses);
            // The fast path of [`Lists::list`](super::Lists::list) for almost all heads whose period
            // begins.
            let ranked = stream.place == Place::Ranked;
            let rank = if ranked { self.rules.rank(stream) } else { None };
            match rank {
                Some(rank) => self.lists.put(index, rank, self.rules.expires_at(stream, clauses)),
                None => self.lists.list(&mut self.rules, (stream, clauses), index),
            }
            // Each step may reveal a stream that will be needed soon.
            if self.lists.ranks.tells() {
                self.look_ahead();
            }
        }
    }

    /// Returns the first miss known at `now`. Every listed stream must have a head.
    #[inline(never)]
    pub(super) fn find_missed(&mut self, now: Instant) -> Option<Miss> {
        // Each head is reported or moved past `now`, so the loop visits each head once.
        while let Some(index) = self.release(now) {
            let (stream, _) = self.streams.get_mut(index)?;
            if stream.drops() {
                // The head cannot end in time, and its contract drops late samples.
                let violated = charge(&mut self.rules, stream, 1);
                stream.place = Place::Nowhere;
                self.vacate(index);
                return Some(Miss { stream: index, dropped: true, violated });
            }
            let miss = self.postpone_missed(index, now);
            if miss.is_some() {
                return miss;
            }
        }
        None
    }

    /// Postpones a head that cannot end in time and is sent late. Returns a miss at its first deadline
    /// only.
    fn postpone_missed(&mut self, index: StreamIndex, now: Instant) -> Option<Miss> {
        let (stream, _) = self.streams.get_mut(index)?;
        let first = !stream.charged;
        let periods = stream.postpone(now);
        let violated = self.charge(index, periods);
        self.list_anew(index);
        first.then_some(Miss { stream: index, dropped: false, violated })
    }

    /// Returns the first change after `now`: at `at`, unless that is [`Key::ABSENT`], or at an instant
    /// from the rules.
    pub(super) fn first_change(&self, now: Instant, at: u64) -> Option<Instant> {
        let soonest = now.as_nanos().saturating_add(1);
        let at = (at < Key::ABSENT).then(|| Instant::from_nanos(at.max(soonest)));
        at.into_iter().chain(self.rules.next_change(now)).min()
    }
}
