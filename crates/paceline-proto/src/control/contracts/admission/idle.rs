//! The use of reservations with an idle time.

use super::Admission;
use crate::control::contracts::pair::Pair;
use crate::control::data::ids::PairKey;
use crate::ids::PublisherId;
use paceline_admit::reserve::Key;
use std::collections::BTreeSet;

impl Admission {
    /// Returns `pair` as one that requests its reservation again if its publisher has sent a sample.
    pub(in crate::control) fn awoken<'a>(&self, pair: Pair<'a>) -> Pair<'a> {
        Pair { without: pair.without.filter(|_| !self.pairs.is_awake(pair.key())), ..pair }
    }

    /// Returns the granted reservations with an idle time that publishers of `used` need.
    pub(in crate::control) fn used_keys(&self, used: &BTreeSet<PublisherId>) -> Vec<Key> {
        let its = self.pairs.iter().filter(|((_, publisher), _)| used.contains(publisher));
        let asked = its.filter_map(|(_, pair)| pair.asked());
        asked.filter(|asked| asked.basis.request.idle.is_some()).filter_map(|it| it.key).collect()
    }

    /// Returns the request of a pair if a path has granted it and no change is pending.
    pub(in crate::control) fn granted_revision(&self, pair: PairKey) -> Option<u64> {
        Some(self.pairs.get(pair)?.state.granted()?.basis.request.revision)
    }

    /// Returns true if a refusal of the pair has been reported.
    pub(in crate::control) fn is_refused(&self, pair: PairKey) -> bool {
        self.pairs.pause(pair).is_some_and(|backoff| backoff.refusal.is_some())
    }
}
