//! Access to the state of a world.

use crate::handle::{NodeIx, Pub, Sub};
use crate::impair::Impairment;
use crate::node::SimNode;
use crate::sink::{Counted, Delivered, Present, Sink};
use crate::wire::{Wire, WireCounters};
use crate::world::{LinkIx, World};
use paceline_proto::Form;
use paceline_proto::control::{
    Adaptation, BufferUse, Control, Grant, Refusal, SubscriptionSpec, Warning,
};
use paceline_proto::ids::{NodeId, PublisherId, SubscriptionId};
use paceline_proto::link::Link;
use paceline_proto::reason::{Drops, StreamCounters};
use paceline_sched::Instant;
use std::collections::BTreeMap;

impl World {
    pub(super) fn node(&self, node: NodeIx) -> &SimNode {
        let Some(node) = self.nodes.get(node.0) else {
            panic!("{node:?} belongs to another world")
        };
        node
    }

    pub(super) fn node_mut(&mut self, node: NodeIx) -> &mut SimNode {
        let Some(node) = self.nodes.get_mut(node.0) else {
            panic!("{node:?} belongs to another world")
        };
        node
    }

    pub(super) fn place(&self, publisher: Pub) -> (usize, PublisherId) {
        let Some(&place) = self.publishers.get(publisher.0) else {
            panic!("{publisher:?} belongs to another world");
        };
        place
    }

    fn sink(&self, subscription: Sub) -> &Sink {
        self.end(subscription).0
    }

    /// Returns the application of a subscription and its present counters.
    fn end(&self, subscription: Sub) -> (&Sink, Present<'_>) {
        let end = |&(node, id): &(usize, SubscriptionId)| {
            let node = self.nodes.get(node)?;
            Some((node.sinks.get(&id)?, node.present(id)))
        };
        let end = self.subscriptions.get(subscription.0).and_then(end);
        let Some(end) = end else { panic!("{subscription:?} belongs to another world") };
        end
    }

    /// Returns all samples that a subscription received so far, in order. Empty if it does not
    /// [keep](Self::keep_deliveries) them.
    #[must_use]
    pub fn delivered(&self, subscription: Sub) -> &[Delivered] {
        &self.sink(subscription).delivered
    }

    /// Returns the counters of the samples that a subscription received so far. They are available even if it
    /// does not [keep](Self::keep_deliveries) the samples.
    #[must_use]
    pub fn counted(&self, subscription: Sub) -> &Counted {
        &self.sink(subscription).counted
    }

    /// Returns the samples that a subscription missed, by reason.
    #[must_use]
    pub fn drops(&self, subscription: Sub) -> Drops {
        let (sink, present) = self.end(subscription);
        sink.drops(present)
    }

    /// Returns the number of samples that a subscription missed: published between the first and the newest
    /// that arrived of each publisher, and not delivered.
    ///
    /// Includes samples that a subscription with a reduced rate did not request.
    #[must_use]
    pub fn missing(&self, subscription: Sub) -> u64 {
        let (sink, present) = self.end(subscription);
        sink.published(present) - sink.counted.samples
    }

    /// Returns the number of samples of a publisher that any node has reported as dropped, each counted once.
    ///
    /// The reports of a node end with a crash.
    #[must_use]
    pub fn reported(&self, publisher: Pub) -> u64 {
        let id = self.id(publisher);
        self.nodes.iter().map(|node| node.reported(id)).sum()
    }

    /// Returns the request of a subscription.
    #[must_use]
    pub fn asks(&self, subscription: Sub) -> &SubscriptionSpec {
        &self.sink(subscription).spec
    }

    /// Returns the publishers that a subscription currently receives from.
    #[must_use]
    pub fn heard(&self, subscription: Sub) -> &[PublisherId] {
        &self.sink(subscription).publishers
    }

    /// Returns the refusals reported to a subscription, in order.
    #[must_use]
    pub fn refusals(&self, subscription: Sub) -> &[(PublisherId, Refusal)] {
        &self.sink(subscription).refusals
    }

    /// Returns the steps that an elastic contract has taken, each with its time and the new form, in order.
    #[must_use]
    pub fn steps(&self, subscription: Sub) -> &[(Instant, Form, Adaptation)] {
        &self.sink(subscription).steps
    }

    /// Returns the forecasts for the contracts of a subscription, in order.
    #[must_use]
    pub fn warnings(&self, subscription: Sub) -> &[(Instant, Warning)] {
        &self.sink(subscription).warnings
    }

    /// Returns the refusals of spares that were reported to a subscription with contracts in force, in order.
    #[must_use]
    pub fn unspared(&self, subscription: Sub) -> &[Refusal] {
        &self.sink(subscription).unspared
    }

    /// Returns the latest grants of a subscription, by publisher.
    #[must_use]
    pub fn grants(&self, subscription: Sub) -> &BTreeMap<PublisherId, Grant> {
        &self.sink(subscription).grants
    }

    /// Returns true if the publisher's node also knows the grant, which it learns last.
    #[must_use]
    pub fn knows(&self, grant: &Grant) -> bool {
        let same =
            |it: &Grant| (it.subscription, it.publisher) == (grant.subscription, grant.publisher);
        let node = self.nodes.iter().find(|node| node.id() == grant.publisher.node);
        node.is_some_and(|node| node.node.control().grants().any(|it| same(&it)))
    }

    /// Returns true if nothing could be reserved for a publisher's samples, because no link of the path has a capacity.
    #[must_use]
    pub fn is_unlimited(&self, subscription: Sub, publisher: Pub) -> bool {
        self.sink(subscription).unlimited.contains(&self.id(publisher))
    }

    /// Returns true if the publisher's node reserves a contract, in force or not.
    #[must_use]
    pub fn is_reserved(&self, subscription: Sub, publisher: Pub) -> bool {
        let (node, id) = self.place(publisher);
        let of = self.subscriptions.get(subscription.0).map(|(_, of)| *of);
        let node = self.nodes.get(node).zip(of);
        node.is_some_and(|(node, of)| {
            node.node.control().grants().any(|it| (it.subscription, it.publisher) == (of, id))
        })
    }

    /// Returns the history of a contract by the knowledge of its publisher's node, in order: the world's time, and true
    /// if the contract is in force from then on.
    #[must_use]
    pub fn in_force(&self, subscription: Sub, publisher: Pub) -> &[(Instant, bool)] {
        let (node, id) = self.place(publisher);
        let subscription = self.subscriptions.get(subscription.0).map(|(_, id)| *id);
        let ledger = self.nodes.get(node).map(|node| &node.ledger);
        let of = ledger.zip(subscription);
        of.map(|(ledger, subscription)| ledger.of((subscription, id))).unwrap_or_default()
    }

    /// Returns the id of a publisher.
    #[must_use]
    pub fn id(&self, publisher: Pub) -> PublisherId {
        self.place(publisher).1
    }

    /// Returns the id of a node.
    #[must_use]
    pub fn node_id(&self, node: NodeIx) -> NodeId {
        self.node(node).id()
    }

    /// Returns true if a publisher knows of a matching subscription.
    #[must_use]
    pub fn matching(&self, publisher: Pub) -> bool {
        let (node, id) = self.place(publisher);
        let publisher = self.nodes.get(node).and_then(|node| node.publishers.get(&id.index));
        publisher.is_some_and(|publisher| publisher.matching)
    }

    /// Returns the control of a node.
    #[must_use]
    pub fn control(&self, node: NodeIx) -> &Control {
        self.node(node).node.control()
    }

    /// Returns a link.
    ///
    /// # Panics
    /// Panics if the link does not exist.
    #[must_use]
    pub fn link(&self, at: LinkIx) -> &Link {
        let Some(end) = self.node(at.node).node.links().get(at.link) else {
            panic!("no link {at:?}")
        };
        end.link()
    }

    /// Returns the buffer of a link for contracts; `None` for a link without a capacity or a neighbour.
    #[must_use]
    pub fn buffer(&self, at: LinkIx) -> Option<BufferUse> {
        let node = &self.node(at.node).node;
        node.control().buffer_use(node.links().get(at.link)?.name())
    }

    /// Returns the counters of a publisher's samples on the hop from one node to the next, summed over all
    /// its streams.
    ///
    /// Includes closed streams, and streams to earlier incarnations of the next node.
    #[must_use]
    pub fn stream(&self, from: NodeIx, to: NodeIx, publisher: Pub) -> StreamCounters {
        let (to, id, node) = (self.node(to), self.id(publisher), self.node(from));
        let is_target = |hop: NodeId| to.id() == hop || to.former.contains(&hop);
        let mut sum = StreamCounters::default();
        for (_, _, counters) in node.open_streams().filter(|(h, p, _)| is_target(*h) && *p == id) {
            sum.merge(&counters);
        }
        for ((_, _, _), counters) in
            node.closed.iter().filter(|((h, p, _), _)| is_target(*h) && *p == id)
        {
            sum.merge(counters);
        }
        sum
    }

    /// Returns the number of open streams of a publisher from one node to the next.
    #[must_use]
    pub fn streams(&self, from: NodeIx, to: NodeIx, publisher: Pub) -> usize {
        let (hop, id) = (self.node(to).id(), self.id(publisher));
        self.node(from).open_streams().filter(|(h, p, _)| *h == hop && *p == id).count()
    }

    /// Returns the counters of the wire from one node to another.
    #[must_use]
    pub fn wire(&self, from: NodeIx, to: NodeIx) -> WireCounters {
        let wire = self.wires.iter().find(|wire| (wire.from.0, wire.to.0) == (from.0, to.0));
        wire.map(Wire::counters).unwrap_or_default()
    }

    /// Returns the counters of one direction of a wire, given by the result of [`Self::join`].
    #[must_use]
    pub fn wire_at(&self, place: usize) -> WireCounters {
        self.wires.get(place).map(Wire::counters).unwrap_or_default()
    }

    /// Returns the impairment of the wire from one node to another, or none if they are not joined.
    #[must_use]
    pub fn impairment(&self, from: NodeIx, to: NodeIx) -> Impairment {
        let wire = self.wires.iter().find(|wire| (wire.from.0, wire.to.0) == (from.0, to.0));
        wire.map(Wire::impairment).unwrap_or_default()
    }

    /// Returns the number of frames sent on all wires.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.wires.iter().map(|wire| wire.counters().frames).sum()
    }

    /// Returns the number of bytes sent on all wires, including the overhead of the layers below.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.wires.iter().map(|wire| wire.counters().bytes).sum()
    }

    /// Returns the number of wires: two for each pair of joined links, one per direction.
    #[must_use]
    pub fn wires(&self) -> u64 {
        self.wires.len() as u64
    }

    /// Returns the number of samples sent by all links, each hop counted.
    #[must_use]
    pub fn hops(&self) -> u64 {
        let closed = self.nodes.iter().flat_map(|node| node.closed.values()).map(|c| c.sent);
        let open = self.nodes.iter().flat_map(SimNode::open_streams).map(|(_, _, c)| c.sent);
        closed.chain(open).sum()
    }

    /// Starts to log each frame sent on the wire from one node to another.
    pub fn keep_log(&mut self, from: NodeIx, to: NodeIx) {
        let wire = self.wires.iter_mut().find(|wire| (wire.from.0, wire.to.0) == (from.0, to.0));
        wire.into_iter().for_each(|wire| wire.log = Some(Vec::new()));
    }

    /// Returns the logged frames: the send time and the size in bytes.
    #[must_use]
    pub fn log(&self, from: NodeIx, to: NodeIx) -> &[(Instant, u64)] {
        let between = |wire: &&Wire| (wire.from.0, wire.to.0) == (from.0, to.0);
        self.wires.iter().find(between).and_then(|wire| wire.log.as_deref()).unwrap_or_default()
    }

    /// Returns the number of malformed frames that a node received.
    #[must_use]
    pub fn malformed(&self, node: NodeIx) -> u64 {
        self.node(node).node.malformed()
    }
}

impl SimNode {
    /// Returns the number of a publisher's samples that this node has dropped, except for those that the next
    /// node counts as lost.
    fn reported(&self, of: PublisherId) -> u64 {
        let open = self.open_streams().map(|(_, publisher, counters)| (publisher, counters));
        let closed =
            self.closed.iter().map(|((_, publisher, _), counters)| (*publisher, *counters));
        let streams = open.chain(closed).filter(|(publisher, _)| *publisher == of);
        let links: u64 = streams.map(|(_, it)| it.drops.total() - it.aborted).sum();
        let early = self.node.waiting(of);
        let sinks = self.sinks.iter().map(|(id, sink)| sink.dropped(self.present(*id), of));
        let unrouted = self.node.accounts().map_or(0, |accounts| accounts.unrouted(of));
        links + early + sinks.sum::<u64>() + unrouted
    }

    /// Returns the open streams of all links: next hop, publisher and counters.
    pub(super) fn open_streams(
        &self,
    ) -> impl Iterator<Item = (NodeId, PublisherId, StreamCounters)> + '_ {
        self.node.links().iter().flat_map(|end| {
            end.link().streams().map(|(_, spec, counters, _)| (spec.hop, spec.publisher, counters))
        })
    }
}
