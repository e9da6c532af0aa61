//! The invariants of every world at any time.

use crate::node::{SimNode, StreamKey};
use crate::world::World;
use paceline_node::STREAM_QUEUE_MAX;
use paceline_proto::plan::SourceKey;
use paceline_proto::reason::StreamCounters;
use std::collections::BTreeMap;

/// The most samples queued per stream in a link.
const WAITING_MAX: usize = 256;

impl World {
    /// Checks that all sums agree and that nothing has exceeded its bound.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub fn check(&self) {
        for node in &self.nodes {
            check_streams(node);
            check_sinks(node);
        }
        self.check_hops();
    }

    /// Checks that every sample sent by one node arrived at the next or is counted as lost there.
    fn check_hops(&self) {
        let quiet = self.wires.iter().all(|wire| wire.is_idle() && wire.counters().lost == 0);
        let nodes: BTreeMap<_, &SimNode> =
            self.nodes.iter().map(|node| (node.id(), node)).collect();
        for sender in &self.nodes {
            for (key, sent) in sent(sender) {
                let (hop, publisher, form) = key;
                // Earlier incarnations of a node are skipped.
                let Some(receiver) = nodes.get(&hop) else { continue };
                let accounts = receiver.node.accounts();
                let source = SourceKey { publisher, form };
                let arrived = accounts.map(|it| it.arrived(sender.id(), source));
                let arrived = arrived.unwrap_or_default();
                let what = || format!("{} -> {}: {key:?}", sender.name, receiver.name);
                assert!(arrived.whole <= sent.sent, "{}", what());
                // Both sides count aborted samples. They also count a sample that lost a piece before its
                // last piece was sent.
                assert!(arrived.whole + arrived.lost.total() <= sent.offered, "{}", what());
                if quiet && !self.faulty {
                    assert_eq!(arrived.whole, sent.sent, "{}", what());
                }
            }
        }
    }
}

/// Returns the counters of `sender` by stream, including closed streams.
fn sent(sender: &SimNode) -> BTreeMap<StreamKey, StreamCounters> {
    let mut sums: BTreeMap<StreamKey, StreamCounters> = BTreeMap::new();
    for end in sender.node.links() {
        for (_, spec, counters, _) in end.link().streams() {
            let key = (spec.hop, spec.publisher, spec.form);
            sums.entry(key).or_default().merge(&counters);
        }
    }
    for (key, counters) in &sender.closed {
        sums.entry(*key).or_default().merge(counters);
    }
    sums
}

fn check_streams(node: &SimNode) {
    for end in node.node.links() {
        let mut seen = 0;
        for (index, spec, counters, waiting) in end.link().streams() {
            seen += 1;
            let what = || format!("{}: {index:?} {spec:?} {counters:?}", node.name);
            let accounted = counters.sent + counters.drops.total();
            assert_eq!(counters.offered, accounted + waiting as u64, "{}", what());
            assert!(waiting <= WAITING_MAX, "{}: {waiting} wait", what());
            let Some(queue) = end.queue(index) else { panic!("no queue: {}", what()) };
            assert!(queue.waiting() <= STREAM_QUEUE_MAX, "{}", what());
            let left = queue.waiting() as u64;
            assert_eq!(queue.offered(), counters.offered + left, "{}", what());
        }
        assert_eq!(seen, end.queues(), "{}: streams of {}", node.name, end.name());
    }
}

fn check_sinks(node: &SimNode) {
    for (id, sink) in &node.sinks {
        assert!(sink.is_balanced(node.present(*id)), "{}: {id:?}: {sink:?}", node.name);
    }
}
