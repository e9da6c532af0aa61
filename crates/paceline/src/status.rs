//! The state of a running system, as plain data: identifiers, counters, feedback, paths and traces.
//!
//! [`Node::status`] reads the counters of every reachable node, [`Publisher::feedback`] the delivery
//! to the subscriptions of a publisher, [`Node::sources`] the publishers and their paths, and
//! [`Node::passages`] the trace of single samples.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! let node = paceline::Node::open()?;
//! for status in node.status(Duration::from_millis(500)) {
//!     println!("{}: {} publishers, dropped {:?}", status.name, status.publishers.len(), status.dropped);
//! }
//! # Ok::<(), paceline::OpenError>(())
//! ```
//!
//! [`Node::status`]: crate::Node::status
//! [`Node::sources`]: crate::Node::sources
//! [`Node::passages`]: crate::Node::passages
//! [`Publisher::feedback`]: crate::Publisher::feedback

#[doc(inline)]
pub use crate::kept::{RateCheck, RateNews};
use bytes::Bytes;
#[doc(inline)]
pub use paceline_node::status::{
    BufferStatus, ClassStatus, ElasticStatus, HealthState, LinkCounters, LinkStatus,
    MeasuredCapacity, MediumStatus, MemoryStatus, MutedStatus, NeighbourStatus, NetworkHealth,
    NodeStatus, PlayersStatus, ProcessorStatus, ProcessorWait, PublisherStatus, QueueStatus,
    Repairs, RequestedForm, Reservation, ReservedHop, StalledThread, StatusError, StreamContract,
    StreamStatus, SubscriptionHealth, SubscriptionStatus, SummedAges, UnreadStatus, by_reason,
    explain,
};
use paceline_proto::control::{Grant, Refusal, SubscriptionSpec};
#[doc(inline)]
pub use paceline_proto::guard::Flood;
#[doc(inline)]
pub use paceline_proto::link::{PASSAGES_MAX, Passage};
#[doc(inline)]
pub use paceline_proto::{DropReason, Drops, Excess, IdError, NodeId, PublisherId, SubscriptionId};
use paceline_proto::{Encoding, Form, Pattern, Proxy, Retransmit, Size, Tag};
use paceline_sched::{Capacity, Late, LossTolerance};
use std::time::Duration;

/// Decodes the answers of nodes, sorted by name, then by id. An invalid answer is logged and left out.
pub(crate) fn decoded(answers: &[(NodeId, Bytes)]) -> Vec<NodeStatus> {
    let decode = |(node, bytes): &(NodeId, Bytes)| {
        NodeStatus::from_wire(bytes)
            .inspect_err(|error| {
                crate::warn_limited!(
                    "invalid status from {node}: {error}; it may run another version of Paceline than {}; run the \
                     same version on both",
                    env!("CARGO_PKG_VERSION")
                );
            })
            .ok()
    };
    let mut found: Vec<NodeStatus> = answers.iter().filter_map(decode).collect();
    found.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
    found
}

/// The request, grant and measured delivery of one subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct Feedback {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The display name of its node.
    pub node: String,
    /// The requested rate and size, as far as the publisher can provide them.
    pub form: Form,
    /// The expected time between two samples, if known.
    pub period: Option<Duration>,
    /// The requested delay bound.
    pub within: Option<Duration>,
    /// The requested loss tolerance.
    pub loss: Option<LossTolerance>,
    /// The contract of its path; `None` for best effort.
    pub grant: Option<Grant>,
    /// The reason of a refusal, if its path refused the request.
    pub refusal: Option<Refusal>,
    /// Samples beyond the publisher's declared rate or size, which were queued behind contracted
    /// traffic.
    ///
    /// Counted by the links of the publisher's node, for all subscriptions in the same form
    /// together.
    pub excess: Excess,
    /// The counters of the subscription's node; `None` if it did not answer in time.
    pub measured: Option<Measured>,
}

/// The delivery counters of a subscription, for all its publishers together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Samples delivered.
    pub delivered: u64,
    /// Payload bytes delivered.
    pub bytes: u64,
    /// Samples that were older than the delay bound at their arrival, or when the application took them.
    pub late: u64,
    /// The part of [`Self::late`] that arrived in time, and waited in the process of the subscription.
    pub overdue: u64,
    /// Samples dropped at the subscription's node for any reason, without drops on links before it.
    pub dropped: u64,
    /// The delivery rate over the last second or more, in millihertz.
    pub rate_millihertz: u64,
    /// The largest age of the samples that the application took in the last second or more, or that were dropped unread.
    pub age_max: Duration,
    /// The sum of the ages of all delivered samples. Two readings give the mean in between.
    pub age_sum: Duration,
    /// The reception of the players behind the subscription, if an RTSP server has it.
    pub players: Option<PlayersStatus>,
}

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
    /// The longest time between two key pictures so far, if it publishes video. A subscriber that
    /// cannot join in between waits at most this long for its first picture.
    pub key_interval: Option<Duration>,
    /// The treatment of samples that miss their deadline. [`Late::Send`] also if the publisher waits for room.
    pub late: Late,
    /// The declared loss tolerance of subscribers without one.
    pub loss: Option<LossTolerance>,
    /// The declared delay bound of subscribers without one.
    pub within: Option<Duration>,
    /// The picture size in pixels, if it is known.
    pub size: Option<Size>,
    /// The largest sample in bytes, declared or published so far.
    pub bytes_max: Option<u64>,
    /// The declared mean rate in bits per second, and the most bytes at once.
    pub traffic: Option<(u64, u64)>,
    /// True if subscribers that join later receive the newest sample.
    pub latch: bool,
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
    /// True if the receiving node gets the multicast groups of the link: a form that several such nodes receive is sent
    /// once.
    pub multicast: bool,
}

/// A subscription of any node, as recorded in the registry.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriptionView {
    /// The subscription.
    pub id: SubscriptionId,
    /// The display name of its node.
    pub node: String,
    /// Its pattern.
    pub pattern: Pattern,
    /// The requested rate and size.
    pub form: Form,
    /// The requested delay bound.
    pub within: Option<Duration>,
    /// The requested loss tolerance.
    pub loss: Option<LossTolerance>,
    /// The requested place of the scaling.
    pub proxy: Proxy,
}

impl SubscriptionView {
    pub(crate) fn new(id: SubscriptionId, node: &str, spec: &SubscriptionSpec) -> Self {
        let SubscriptionSpec { pattern, form, within, loss, proxy, .. } = spec.clone();
        let within = within.map(Into::into);
        Self { id, node: node.to_owned(), pattern, form, within, loss, proxy }
    }
}

/// The trace of a publisher's last samples on one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePassages {
    /// The node.
    pub node: NodeId,
    /// The publisher's streams on that node.
    pub streams: Vec<StreamPassages>,
}

/// The trace of one stream on one link.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamPassages {
    /// The name of the link.
    pub link: String,
    /// The next hop.
    pub hop: NodeId,
    /// The form of the samples on the link.
    pub form: Form,
    /// The last samples, oldest first, at most [`PASSAGES_MAX`].
    pub passages: Vec<Passage>,
}
