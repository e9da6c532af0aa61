//! The topology and the streams between hosts, as planners see them.

use crate::status::HopView;
use paceline_proto::{Form, NodeId, PublisherId, SubscriptionId, Tag};
use std::time::Duration;

/// The topology, and the streams of some tags. Read by [`Node::network`](crate::Node::network).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkView {
    /// The reachable nodes, ordered by identifier.
    pub nodes: Vec<NetworkNode>,
    /// The hops between nodes that both ends announce, in both directions.
    pub hops: Vec<HopView>,
    /// The streams between hosts, one per publisher and subscription.
    pub streams: Vec<NetworkStream>,
}

/// A node of the topology.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkNode {
    /// The node.
    pub id: NodeId,
    /// Its display name.
    pub name: String,
    /// The node of its host; its own identifier unless it is another process of that host.
    pub host: NodeId,
    /// False if a neighbour forwards nothing through it, because it lacks the right to relay.
    pub relays: bool,
}

/// The samples of a publisher for a subscription of another host.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkStream {
    /// The publisher.
    pub publisher: PublisherId,
    /// Its tag.
    pub tag: Tag,
    /// The time between two published samples; 100 ms if the rate is unknown.
    pub period: Duration,
    /// The payload bytes per second of the unscaled samples; `None` before the first sample of a
    /// publisher that declares no size.
    pub full_bytes_per_s: Option<u64>,
    /// The longest measured processor time of scaling a sample; zero before the first measurement.
    pub work: Duration,
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The requested form, as far as the publisher can provide it.
    pub form: Form,
    /// The payload bytes per second in that form.
    pub bytes_per_s: Option<u64>,
    /// The time between two samples in that form.
    pub form_period: Duration,
    /// The requested delay bound.
    pub within: Option<Duration>,
    /// The node that scales the samples, or would scale them.
    pub place: NodeId,
}
