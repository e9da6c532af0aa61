//! The arriving streams of all links of a node, and their ports.

use super::super::drops::AtomicDrops;
use super::super::mailbox::Mailbox;
use super::super::port::{self, Port};
use super::change::RxChange;
use paceline_node::arrive::{ArrivedItem, ArrivingStreams, Outputs};
use paceline_proto::ingress::{Ingress, Output};
use paceline_proto::memory::Charge;
use paceline_proto::plan::SourceKey;
use paceline_proto::{DropReason, NodeId, PublisherId, RawSample};
use paceline_sched::Instant;

/// The arriving streams of a node.
#[derive(Default)]
pub(super) struct Sources {
    seen: u64,
    arrivals: ArrivingStreams<Port>,
}

/// The ports of the node, with the counters of samples that have none.
struct Ports<'a>(&'a AtomicDrops);

impl Outputs<Port> for Ports<'_> {
    fn offer(&mut self, now: Instant, ingress: &mut Ingress<Port>, sample: RawSample) {
        port::offer(ingress, |_| true, (now, sample), |port, sample| port.take(now, sample));
    }

    fn count(&mut self, output: &mut Output<Port>, reason: DropReason, samples: u64) {
        output.port.count(reason, samples);
    }

    fn count_unrouted(&mut self, _: PublisherId, reason: DropReason, samples: u64) {
        self.0.add(reason, samples);
    }
}

impl Sources {
    /// Returns true if no sample waits for its stream.
    pub(super) fn is_settled(&self) -> bool {
        self.arrivals.is_settled()
    }

    /// Applies posted changes, then delivers the samples that arrived before them.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        changes: &Mailbox<RxChange>,
        drops: &AtomicDrops,
    ) {
        let Self { seen, arrivals } = self;
        changes.collect(seen, |RxChange { arrangement, installation }| {
            if installation.outputs.is_empty() {
                arrivals.remove(arrangement.key);
            } else {
                installation.apply(arrivals.arrange(now, arrangement), |_, port| drop(port));
            }
        });
        arrivals.settle(now, &mut Ports(drops));
    }

    /// Counts the samples that have waited too long for their stream.
    pub(super) fn expire(&mut self, now: Instant, drops: &AtomicDrops) {
        self.arrivals.handle_timeout(now, &mut Ports(drops));
    }

    /// Drops samples of a neighbour that wait, until at least `bytes` are free or none is left. Returns the bytes that it has
    /// freed.
    pub(super) fn give_back(&mut self, from: NodeId, bytes: usize, drops: &AtomicDrops) -> usize {
        self.arrivals.give_back(from, bytes, &mut Ports(drops))
    }

    /// Takes an item that has arrived. `waits` decides whether an unrequested one may wait, and charges its memory.
    pub(super) fn take(
        &mut self,
        now: Instant,
        from: (NodeId, SourceKey),
        item: ArrivedItem,
        waits: impl FnOnce() -> Option<Charge>,
        drops: &AtomicDrops,
    ) {
        self.arrivals.handle_item(now, from, item, waits, &mut Ports(drops));
    }
}
