//! What a scenario needs of a network, whether it runs in virtual time or on live nodes.

use crate::sink::Delivered;
use crate::world::World;
use bytes::Bytes;
use paceline_proto::control::{PublisherSpec, Refusal, SubscriptionSpec};
use paceline_proto::ids::PublisherId;
use paceline_proto::reason::StreamCounters;
use paceline_sched::{Capacity, Duration};

/// A node of a network.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct NodeIx(pub usize);

/// A publisher of a network.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Pub(pub usize);

/// A subscription of a network.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Sub(pub usize);

/// Makes the n-th payload of a publisher.
pub type Payload = Box<dyn FnMut(u64) -> Bytes + Send>;

/// What joins two nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkPlan {
    /// What each direction carries; without one whatever comes.
    pub capacity: Option<Capacity>,
}

/// A network of nodes to run a scenario on. It begins empty; nodes and what joins them come before
/// publishers and subscriptions.
///
/// Times are those of the network: a world jumps over them, live nodes take them.
pub trait Net {
    /// A new node.
    fn add_node(&mut self, name: &str) -> NodeIx;
    /// Joins two nodes by a link each way.
    fn connect(&mut self, a: NodeIx, b: NodeIx, plan: LinkPlan);
    /// Nothing passes between two nodes any more.
    fn cut(&mut self, a: NodeIx, b: NodeIx);
    /// What was cut is whole again.
    fn restore(&mut self, a: NodeIx, b: NodeIx);
    /// A new publisher.
    fn publish(&mut self, node: NodeIx, spec: PublisherSpec) -> Pub;
    /// Publishes one sample.
    fn put(&mut self, publisher: Pub, payload: Bytes);
    /// From now on publishes `count` samples, one each `period`.
    fn every(&mut self, publisher: Pub, period: Duration, count: u64, payload: Payload);
    /// A new subscription.
    fn subscribe(&mut self, node: NodeIx, spec: SubscriptionSpec) -> Sub;
    /// Ends a subscription; what it got stays.
    fn unsubscribe(&mut self, subscription: Sub);
    /// Lets time pass.
    fn run_for(&mut self, time: Duration);
    /// Everything that a subscription got so far, in order.
    fn delivered(&mut self, subscription: Sub) -> Vec<Delivered>;
    /// The publishers that a subscription hears now.
    fn heard(&mut self, subscription: Sub) -> Vec<PublisherId>;
    /// The refusals that a subscription was told of, in order.
    fn refusals(&mut self, subscription: Sub) -> Vec<(PublisherId, Refusal)>;
    /// Who a publisher is.
    fn id(&self, publisher: Pub) -> PublisherId;
    /// True if a publisher knows of someone who wants its samples.
    fn matching(&mut self, publisher: Pub) -> bool;
    /// The names of the nodes that a node can reach, its own among them, in order.
    fn known(&mut self, node: NodeIx) -> Vec<String>;
    /// How many publishers and subscriptions a node knows.
    fn known_ends(&mut self, node: NodeIx) -> (usize, usize);
    /// What became of a publisher's samples on the link from `from` to `to`, all its streams summed.
    fn stream(&mut self, from: NodeIx, to: NodeIx, publisher: Pub) -> StreamCounters;
    /// How many streams of a publisher the link from `from` to `to` carries now.
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
