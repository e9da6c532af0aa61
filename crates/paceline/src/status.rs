//! What a node says of itself: the rows of `paceline ls`.

use paceline_proto::control::{Grant, ProcessorUse};
use paceline_proto::guard::Flood;
use paceline_proto::link::{ClassView, MendCounters};
use paceline_proto::pull::Limits;
use paceline_proto::{
    Drops, Form, Kind, NodeId, Proxy, PublisherId, StreamAges, StreamCounters, SubscriptionId, Tag,
};
use std::time::Duration;

/// One node's view of itself, at most a second old.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStatus {
    /// The node.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// When these counts were read, by the node's monotonic clock. Only differences mean something: what a count grew
    /// from one reading to the next, divided by the difference of their times, is a rate. Those of links are read
    /// earlier, at [`LinkStatus::at`].
    pub at: Duration,
    /// What it publishes.
    pub publishers: Vec<PublisherStatus>,
    /// What it subscribes to.
    pub subscriptions: Vec<SubscriptionStatus>,
    /// What it holds for others to pull.
    pub buffers: Vec<BufferStatus>,
    /// Its links.
    pub links: Vec<LinkStatus>,
    /// What is promised on paths that begin, end or lead through here.
    pub reservations: Vec<Grant>,
    /// What promises take of its host's processors; none if they are not charged there.
    pub processor: Option<ProcessorUse>,
    /// Samples that arrived here and found nobody to go to, or that were not published
    /// ([`Node::note_dropped`](crate::Node::note_dropped)), by reason.
    pub drops: Drops,
    /// Threads that stand still: the next iteration of each is more than two seconds late.
    pub stalled: Vec<StalledThread>,
}

/// A thread of a node that stands still. The host is overloaded, or it is a fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StalledThread {
    /// Its name, as `paceline-engine`, or `paceline-` and the name of a link.
    pub thread: String,
    /// How late its next iteration is.
    pub still: Duration,
}

/// A publisher, as its node counts it.
#[derive(Clone, Debug, PartialEq)]
pub struct PublisherStatus {
    /// The publisher.
    pub id: PublisherId,
    /// Its tag.
    pub tag: Tag,
    /// Its samples' kind.
    pub kind: Kind,
    /// Its samples' media type.
    pub encoding: String,
    /// The period that it declared.
    pub period: Option<Duration>,
    /// Samples published.
    pub published: u64,
    /// Published per second over the last second or more, in millihertz.
    pub rate_millihertz: u64,
    /// True if anybody wants it.
    pub matching: bool,
}

/// A subscription, as its node counts it.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriptionStatus {
    /// The subscription.
    pub id: SubscriptionId,
    /// The pattern.
    pub pattern: String,
    /// The rate and size asked for.
    pub form: Form,
    /// The delay bound asked for.
    pub within: Option<Duration>,
    /// The loss tolerance asked for, as x/y.
    pub loss: Option<(u32, u32)>,
    /// Where the scaling is done.
    pub proxy: Proxy,
    /// Publishers heard now.
    pub publishers: Vec<PublisherId>,
    /// Why a publisher cannot be heard.
    pub refusals: Vec<String>,
    /// Samples delivered.
    pub delivered: u64,
    /// Payload bytes delivered.
    pub bytes: u64,
    /// Delivered per second over the last second or more, in millihertz.
    pub rate_millihertz: u64,
    /// Samples that arrived later than the delay bound: delivered, or dropped for it and among [`Self::drops`] too.
    pub late: u64,
    /// Longest age of the samples that arrived in the last second or more; zero if none did.
    pub age_max: Duration,
    /// Mean age of the same samples, so at most [`Self::age_max`]; none if none arrived.
    pub age_mean: Option<Duration>,
    /// The ages of all samples delivered, together: divided by [`Self::delivered`] it is the mean since the start.
    pub age_sum: Duration,
    /// Samples dropped at this node, by reason.
    pub drops: Drops,
}

/// A pull buffer, as its node counts it.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferStatus {
    /// The subscription that feeds it.
    pub id: SubscriptionId,
    /// Whose samples it holds.
    pub pattern: String,
    /// What it may hold.
    pub limits: Limits,
    /// Samples that it holds.
    pub samples: u64,
    /// Payload bytes that it holds.
    pub bytes: u64,
    /// Capture times of the first and the last sample that it holds, in nanoseconds since 1970 by their
    /// publishers' clocks; none while it is empty.
    pub captured: Option<(u64, u64)>,
}

/// A link of a node, with the streams that leave over it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkStatus {
    /// Its name.
    pub name: String,
    /// Its capacity in bits per second, if it has one.
    pub capacity_bits_per_s: Option<u64>,
    /// When its counts and those of its streams were read, by the node's monotonic clock: up to a quarter of a second
    /// before [`NodeStatus::at`].
    pub at: Duration,
    /// Nodes at its other end.
    pub hops: Vec<NodeId>,
    /// Bytes sent to each of them.
    pub sent: Vec<SentTo>,
    /// Bytes sent, as counted on the wire: headers of all layers included by estimate.
    pub wire_bytes: u64,
    /// Frames sent.
    pub frames: u64,
    /// Frames that did not arrive although the transport keeps frames in order and was up. It is 0 unless the
    /// transport has a fault; `mended` counts the losses of a link over UDP.
    pub frames_lost: u64,
    /// Least round trip seen, zero if none was measured.
    pub least_round_trip: Duration,
    /// Its streams.
    pub streams: Vec<StreamStatus>,
    /// What became of the samples of streams that are gone, all together.
    pub closed: StreamCounters,
    /// Its classes, each followed by those of its peers; none if it has none.
    pub classes: Vec<ClassView>,
    /// Neighbours that were muted, now or before.
    pub muted: Vec<MutedStatus>,
    /// What was lost on the way, and what became of it; all zero where nothing is, as over TCP.
    pub mended: MendCounters,
}

/// What a link has sent to one node at its other end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SentTo {
    /// The node.
    pub node: NodeId,
    /// Bytes sent to it since the link found it, counted as [`LinkStatus::wire_bytes`].
    pub wire_bytes: u64,
}

/// A neighbour that flooded this node, and was muted for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MutedStatus {
    /// Which one.
    pub node: NodeId,
    /// What it sent too much of.
    pub flood: Flood,
    /// It is not heard now; the rest of what it sends is carried as before, unless none of its frames can be read.
    pub muted: bool,
    /// How often it was muted.
    pub times: u64,
    /// What was dropped: control messages, samples or frames.
    pub dropped: u64,
}

/// A stream on a link.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamStatus {
    /// Whose samples.
    pub publisher: PublisherId,
    /// In which form.
    pub form: Form,
    /// The next hop.
    pub hop: NodeId,
    /// True if it has a contract; false for best effort.
    pub contracted: bool,
    /// What was promised to it on this link.
    pub contract: Option<StreamContract>,
    /// How old its samples were when they came to the link and when they left it.
    pub ages: StreamAges,
    /// What became of its samples here.
    pub counters: StreamCounters,
    /// How long before [`LinkStatus::at`] one of its windows was last broken, to a quarter of a second; none if none
    /// was since the stream was opened.
    pub broken_ago: Option<Duration>,
}

/// What one link has promised to a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamContract {
    /// T: the least time between two samples.
    pub period: Duration,
    /// From a sample's arrival at the link to the end of its service there.
    pub deadline: Duration,
    /// How many samples of each window may miss, as x/y.
    pub loss: (u32, u32),
    /// What is held for it on the link; zero if that is not known.
    pub bits_per_s: u64,
}
