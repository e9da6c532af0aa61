//! Publishers in the registry, and the paths of their samples.

use paceline_proto::{Encoding, Form, NodeId, PublisherId, Retransmit, SubscriptionId, Tag};
use paceline_sched::Capacity;
use std::time::Duration;

/// A publisher that a pattern matches, as announced by its node.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceView {
    /// The publisher.
    pub publisher: PublisherId,
    /// Its tag.
    pub tag: Tag,
    /// The display name of its node.
    pub node: String,
    /// The declared media type.
    pub encoding: Encoding,
    /// The declared period.
    pub period: Option<Duration>,
    /// The hops from the publisher's node to this one, in path order. Empty if the publisher is on
    /// this node, or if no path is known.
    pub hops: Vec<HopView>,
    /// The subscriptions of other nodes that receive its samples.
    pub taken: Vec<Taken>,
}

/// A subscription that receives the samples of a publisher.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The form of the samples on links. Subscriptions behind one hop with the same form share a
    /// stream there.
    pub form: Form,
    /// The requested retransmission. Subscriptions that only observe request none.
    pub retransmit: Retransmit,
    /// The hops from the publisher's node to the subscription's node.
    pub hops: Vec<HopView>,
}

/// One hop of a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HopView {
    /// The sending node.
    pub from: NodeId,
    /// The receiving node.
    pub to: NodeId,
    /// The name of the link.
    pub link: String,
    /// The capacity of the link; `None` for a link that was opened without one.
    pub capacity: Option<Capacity>,
}
