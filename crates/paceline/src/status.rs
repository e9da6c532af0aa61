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
//!     println!("{}: {} publishers, dropped {:?}", status.name, status.publishers.len(), status.drops);
//! }
//! # Ok::<(), paceline::OpenError>(())
//! ```
//!
//! [`Node::status`]: crate::Node::status
//! [`Node::sources`]: crate::Node::sources
//! [`Node::passages`]: crate::Node::passages
//! [`Publisher::feedback`]: crate::Publisher::feedback

use crate::delivery::TimedStatus;
#[doc(inline)]
pub use crate::kept::{RateCheck, RateNews};
use crate::time::ClockReport;
#[doc(inline)]
pub use paceline_proto::control::{BufferUse, ClassUse, ProcessorUse};
use paceline_proto::control::{Grant, Refusal, SubscriptionSpec};
#[doc(inline)]
pub use paceline_proto::guard::Flood;
use paceline_proto::link::ClassView;
#[doc(inline)]
pub use paceline_proto::link::{MendCounters, PASSAGES_MAX, Passage};
use paceline_proto::pull::Limits;
#[doc(inline)]
pub use paceline_proto::{
    DropReason, Drops, Excess, NodeId, PublisherId, StreamAges, StreamCounters, SubscriptionId,
};
use paceline_proto::{Encoding, Form, Kind, Pattern, Proxy, Retransmit, Size, Tag};
use paceline_sched::{Capacity, Late, LossTolerance};
use std::net::SocketAddrV4;
use std::time::Duration;

/// The status of one node, at most a second old.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStatus {
    /// The node.
    pub id: NodeId,
    /// Its display name.
    pub name: String,
    /// The time of reading, by the node's monotonic clock, with an arbitrary origin.
    ///
    /// The growth of a counter between two readings, divided by the difference of their times, is a
    /// rate. The counters of links have an earlier time, [`LinkStatus::at`].
    pub at: Duration,
    /// Its publishers.
    pub publishers: Vec<PublisherStatus>,
    /// Its subscriptions.
    pub subscriptions: Vec<SubscriptionStatus>,
    /// Its pull buffers.
    pub buffers: Vec<BufferStatus>,
    /// Its links.
    pub links: Vec<LinkStatus>,
    /// The grants on paths that begin at, end at or cross this node.
    pub reservations: Vec<Grant>,
    /// The processor share that contracts reserve on this host; `None` if the node charges none.
    pub processor: Option<ProcessorUse>,
    /// Its queue space for contracts; `None` for a node of an earlier version.
    pub buffer: Option<HostBuffer>,
    /// Its memory for the input of neighbours; `None` for a node of an earlier version.
    pub memory: Option<MemoryUse>,
    /// Samples dropped by the node, by reason: they arrived without a subscriber, or were not
    /// published ([`Node::note_dropped`](crate::Node::note_dropped)).
    pub drops: Drops,
    /// Threads whose next iteration is more than 2 s late.
    pub stalled: Vec<StalledThread>,
    /// Its clock; `None` for a node of an earlier version.
    pub clock: Option<ClockReport>,
    /// Entries in the records of other nodes that it cannot read and ignores, at most 64.
    pub unread: Vec<UnreadStatus>,
}

/// An entry in the record of another node that a node cannot read, and therefore ignores: the nodes run different
/// versions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnreadStatus {
    /// The other node.
    pub node: NodeId,
    /// The entry, such as `publisher 3 'robot/camera'`.
    pub entry: String,
    /// The field that it cannot read, and why.
    pub reason: String,
}

/// The queue space of a node for contracts, on all its links and for its subscribers together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HostBuffer {
    /// The reserved part and the size.
    pub space: BufferUse,
    /// The greatest number of bytes of contracted samples that waited at once since the start: with headers on its links,
    /// and the payloads that its subscribers had not read.
    pub greatest: u64,
}

/// The memory of a node for the input of all its neighbours: unfinished samples, control messages, records and the current
/// pictures of videos.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MemoryUse {
    /// The bytes that are used.
    pub used: u64,
    /// The most bytes, [`NodeBuilder::neighbour_memory`](crate::NodeBuilder::neighbour_memory).
    pub limit: u64,
    /// The greatest number of bytes that were used at once since the start.
    pub greatest: u64,
}

/// A stalled thread of a node. Either the host is overloaded, or it is a fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StalledThread {
    /// Its name: `paceline-engine`, or `paceline-` followed by the name of a link.
    pub thread: String,
    /// The delay of its next iteration.
    pub still: Duration,
}

/// The counters of a publisher.
#[derive(Clone, Debug, PartialEq)]
pub struct PublisherStatus {
    /// The publisher.
    pub id: PublisherId,
    /// Its tag.
    pub tag: Tag,
    /// The kind of its samples.
    pub kind: Kind,
    /// The media type of its samples.
    pub encoding: String,
    /// The declared period.
    pub period: Option<Duration>,
    /// Samples published.
    pub published: u64,
    /// The publish rate over the last second or more, in millihertz.
    pub rate_millihertz: u64,
    /// True if any node has a subscription that matches the tag.
    pub matching: bool,
}

/// The counters of a subscription.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriptionStatus {
    /// The subscription.
    pub id: SubscriptionId,
    /// Its pattern.
    pub pattern: String,
    /// The requested rate and size.
    pub form: Form,
    /// The requested delay bound.
    pub within: Option<Duration>,
    /// The requested loss tolerance as (x, y).
    pub loss: Option<(u32, u32)>,
    /// The requested place of the scaling.
    pub proxy: Proxy,
    /// The names of the nodes that scale the samples, one per publisher of `publishers`, in order.
    pub scaled_at: Vec<String>,
    /// The publishers that the subscription receives.
    pub publishers: Vec<PublisherId>,
    /// The reasons why paths refused it, one per publisher.
    pub refusals: Vec<String>,
    /// Samples delivered.
    pub delivered: u64,
    /// Payload bytes delivered.
    pub bytes: u64,
    /// The delivery rate over the last second or more, in millihertz.
    pub rate_millihertz: u64,
    /// Samples that were older than the delay bound at their arrival, or when the application took them. Those that were dropped
    /// also count in [`Self::drops`].
    pub late: u64,
    /// The part of [`Self::late`] that arrived in time: the samples waited in the process of the subscription, because it was
    /// slow or not scheduled.
    pub overdue: u64,
    /// The largest age of the samples that the application took in the last second or more, or that were dropped unread;
    /// zero without any. Samples that wait unread do not count yet.
    pub age_max: Duration,
    /// The mean age of the same samples, at most [`Self::age_max`]; `None` without any.
    pub age_mean: Option<Duration>,
    /// The sum of the ages of all samples that the application took. Divided by [`Self::delivered`] it is the mean since the
    /// start, apart from samples that wait unread.
    pub age_sum: Duration,
    /// Samples dropped at this node, by reason.
    pub drops: Drops,
    /// The largest jitter of a publisher's samples at arrival, by RFC 3550: the running mean of the changes of their ages.
    pub jitter: Duration,
    /// Samples that were published between two that arrived, but did not arrive. 0 unless every sample is requested.
    pub lost: u64,
    /// Its delivery by time; `None` without one.
    pub timed: Option<TimedStatus>,
}

/// The counters of a pull buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferStatus {
    /// The subscription that fills it.
    pub id: SubscriptionId,
    /// The pattern of that subscription.
    pub pattern: String,
    /// Its limits.
    pub limits: Limits,
    /// Samples stored.
    pub samples: u64,
    /// Payload bytes stored.
    pub bytes: u64,
    /// The capture times of the first and the last stored sample, in nanoseconds since 1970 by
    /// their publishers' clocks; `None` if the buffer is empty.
    pub captured: Option<(u64, u64)>,
}

/// The counters of a link and of its outgoing streams.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkStatus {
    /// Its name.
    pub name: String,
    /// Its capacity in bits per second, if it has one.
    pub capacity_bits_per_s: Option<u64>,
    /// The time of reading the counters of the link and its streams, by the node's monotonic clock:
    /// at most 250 ms before [`NodeStatus::at`].
    pub at: Duration,
    /// The neighbours on this link.
    pub hops: Vec<NodeId>,
    /// Bytes sent to each neighbour.
    pub sent: Vec<SentTo>,
    /// Bytes sent on the wire, including an estimate of the headers of all layers.
    pub wire_bytes: u64,
    /// Frames sent.
    pub frames: u64,
    /// Frames that an ordered transport lost while it was up. Always 0 unless the transport has a
    /// fault; `mended` counts the losses of a QUIC link.
    pub frames_lost: u64,
    /// The smallest measured RTT; zero if none was measured.
    pub least_round_trip: Duration,
    /// The last measured RTT without acknowledgement delay, of the slowest neighbour; zero if none was measured.
    pub round_trip: Duration,
    /// The jitter of the round trips by RFC 3550, of the neighbour with the largest; it includes both directions.
    pub jitter: Duration,
    /// Frames that a QUIC link lost; the losses of TCP are not visible, and appear as jitter.
    pub frames_dropped: u64,
    /// Its open streams.
    pub streams: Vec<StreamStatus>,
    /// The sum of the counters of its closed streams.
    pub closed: StreamCounters,
    /// Its classes in tree order, each followed by its traffic per neighbour; empty without
    /// classes.
    pub classes: Vec<ClassView>,
    /// Neighbours that are or were muted.
    pub muted: Vec<MutedStatus>,
    /// Losses and retransmissions; all zero on transports without loss, such as TCP.
    pub mended: MendCounters,
    /// The parts of the link that contracts reserve.
    pub reserved: LinkReserved,
}

/// The parts of a link that contracts reserve, except its rate.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LinkReserved {
    /// The buffer; `None` for a link without a capacity or a neighbour.
    pub buffer: Option<BufferUse>,
    /// The greatest number of bytes of contracted samples in the link's queues since the start, counted
    /// like the buffer.
    pub greatest_depth: u64,
    /// The rates of the classes that have streams, in matching order; empty without classes.
    pub classes: Vec<ClassUse>,
}

/// The bytes that a link sent to one neighbour, and the silence after which the neighbour is down.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SentTo {
    /// The neighbour.
    pub node: NodeId,
    /// Bytes sent since the link found the neighbour, counted like [`LinkStatus::wire_bytes`].
    pub wire_bytes: u64,
    /// The silence after which the neighbour counts as down: 1.8 s, and longer on a link below 200 kbit/s, whose idle
    /// hops use 2 % of the capacity. The slower end of the link determines it.
    pub down_after: Duration,
    /// The bytes of the node's [memory for neighbours](NodeStatus::memory) that the neighbour uses; 0 for a node of an
    /// earlier version.
    pub memory: u64,
}

/// A neighbour that was muted because it flooded this node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MutedStatus {
    /// The neighbour.
    pub node: NodeId,
    /// The kind of its excess traffic.
    pub flood: Flood,
    /// True if it is muted now. Its other traffic is still forwarded, unless none of its frames can
    /// be decoded.
    pub muted: bool,
    /// The number of times that it was muted.
    pub times: u64,
    /// The number of control messages, samples or frames dropped.
    pub dropped: u64,
}

/// The counters of a stream on a link.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamStatus {
    /// The publisher of its samples.
    pub publisher: PublisherId,
    /// The form of its samples.
    pub form: Form,
    /// The next hop.
    pub hop: NodeId,
    /// True if the stream has a contract; false for best effort.
    pub contracted: bool,
    /// Its contract on this link.
    pub contract: Option<StreamContract>,
    /// The ages of its samples at arrival at the link and at departure.
    pub ages: StreamAges,
    /// The counters of its samples on this link.
    pub counters: StreamCounters,
    /// The time from its last violation to [`LinkStatus::at`], with a resolution of 250 ms; `None`
    /// if there was none since the stream was opened.
    pub broken_ago: Option<Duration>,
    /// The multicast group from which the next hop receives it; `None` with unicast. Lost pieces are unicast in both cases.
    pub group: Option<SocketAddrV4>,
}

/// The contract of a stream on one link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamContract {
    /// T: the shortest time between two samples.
    pub period: Duration,
    /// The longest time from a sample's arrival at the link to the end of its transmission.
    pub deadline: Duration,
    /// The loss tolerance as (x, y).
    pub loss: (u32, u32),
    /// The bandwidth reserved for it on the link, in bits per second; zero if unknown.
    pub bits_per_s: u64,
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
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
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
