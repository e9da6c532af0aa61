//! Publishers as the registry of every node knows them, and the ways that their samples take.

use paceline_proto::{Encoding, Form, NodeId, PublisherId, Retransmit, SubscriptionId, Tag};
use paceline_sched::Capacity;
use std::time::Duration;

/// A publisher that a pattern matches: what its node has told everybody. Nobody is asked for it.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceView {
    /// The publisher.
    pub publisher: PublisherId,
    /// Its tag.
    pub tag: Tag,
    /// The name of its node.
    pub node: String,
    /// The media type that it declared.
    pub encoding: Encoding,
    /// The period that it declared.
    pub period: Option<Duration>,
    /// The hops from its node to this one, in the order of the way; none if it is on this node, or if no way is
    /// known.
    pub hops: Vec<HopView>,
    /// The subscriptions of other nodes that get its samples.
    pub taken: Vec<Taken>,
}

/// A subscription that gets the samples of a publisher.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The form in which links carry them. Subscriptions behind one hop that ask for the same form share one
    /// stream there.
    pub form: Form,
    /// What it wants done about loss. Observers want nothing.
    pub retransmit: Retransmit,
    /// The hops from the publisher's node to its own.
    pub hops: Vec<HopView>,
}

/// One hop of a way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HopView {
    /// The node that it leaves.
    pub from: NodeId,
    /// The node that it reaches.
    pub to: NodeId,
    /// The link that it leads over.
    pub link: String,
    /// What that carries; `None` for one that takes whatever comes.
    pub capacity: Option<Capacity>,
}
