//! The use of reservations with an idle time.

use super::{Admission, Standing};
use crate::control::contracts::pair::Pair;
use crate::control::data::ids::PairKey;
use crate::ids::PublisherId;
use paceline_admit::reserve::Key;
use std::collections::BTreeSet;

impl Admission {
    /// Returns `pair` as one that requests its reservation again if its publisher has sent a sample.
    pub(in crate::control) fn awoken<'a>(&self, pair: Pair<'a>) -> Pair<'a> {
        Pair { without: pair.without.filter(|_| !self.awake.contains(&pair.key())), ..pair }
    }

    /// Returns the granted reservations with an idle time that publishers of `used` need.
    pub(in crate::control) fn used_keys(&self, used: &BTreeSet<PublisherId>) -> Vec<Key> {
        let asked = self.asks.iter().filter(|((_, publisher), asked)| {
            asked.basis.request.idle.is_some() && used.contains(publisher)
        });
        asked.filter_map(|(_, asked)| asked.key).collect()
    }

    /// Returns the request of a pair if a path has granted it and no change is pending.
    pub(in crate::control) fn granted_revision(&self, pair: PairKey) -> Option<u64> {
        let asked = self.asks.get(&pair).filter(|asked| asked.standing == Standing::Granted)?;
        Some(asked.basis.request.revision)
    }

    /// Returns true if a refusal of the pair has been reported.
    pub(in crate::control) fn is_refused(&self, pair: PairKey) -> bool {
        self.backoffs.get(&pair).is_some_and(|backoff| backoff.refusal.is_some())
    }
}
