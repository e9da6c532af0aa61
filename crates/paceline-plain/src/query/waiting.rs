//! Which queries wait for which nodes, and until when: no clock, no thread, no Zenoh.

use paceline::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long after its end a query waits for answers that are still missing then: they overtook nothing on the
/// way, so they are lost, unless they are being sent again.
const MISSING: Duration = Duration::from_secs(1);
/// The asked node gives up first, and says so; whoever says nothing at all is waited for so much longer.
const LONGER: Duration = Duration::from_millis(500);

/// Why a query got not all answers of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Why {
    /// It did not end in time.
    TimedOut,
    /// It is not there any more.
    Gone,
    /// So many of its answers did not come.
    Lost(u64),
}

/// A query that got not all answers of a node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Missing<Q> {
    pub(super) query: Q,
    pub(super) node: NodeId,
    pub(super) why: Why,
}

/// The queries that wait. `Q` is what is kept of each; the last one of it goes when all nodes have ended.
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
    /// How many there are, once it has ended.
    of: Option<u64>,
    until: Instant,
}

impl Heard {
    fn is_complete(&self) -> bool {
        self.of.is_some_and(|of| self.answers >= of)
    }
}

impl<Q: Clone> Waiting<Q> {
    /// At most `at_once` at a time, each for `patience`.
    pub(super) const fn new(at_once: usize, patience: Duration) -> Self {
        Self { at_once, patience, next: 0, asked: BTreeMap::new() }
    }

    /// True if one of those that wait is like this.
    pub(super) fn any(&self, like: impl Fn(&Q) -> bool) -> bool {
        self.asked.values().any(|asked| like(&asked.query))
    }

    /// True if no more may wait.
    pub(super) fn is_full(&self) -> bool {
        self.asked.len() >= self.at_once
    }

    /// A query waits for the end of these nodes from `now` on; its number.
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

    /// An answer of a node has come: whose it is, if it was waited for.
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

    /// A node says that it has given `of` answers and gives no more. The query, if it has ended.
    pub(super) fn ended(&mut self, now: Instant, number: u64, node: NodeId, of: u64) -> Option<Q> {
        let heard = self.asked.get_mut(&number)?.nodes.get_mut(&node)?;
        heard.of = Some(of);
        heard.until = heard.until.min(now + MISSING);
        if heard.is_complete() { self.end(number, node) } else { None }
    }

    /// What waits for nodes that are not `there` any more waits for them no longer.
    pub(super) fn only(&mut self, there: &BTreeSet<NodeId>) -> Vec<Missing<Q>> {
        self.part(|node, _| (!there.contains(&node)).then_some(Why::Gone))
    }

    /// What has waited for long enough at `now`.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<Missing<Q>> {
        self.part(|_, heard| {
            (heard.until <= now).then(|| {
                heard.of.map_or(Why::TimedOut, |of| Why::Lost(of.saturating_sub(heard.answers)))
            })
        })
    }

    /// When something will have waited for long enough.
    pub(super) fn next_end(&self) -> Option<Instant> {
        let all = self.asked.values().flat_map(|asked| asked.nodes.values());
        all.map(|heard| heard.until).min()
    }

    /// Takes out what `why` gives a reason for.
    fn part(&mut self, why: impl Fn(NodeId, &Heard) -> Option<Why>) -> Vec<Missing<Q>> {
        let mut missing = Vec::new();
        self.asked.retain(|_, asked| {
            let Asked { query, nodes } = asked;
            nodes.retain(|node, heard| {
                let why = why(*node, heard);
                let told = why.map(|why| Missing { query: query.clone(), node: *node, why });
                missing.extend(told);
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

    /// Two queries, one to both nodes and one to the second, at the beginning of time.
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
        assert_eq!(waiting.answered(0, A), None, "more than it said");
        assert!(waiting.any(|query| *query == "both"));
        assert_eq!(waiting.ended(now, 0, B, 0), Some("both"));
        assert!(!waiting.any(|query| *query == "both"));
        assert_eq!(waiting.ended(now, 1, A, 0), None, "it was not asked of that node");
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
    fn who_says_nothing_is_waited_for_no_longer_than_said() {
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
    fn a_node_that_goes_ends_what_waits_for_it_alone() {
        let (now, mut waiting) = two();
        let gone = waiting.only(&[A].into());
        let why = Why::Gone;
        let both = Missing { query: "both", node: B, why };
        assert_eq!(gone, [both, Missing { query: "one", node: B, why }]);
        assert!(waiting.any(|query| *query == "both"));
        waiting.ended(now, 0, A, 0);
        assert!(!waiting.any(|_| true));
    }

    #[test]
    fn what_is_asked_of_nobody_does_not_wait() {
        let mut waiting = Waiting::new(1, PATIENCE);
        waiting.ask(Instant::now(), "nobody", []);
        assert!(!waiting.is_full() && waiting.next_end().is_none());
    }
}
