//! Links whose capacity is being measured for the first time.

use paceline_proto::NodeId;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The first grant on a link waits at most so long for a measurement.
const MEASURED_WITHIN: Duration = Duration::from_secs(2);

/// The links that have not been measured. The inputs of their neighbours wait, so that no contract is refused for a capacity
/// that nobody knows yet.
#[derive(Debug, Default)]
pub(super) struct Unmeasured {
    /// The latest time at which the neighbours of each link are met; `None` before the first one.
    links: BTreeMap<usize, Option<Instant>>,
    waiting: BTreeMap<NodeId, usize>,
}

impl Unmeasured {
    pub(super) fn new(links: impl Iterator<Item = usize>) -> Self {
        Self { links: links.map(|link| (link, None)).collect(), waiting: BTreeMap::new() }
    }

    /// Lets the inputs of a neighbour that was met on a link wait for its measurement.
    pub(super) fn meet(&mut self, now: Instant, link: usize, node: NodeId) {
        if let Some(until) = self.links.get_mut(&link) {
            until.get_or_insert(now + MEASURED_WITHIN);
            self.waiting.insert(node, link);
        }
    }

    /// Ends the wait for a link.
    pub(super) fn end(&mut self, link: usize) {
        if self.links.remove(&link).is_some() {
            self.waiting.retain(|_, its| *its != link);
        }
    }

    /// Ends the waits that took too long, and returns their links.
    pub(super) fn end_late(&mut self, now: Instant) -> Vec<usize> {
        let late = self.links.iter().filter(|(_, until)| until.is_some_and(|until| until <= now));
        let late: Vec<usize> = late.map(|(link, _)| *link).collect();
        late.iter().for_each(|link| self.end(*link));
        late
    }

    /// Returns true if the inputs of a neighbour may be handled.
    pub(super) fn may(&self, node: NodeId) -> bool {
        !self.waiting.contains_key(&node)
    }

    /// Returns the next time for [`Self::end_late`].
    pub(super) fn until(&self) -> Instant {
        self.links.values().flatten().min().copied().unwrap_or(Instant::FAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_wait_for_the_first_measurement_and_at_most_two_seconds() {
        let at = Instant::from_millis;
        let mut unmeasured = Unmeasured::new([1, 2].into_iter());
        unmeasured.meet(at(100), 0, NodeId(7));
        assert!(
            unmeasured.may(NodeId(7)) && unmeasured.until() == Instant::FAR,
            "a fixed capacity"
        );
        unmeasured.meet(at(100), 1, NodeId(8));
        unmeasured.meet(at(600), 1, NodeId(9));
        unmeasured.meet(at(700), 2, NodeId(6));
        assert!(![6, 8, 9].into_iter().any(|node| unmeasured.may(NodeId(node))));
        unmeasured.end(2);
        assert!(unmeasured.may(NodeId(6)));
        assert_eq!((unmeasured.until(), unmeasured.end_late(at(2_099))), (at(2_100), vec![]));
        assert_eq!(unmeasured.end_late(at(2_100)), [1]);
        assert!(unmeasured.may(NodeId(9)) && unmeasured.until() == Instant::FAR);
        unmeasured.meet(at(3_000), 1, NodeId(9));
        assert!(unmeasured.may(NodeId(9)), "it was measured, or will not be soon");
    }
}
