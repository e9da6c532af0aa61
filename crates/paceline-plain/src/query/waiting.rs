//! The table of waiting queries: nodes and time limits. It uses no clock, thread or Zenoh type.

use paceline::status::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The longest wait for missing answers after the end message. An answer that does not arrive by
/// then is lost; it may have been retransmitted.
const MISSING: Duration = Duration::from_secs(1);
/// The extra time before a query expires. The asked node expires first and reports it, unless it is
/// silent.
const LONGER: Duration = Duration::from_millis(500);

/// Why a query did not get all answers of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Why {
    /// The node did not finish in time.
    TimedOut,
    /// The node has left.
    Left,
    /// The rule has ended here: it was removed or changed, or the node stops.
    Ended,
    /// This number of answers did not arrive.
    Lost(u64),
}

/// A query that did not get all answers of a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Missing<Q> {
    pub(super) query: Q,
    pub(super) node: NodeId,
    pub(super) why: Why,
}

/// The waiting queries. `Q` is the state of each query; its last reference is dropped when all
/// nodes have finished.
#[derive(Debug)]
pub(super) struct Waiting<Q> {
    at_once: usize,
    patience: Duration,
    next: u64,
    asked: BTreeMap<u64, Asked<Q>>,
}

#[derive(Debug)]
struct Asked<Q> {
    query: Q,
    nodes: BTreeMap<NodeId, Heard>,
}

#[derive(Debug)]
struct Heard {
    answers: u64,
    /// The total number of answers, known once the node has finished.
    of: Option<u64>,
    until: Instant,
}

impl Heard {
    fn is_complete(&self) -> bool {
        self.of.is_some_and(|of| self.answers >= of)
    }
}

impl<Q: Clone> Waiting<Q> {
    /// Allows at most `at_once` queries at a time, each for `patience`.
    pub(super) const fn new(at_once: usize, patience: Duration) -> Self {
        Self { at_once, patience, next: 0, asked: BTreeMap::new() }
    }

    /// Returns true if a waiting query satisfies `like`.
    pub(super) fn any(&self, like: impl Fn(&Q) -> bool) -> bool {
        self.asked.values().any(|asked| like(&asked.query))
    }

    /// Returns true if no more queries can be added.
    pub(super) fn is_full(&self) -> bool {
        self.asked.len() >= self.at_once
    }

    /// Adds a query that waits for `nodes` from `now` on. Returns its number.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        query: Q,
        nodes: impl IntoIterator<Item = NodeId>,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        let until = now + self.patience + LONGER;
        let heard = |node| (node, Heard { answers: 0, of: None, until });
        let nodes: BTreeMap<_, _> = nodes.into_iter().map(heard).collect();
        if !nodes.is_empty() {
            self.asked.insert(number, Asked { query, nodes });
        }
        number
    }

    /// Counts an answer of a node. Returns its query if it is waiting for that node.
    pub(super) fn answered(&mut self, number: u64, node: NodeId) -> Option<Q> {
        let asked = self.asked.get_mut(&number)?;
        let heard = asked.nodes.get_mut(&node)?;
        heard.answers += 1;
        let (query, complete) = (asked.query.clone(), heard.is_complete());
        if complete {
            self.end(number, node);
        }
        Some(query)
    }

    /// Handles the end message of a node after `of` answers. Returns the query if it is complete.
    pub(super) fn ended(&mut self, now: Instant, number: u64, node: NodeId, of: u64) -> Option<Q> {
        let heard = self.asked.get_mut(&number)?.nodes.get_mut(&node)?;
        heard.of = Some(of);
        heard.until = heard.until.min(now + MISSING);
        if heard.is_complete() { self.end(number, node) } else { None }
    }

    /// Stops waiting for nodes that are not in `present`.
    pub(super) fn only(&mut self, present: &BTreeSet<NodeId>) -> Vec<Missing<Q>> {
        self.part(|node, _| (!present.contains(&node)).then_some(Why::Left))
    }

    /// Removes all entries, because the rule has ended.
    pub(super) fn remove_all(&mut self) -> Vec<Missing<Q>> {
        self.part(|_, _| Some(Why::Ended))
    }

    /// Removes the entries that have expired at `now`.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<Missing<Q>> {
        self.part(|_, heard| {
            (heard.until <= now).then(|| {
                heard.of.map_or(Why::TimedOut, |of| Why::Lost(of.saturating_sub(heard.answers)))
            })
        })
    }

    /// Returns the earliest expiry.
    pub(super) fn next_end(&self) -> Option<Instant> {
        let all = self.asked.values().flat_map(|asked| asked.nodes.values());
        all.map(|heard| heard.until).min()
    }

    /// Removes the entries for which `why` returns a reason.
    fn part(&mut self, why: impl Fn(NodeId, &Heard) -> Option<Why>) -> Vec<Missing<Q>> {
        let mut missing = Vec::new();
        self.asked.retain(|_, asked| {
            let Asked { query, nodes } = asked;
            nodes.retain(|node, heard| {
                let why = why(*node, heard);
                let missed = why.map(|why| Missing { query: query.clone(), node: *node, why });
                missing.extend(missed);
                why.is_none()
            });
            !nodes.is_empty()
        });
        missing
    }

    fn end(&mut self, number: u64, node: NodeId) -> Option<Q> {
        let asked = self.asked.get_mut(&number)?;
        asked.nodes.remove(&node);
        if asked.nodes.is_empty() {
            self.asked.remove(&number).map(|asked| asked.query)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Two queries, one to both nodes and one to the second.
    fn two() -> (Instant, Waiting<&'static str>) {
        let start = Instant::now();
        let mut waiting = Waiting::new(2, PATIENCE);
        assert_eq!(waiting.ask(start, "both", [A, B]), 0);
        assert!(!waiting.is_full());
        assert_eq!(waiting.ask(start, "one", [B]), 1);
        assert!(waiting.is_full());
        (start, waiting)
    }

    #[test]
    fn a_query_ends_with_the_last_node() {
        let (now, mut waiting) = two();
        assert_eq!(waiting.answered(0, A), Some("both"));
        assert_eq!(waiting.ended(now, 0, A, 1), None);
        assert_eq!(waiting.answered(0, A), None, "more than announced");
        assert!(waiting.any(|query| *query == "both"));
        assert_eq!(waiting.ended(now, 0, B, 0), Some("both"));
        assert!(!waiting.any(|query| *query == "both"));
        assert_eq!(waiting.ended(now, 1, A, 0), None, "that node was not queried");
        assert_eq!(waiting.ended(now, 1, B, 0), Some("one"));
        assert_eq!(waiting.next_end(), None);
        assert_eq!(waiting.answered(9, B), None);
    }

    #[test]
    fn an_end_that_overtakes_answers_waits_for_them_a_little() {
        let (now, mut waiting) = two();
        waiting.ended(now, 1, B, 2);
        assert_eq!(waiting.answered(1, B), Some("one"));
        assert_eq!(waiting.expired(now + MISSING - Duration::from_nanos(1)), []);
        let lost = Missing { query: "one", node: B, why: Why::Lost(1) };
        assert_eq!(waiting.expired(now + MISSING), [lost]);
        waiting.ended(now, 0, B, 1);
        assert_eq!(waiting.answered(0, B), Some("both"));
        assert!(waiting.any(|query| *query == "both"), "the other node has not ended");
    }

    #[test]
    fn a_silent_node_is_awaited_only_until_the_timeout() {
        let (now, mut waiting) = two();
        let until = now + PATIENCE + LONGER;
        assert_eq!(waiting.next_end(), Some(until));
        waiting.ended(now, 0, A, 0);
        assert_eq!(waiting.expired(until - Duration::from_nanos(1)), []);
        let why = Why::TimedOut;
        let both = Missing { query: "both", node: B, why };
        assert_eq!(waiting.expired(until), [both, Missing { query: "one", node: B, why }]);
        assert!(!waiting.is_full());
    }

    #[test]
    fn a_lost_node_ends_only_queries_that_wait_for_it() {
        let (now, mut waiting) = two();
        let left = waiting.only(&[A].into());
        let why = Why::Left;
        let both = Missing { query: "both", node: B, why };
        assert_eq!(left, [both, Missing { query: "one", node: B, why }]);
        assert!(waiting.any(|query| *query == "both"));
        waiting.ended(now, 0, A, 0);
        assert!(!waiting.any(|_| true));
    }

    #[test]
    fn the_end_of_the_rule_ends_all_queries() {
        let (_, mut waiting) = two();
        let removed = waiting.remove_all();
        assert_eq!(removed.len(), 3, "one per query and node");
        assert!(removed.iter().all(|missing| missing.why == Why::Ended));
        assert!(!waiting.any(|_| true));
    }

    #[test]
    fn a_query_without_recipients_ends_at_once() {
        let mut waiting = Waiting::new(1, PATIENCE);
        waiting.ask(Instant::now(), "nobody", []);
        assert!(!waiting.is_full() && waiting.next_end().is_none());
    }
}
