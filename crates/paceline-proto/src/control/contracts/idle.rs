//! Idle reservations: released when a publisher pauses, and requested again by its next sample.
//!
//! The publisher's node reports use to the reservation ([`Control::handle_published`]). After the idle time the
//! reservation is closed, and the node marks the pair in its record, so that every node of the path carries it as
//! best effort. The mark stays until the path has answered the new request: samples before a grant are sent as
//! best effort.

use crate::control::Control;
use crate::control::data::ids::PairKey;
use crate::control::membership::registry::{Change, EntryKey, Mark};
use crate::ids::PublisherId;
use paceline_admit::reserve::{Key, Reason};
use paceline_sched::Instant;
use std::collections::BTreeSet;

impl Control {
    /// Reports that publishers of this node have sent samples since the last report. Call this a few times per
    /// second, also without samples: it restarts the idle time of their reservations, requests released ones again, and
    /// releases unused ones.
    pub fn handle_published(&mut self, now: Instant, used: &BTreeSet<PublisherId>) {
        self.advance(now);
        for key in self.contracts.admission.used_keys(used) {
            self.contracts.admission.reservations.handle_used(self.now, key);
        }
        self.contracts.admission.reservations.close_unused(self.now);
        self.follow_reservations();
        let marks =
            self.membership.registry.record(self.me).into_iter().flat_map(|record| &record.marks);
        let idle = marks.filter(|(key, (_, mark))| *mark == Mark::Idle && used.contains(&key.1));
        for (key, _) in idle {
            self.dirty |= self.contracts.admission.pairs.wake(*key);
        }
    }

    /// Handles the release of an unused reservation of this node.
    pub(in crate::control) fn idled(&mut self, key: Key) {
        self.dirty = true;
        let Some(pair) = self.contracts.admission.pair_of(key) else { return };
        let free = self
            .membership
            .registry
            .record(self.me)
            .map_or(0, |it| self.contracts.admission.free_marks(it));
        match self.contracts.admission.granted_revision(pair).filter(|_| free > 0) {
            Some(revision) => {
                self.contracts.admission.forget(self.now, pair);
                self.contracts.admission.pairs.idle(pair);
                self.announce(Change::Mark(pair, revision, Mark::Idle), None);
            }
            // A change is pending, or no mark is left: the pair requests its reservation again at once.
            None => {
                let survey =
                    self.contracts.admission.over(self.now, pair, self.me, Reason::Timeout);
                self.begin_survey(survey);
            }
        }
    }

    /// Ends the marks of idle pairs that no longer apply: the pair or its request has ended, or a path has answered.
    pub(in crate::control) fn end_idle_marks(&mut self) {
        let Some(mine) = self.membership.registry.record(self.me) else { return };
        let idle = mine.marks.iter().filter(|(_, (_, mark))| *mark == Mark::Idle);
        let ended = |(key, (revision, _)): &(&PairKey, &(u64, Mark))| {
            let (subscription, publisher) = **key;
            let request = self.subscription(subscription);
            let asks = request.is_some_and(|it| it.revision == *revision && it.idle.is_some());
            !asks
                || !mine.publishers.contains_key(&publisher)
                || self.contracts.admission.granted_revision(**key).is_some()
                || self.contracts.admission.is_refused(**key)
        };
        let ended: Vec<PairKey> = idle.filter(ended).map(|(key, _)| *key).collect();
        for (subscription, publisher) in ended {
            self.contracts.admission.pairs.end_idle((subscription, publisher));
            self.announce(Change::Remove(EntryKey::Mark((subscription, publisher))), None);
        }
    }
}
