//! The history of the contracts of a node's publishers.

use paceline_proto::ids::{PublisherId, SubscriptionId};
use paceline_sched::Instant;
use std::collections::BTreeMap;

/// The instants at which a node learned of grants to its publishers, and of their ends.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    changes: BTreeMap<(SubscriptionId, PublisherId), Vec<(Instant, bool)>>,
}

impl Ledger {
    /// Records that a contract is in force from `at` on, or no longer.
    pub(super) fn note(&mut self, pair: (SubscriptionId, PublisherId), at: Instant, now: bool) {
        let changes = self.changes.entry(pair).or_default();
        if changes.last().is_some_and(|(_, before)| *before) != now {
            changes.push((at, now));
        }
    }

    /// Returns the changes of a contract, in order: the instant, and true if it is in force from then on.
    pub(super) fn of(&self, pair: (SubscriptionId, PublisherId)) -> &[(Instant, bool)] {
        self.changes.get(&pair).map(Vec::as_slice).unwrap_or_default()
    }
}
