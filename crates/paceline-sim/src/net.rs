//! The interface that a scenario needs from a network, in virtual time or on live nodes.

use crate::handle::{LinkPlan, NodeIx, Payload, Pub, Sub};
use crate::sink::Delivered;
use crate::world::World;
use bytes::Bytes;
use paceline_proto::control::{PublisherSpec, Refusal, SubscriptionSpec};
use paceline_proto::ids::PublisherId;
use paceline_proto::reason::StreamCounters;
use paceline_sched::Duration;

/// A network of nodes on which scenarios run. It starts empty. Add nodes and links before publishers and
/// subscriptions.
///
/// Times are those of the network: a world skips them, live nodes wait.
pub trait Net {
    /// Adds a node.
    fn add_node(&mut self, name: &str) -> NodeIx;
    /// Connects two nodes by one link per direction.
    fn connect(&mut self, a: NodeIx, b: NodeIx, plan: LinkPlan);
    /// Cuts the connection between two nodes.
    fn cut(&mut self, a: NodeIx, b: NodeIx);
    /// Restores the connection between two nodes.
    fn restore(&mut self, a: NodeIx, b: NodeIx);
    /// Adds a publisher.
    fn publish(&mut self, node: NodeIx, spec: PublisherSpec) -> Pub;
    /// Publishes one sample.
    fn put(&mut self, publisher: Pub, payload: Bytes);
    /// Publishes `count` samples from now on, one per `period`.
    fn every(&mut self, publisher: Pub, period: Duration, count: u64, payload: Payload);
    /// Adds a subscription.
    fn subscribe(&mut self, node: NodeIx, spec: SubscriptionSpec) -> Sub;
    /// Ends a subscription; its received samples stay available.
    fn unsubscribe(&mut self, subscription: Sub);
    /// Lets time pass.
    fn run_for(&mut self, time: Duration);
    /// Returns all samples that a subscription received so far, in order.
    fn delivered(&mut self, subscription: Sub) -> Vec<Delivered>;
    /// Returns the publishers that a subscription currently receives from.
    fn heard(&mut self, subscription: Sub) -> Vec<PublisherId>;
    /// Returns the refusals reported to a subscription, in order.
    fn refusals(&mut self, subscription: Sub) -> Vec<(PublisherId, Refusal)>;
    /// Returns the id of a publisher.
    fn id(&self, publisher: Pub) -> PublisherId;
    /// Returns true if a publisher knows of a matching subscription.
    fn matching(&mut self, publisher: Pub) -> bool;
    /// Returns the names of all nodes that a node can reach, including itself, in order.
    fn known(&mut self, node: NodeIx) -> Vec<String>;
    /// Returns the numbers of publishers and subscriptions that a node knows.
    fn known_ends(&mut self, node: NodeIx) -> (usize, usize);
    /// Returns the counters of a publisher's samples on the link from `from` to `to`, summed over all its
    /// streams.
    fn stream(&mut self, from: NodeIx, to: NodeIx, publisher: Pub) -> StreamCounters;
    /// Returns the number of open streams of a publisher on the link from `from` to `to`.
    fn streams(&mut self, from: NodeIx, to: NodeIx, publisher: Pub) -> usize;
}

impl Net for World {
    fn add_node(&mut self, name: &str) -> NodeIx {
        Self::add_node(self, name)
    }

    fn connect(&mut self, a: NodeIx, b: NodeIx, plan: LinkPlan) {
        Self::connect(self, a, b, plan);
    }

    fn cut(&mut self, a: NodeIx, b: NodeIx) {
        Self::cut(self, a, b);
    }

    fn restore(&mut self, a: NodeIx, b: NodeIx) {
        Self::restore(self, a, b);
    }

    fn publish(&mut self, node: NodeIx, spec: PublisherSpec) -> Pub {
        Self::publish(self, node, spec)
    }

    fn put(&mut self, publisher: Pub, payload: Bytes) {
        Self::put(self, publisher, payload);
    }

    fn every(&mut self, publisher: Pub, period: Duration, count: u64, payload: Payload) {
        Self::every(self, publisher, period, count, payload);
    }

    fn subscribe(&mut self, node: NodeIx, spec: SubscriptionSpec) -> Sub {
        Self::subscribe(self, node, spec)
    }

    fn unsubscribe(&mut self, subscription: Sub) {
        Self::unsubscribe(self, subscription);
    }

    fn run_for(&mut self, time: Duration) {
        Self::run_for(self, time);
    }

    fn delivered(&mut self, subscription: Sub) -> Vec<Delivered> {
        Self::delivered(self, subscription).to_vec()
    }

    fn heard(&mut self, subscription: Sub) -> Vec<PublisherId> {
        Self::heard(self, subscription).to_vec()
    }

    fn refusals(&mut self, subscription: Sub) -> Vec<(PublisherId, Refusal)> {
        Self::refusals(self, subscription).to_vec()
    }

    fn id(&self, publisher: Pub) -> PublisherId {
        Self::id(self, publisher)
    }

    fn matching(&mut self, publisher: Pub) -> bool {
        Self::matching(self, publisher)
    }

    fn known(&mut self, node: NodeIx) -> Vec<String> {
        let mut names: Vec<String> =
            self.control(node).nodes().map(|view| view.name.to_owned()).collect();
        names.sort_unstable();
        names
    }

    fn known_ends(&mut self, node: NodeIx) -> (usize, usize) {
        let ends = self.control(node).nodes();
        ends.fold((0, 0), |(publishers, subscriptions), view| {
            (publishers + view.publishers.len(), subscriptions + view.subscriptions.len())
        })
    }

    fn stream(&mut self, from: NodeIx, to: NodeIx, publisher: Pub) -> StreamCounters {
        Self::stream(self, from, to, publisher)
    }

    fn streams(&mut self, from: NodeIx, to: NodeIx, publisher: Pub) -> usize {
        Self::streams(self, from, to, publisher)
    }
}
