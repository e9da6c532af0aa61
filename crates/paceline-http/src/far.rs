//! The status of nodes behind links with a capacity, read in the background while a page is open.
//!
//! An answer needs bytes of the links that it crosses. Each node is read so seldom that the answers of all of them together need at
//! most 2 % of the smallest capacity of the network, and at most once per second. Without a page, nothing is read.

use paceline::status::{NodeId, NodeStatus};
use paceline::{Node, Pattern};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The part of the smallest capacity that answers may use, as `1 / PART`.
const PART: u64 = 50;
/// The shortest time between two readings of a node.
const EVERY: Duration = Duration::from_secs(1);
/// The longest time between two readings: a slower link has no room for the page.
const SELDOM: Duration = Duration::from_secs(60);
/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// The number of expected answers after which a silent node is no longer shown.
const MISSED_MAX: u32 = 3;
/// The most nodes that are read.
const NODES_MAX: usize = 64;

/// The newest answer of a node.
#[derive(Debug)]
struct Answer {
    at: Instant,
    bytes: u64,
    status: NodeStatus,
}

#[derive(Debug, Default)]
struct Found {
    answers: BTreeMap<NodeId, Answer>,
    asked: BTreeMap<NodeId, Instant>,
    is_asking: bool,
}

/// The nodes behind links with a capacity.
#[derive(Debug, Default)]
pub(super) struct Far(Arc<Mutex<Found>>);

/// Returns the time between two readings of a node whose answer has this size, if so many nodes share 2 % of the capacity.
fn interval(bytes: u64, nodes: usize, capacity: Option<u64>) -> Duration {
    let Some(capacity) = capacity else { return EVERY };
    let budget = (capacity / PART).max(1);
    let millis = bytes.saturating_mul(8_000).saturating_mul(nodes as u64) / budget;
    Duration::from_millis(millis).clamp(EVERY, SELDOM)
}

impl Far {
    /// Starts a reading of the nodes that are due, and returns the newest answers. `far` are the nodes behind links.
    pub(super) fn read(&self, node: &Node, mut far: Vec<NodeId>) -> Vec<NodeStatus> {
        far.truncate(NODES_MAX);
        let capacity = smallest_capacity(node);
        let now = Instant::now();
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known: BTreeSet<NodeId> = far.iter().copied().collect();
        let each = |bytes| interval(bytes, far.len(), capacity);
        found.answers.retain(|id, answer| {
            known.contains(id) && now - answer.at < each(answer.bytes) * MISSED_MAX + PATIENCE
        });
        found.asked.retain(|id, _| known.contains(id));
        let is_due = |id: &&NodeId| {
            let bytes = found.answers.get(id).map_or(0, |answer| answer.bytes);
            found.asked.get(id).is_none_or(|at| now - *at >= each(bytes))
        };
        let due: Vec<NodeId> = far.iter().filter(is_due).copied().collect();
        if !due.is_empty() && !found.is_asking {
            found.is_asking = true;
            found.asked.extend(due.iter().map(|id| (*id, now)));
            self.ask(node.clone(), due);
        }
        found.answers.values().map(|answer| answer.status.clone()).collect()
    }

    /// Reads nodes on a thread of its own: an answer over a slow link must not delay the page.
    fn ask(&self, node: Node, due: Vec<NodeId>) {
        let found = self.0.clone();
        let run = move || {
            let answers = node.status_of(&due, PATIENCE);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.is_asking = false;
            for status in answers {
                let bytes = status.to_wire().len() as u64;
                found.answers.insert(status.id, Answer { at: Instant::now(), bytes, status });
            }
        };
        let started = std::thread::Builder::new().name("paceline-http-far".to_owned()).spawn(run);
        if let Err(error) = started {
            tracing::debug!("cannot read other nodes: {error}");
        }
    }

    /// Forgets all answers, when no page is open.
    pub(super) fn forget(&self) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.answers.clear();
        found.asked.clear();
    }
}

/// Returns the smallest capacity of the links that this node knows, in bits per second.
fn smallest_capacity(node: &Node) -> Option<u64> {
    let Ok(all) = Pattern::new("**") else { return None };
    let hops = node.network(&all).hops;
    hops.iter().filter_map(|hop| hop.capacity).map(|capacity| capacity.bits_per_s()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_use_at_most_a_fiftieth_of_the_smallest_capacity() {
        for (bytes, nodes, capacity) in
            [(2_000, 1, 2_000_000), (2_000, 3, 64_000), (40_000, 2, 1_000_000), (900, 5, 256_000)]
        {
            let every = interval(bytes, nodes, Some(capacity));
            let used = bytes as f64 * 8.0 * nodes as f64 / every.as_secs_f64();
            assert!(used <= capacity as f64 / 50.0 * 1.01 || every == SELDOM, "{used} bit/s");
            assert!((EVERY..=SELDOM).contains(&every));
        }
        assert_eq!(interval(2_000, 1, Some(2_000_000)), EVERY);
        assert_eq!(interval(1 << 20, 64, None), EVERY);
    }
}
