//! The pace at which the records of other nodes may change.
//!
//! A changed record costs each node a round of decisions, and each link its bytes. [`crate::guard`] bounds what a neighbour
//! sends, but below its limits one record that changes all the time would still keep every node busy. So each node has a
//! budget for the changes of its record, far above the needs of programs. The leaves of one identity share one, however many
//! nodes and connections they are. Changes beyond it are dropped unread: the next change, or the next digest, finds the gap,
//! and then one message has the newest state of all of them.
//!
//! A whole record in place of a known one costs more than its entries: every node passes all of it on, and nodes that change
//! their records send the changes.

use crate::ids::NodeId;
use crate::rights::PeerName;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The owner of a budget.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Payer {
    /// A node.
    Node(NodeId),
    /// The leaves with this certificate or account, and the processes of their hosts.
    Identity(PeerName),
}

/// The changes per second that a record may have for long, and those at once: tens of thousands of declarations of a process.
const PER_S: u64 = 200;
const BURST: u64 = 100_000;
/// One change per so many bytes of a message, and of a whole record in place of a known one.
const BYTES: u64 = 100;
const AGAIN_BYTES: u64 = 10;
/// The nodes whose budgets are kept; the others have not changed lately.
const NODES_MAX: usize = 16_384;

/// The budgets of other nodes for the changes of their records.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The instant at which the changes of a payer are paid for.
    paid: BTreeMap<Payer, Instant>,
}

impl Pace {
    /// Returns true if records for which `payer` pays have changed too often.
    pub(super) fn is_over(&self, now: Instant, payer: &Payer) -> bool {
        self.paid.get(payer).is_some_and(|paid| paid.since(now) > time_of(BURST))
    }

    /// Charges a change by a message of so many bytes.
    pub(super) fn charge(&mut self, now: Instant, payer: Payer, bytes: usize) {
        self.pay(now, payer, 1 + bytes as u64 / BYTES);
    }

    /// Charges a whole record of so many bytes that replaces a known one.
    pub(super) fn charge_again(&mut self, now: Instant, payer: Payer, bytes: usize) {
        self.pay(now, payer, 1 + bytes as u64 / AGAIN_BYTES);
    }

    fn pay(&mut self, now: Instant, payer: Payer, changes: u64) {
        if self.paid.len() >= NODES_MAX {
            self.paid.retain(|_, paid| *paid > now);
        }
        let paid = self.paid.entry(payer).or_default();
        // A single record is never so long that the next change waits for minutes.
        *paid = (*paid).max(now) + time_of(changes.min(BURST / 10));
    }
}

fn time_of(changes: u64) -> Duration {
    Duration::from_secs(1).mul_div(changes, PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Payer = Payer::Node(NodeId(3));

    #[test]
    fn a_node_declares_much_at_once_and_changes_little_for_long() {
        let (mut pace, start) = (Pace::default(), Instant::from_millis(1_000));
        for _ in 0..BURST {
            assert!(!pace.is_over(start, &NODE));
            pace.charge(start, NODE, 60);
        }
        pace.charge(start, NODE, 60);
        assert!(pace.is_over(start, &NODE) && !pace.is_over(start, &Payer::Node(NodeId(4))));
        let mut changes = 0;
        for ms in 0..60_000 {
            let now = start + Duration::from_millis(ms);
            if !pace.is_over(now, &NODE) {
                pace.charge(now, NODE, 60);
                changes += 1;
            }
        }
        assert!((11_900..=12_001).contains(&changes), "{changes}");
    }

    /// Returns the numbers of the records of 18 KB that are taken, of 900 per second for a minute.
    fn taken(charge: fn(&mut Pace, Instant, Payer, usize)) -> Vec<u64> {
        let (mut pace, start) = (Pace::default(), Instant::from_millis(1_000));
        let taken = (0..54_000).filter(|n| {
            let now = start + Duration::from_micros(n * 1_111);
            let may = !pace.is_over(now, &NODE);
            if may {
                charge(&mut pace, now, NODE, 18_000);
            }
            may
        });
        taken.collect()
    }

    #[test]
    fn whole_records_cost_by_their_length() {
        for (charge, least) in
            [(Pace::charge as fn(&mut _, _, _, _), 600), (Pace::charge_again, 60)]
        {
            let taken = taken(charge);
            let first = taken.iter().filter(|n| **n < 900).count();
            println!(
                "of 54,000 records in a minute, {} are taken, {first} in the first second",
                taken.len()
            );
            assert!((least..least + least / 8).contains(&taken.len()), "{}", taken.len());
        }
    }
}
