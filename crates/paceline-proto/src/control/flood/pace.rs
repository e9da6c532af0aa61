//! The pace at which the records of other nodes may change.
//!
//! A changed record costs each node a round of decisions, and each link its bytes. [`crate::guard`] bounds what a neighbour
//! sends, but below its limits one record that changes all the time would still keep every node busy. So each node has a
//! budget for the changes of its record, far above what programs declare. Changes beyond it are left out unread: the next
//! change, or the next digest, finds the gap, and then one message has the newest state of all of them.

use crate::ids::NodeId;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The changes per second that a record may have for long, and those at once: tens of thousands of declarations of a process.
const PER_S: u64 = 200;
const BURST: u64 = 100_000;
/// One change per so many bytes of a message.
const BYTES: u64 = 100;
/// The nodes whose budgets are kept; the others have not changed lately.
const NODES_MAX: usize = 16_384;

/// The budgets of other nodes for the changes of their records.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The instant at which the changes of a node are paid for.
    paid: BTreeMap<NodeId, Instant>,
}

impl Pace {
    /// Returns true if the record of `node` has changed too often.
    pub(super) fn is_over(&self, now: Instant, node: NodeId) -> bool {
        self.paid.get(&node).is_some_and(|paid| paid.since(now) > time_of(BURST))
    }

    /// Charges a change by a message of so many bytes.
    pub(super) fn charge(&mut self, now: Instant, node: NodeId, bytes: usize) {
        if self.paid.len() >= NODES_MAX {
            self.paid.retain(|_, paid| *paid > now);
        }
        let paid = self.paid.entry(node).or_default();
        // A single record is never so long that the next change waits for minutes.
        let cost = (1 + bytes as u64 / BYTES).min(BURST / 10);
        *paid = (*paid).max(now) + time_of(cost);
    }
}

fn time_of(changes: u64) -> Duration {
    Duration::from_secs(1).mul_div(changes, PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(3);

    #[test]
    fn a_node_declares_much_at_once_and_changes_little_for_long() {
        let (mut pace, start) = (Pace::default(), Instant::from_millis(1_000));
        for _ in 0..BURST {
            assert!(!pace.is_over(start, NODE));
            pace.charge(start, NODE, 60);
        }
        pace.charge(start, NODE, 60);
        assert!(pace.is_over(start, NODE) && !pace.is_over(start, NodeId(4)));
        let mut changes = 0;
        for ms in 0..60_000 {
            let now = start + Duration::from_millis(ms);
            if !pace.is_over(now, NODE) {
                pace.charge(now, NODE, 60);
                changes += 1;
            }
        }
        assert!((11_900..=12_001).contains(&changes), "{changes}");
    }

    #[test]
    fn whole_records_cost_by_their_length() {
        let (mut pace, start) = (Pace::default(), Instant::from_millis(1_000));
        let taken = (0..54_000).filter(|n| {
            // 900 per second for a minute.
            let now = start + Duration::from_micros(n * 1_111);
            let may = !pace.is_over(now, NODE);
            if may {
                pace.charge(now, NODE, 18_000);
            }
            may
        });
        assert!((600..650).contains(&taken.count()));
    }
}
