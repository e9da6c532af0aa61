//! The status of a node.

use super::buffer::BufferStatus;
use super::by_reason;
use super::clock::ClockReport;
use super::host::ProcessorWait;
use super::link::LinkStatus;
use super::publisher::PublisherStatus;
use super::queue::QueueStatus;
use super::reservation::Reservation;
use super::subscription::SubscriptionStatus;
use super::units::{micros, text};
use paceline_proto::control::ProcessorUse;
use paceline_proto::{Drops, NodeId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The status of a node, at most a second old.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Node"))]
pub struct NodeStatus {
    /// Id of the node.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub id: NodeId,
    /// Display name.
    pub name: String,
    /// Time at which the counters were read, by the node's own clock: only differences are meaningful. The growth of a
    /// counter between two readings, divided by the difference of their times, is a rate. The counters of links have an
    /// earlier time of their own.
    #[serde(rename = "at_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub at: Duration,
    /// Its publishers.
    pub publishers: Vec<PublisherStatus>,
    /// Its subscriptions.
    pub subscriptions: Vec<SubscriptionStatus>,
    /// Its pull buffers.
    pub buffers: Vec<BufferStatus>,
    /// Its links.
    pub links: Vec<LinkStatus>,
    /// Reservations on paths that begin at, end at or cross this node.
    pub reservations: Vec<Reservation>,
    /// Processor time reserved by contracts on this host; null if admission does not charge it.
    pub processor: Option<ProcessorStatus>,
    /// Queue space of the node for contracts, on all its links and for its subscribers together. `greatest_bytes` includes
    /// payloads that its subscribers had not read.
    pub buffer: Option<QueueStatus>,
    /// Memory of the node for the input of its neighbours.
    pub memory: Option<MemoryStatus>,
    /// Samples dropped by the node, by reason: they arrived without a subscriber, or were not published.
    #[serde(with = "by_reason")]
    #[cfg_attr(feature = "typescript", ts(type = "Drops"))]
    pub dropped: Drops,
    /// Threads that are blocked: their next iteration is more than 2 s late.
    pub stalled: Vec<StalledThread>,
    /// State of its clock.
    pub clock: Option<ClockReport>,
    /// Publishers, subscriptions and other entries of other nodes that the node cannot read and ignores, at most 64.
    pub unread: Vec<UnreadStatus>,
    /// Time for which its threads waited for a processor; null if the kernel does not count it.
    #[serde(default)]
    pub processor_wait: Option<ProcessorWait>,
    /// Rows that are left out of this status, because an answer has at most 1 MiB.
    #[serde(default)]
    pub left_out: u64,
}

/// An entry in the record of a node that another node cannot read, and therefore ignores: the nodes run different versions.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Unread"))]
pub struct UnreadStatus {
    /// Id of the node that announced it.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub node: NodeId,
    /// The entry in words, such as `publisher 3 'robot/camera'`.
    pub entry: String,
    /// The reason, in words.
    pub reason: String,
}

/// A blocked thread of a node. Either the host is overloaded, or it is a fault.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Stalled"))]
pub struct StalledThread {
    /// Name of the thread: `paceline-engine`, or `paceline-` followed by the name of a link.
    pub thread: String,
    /// Delay of its next iteration.
    #[serde(rename = "for_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub still: Duration,
}

/// The processor time reserved by a host's contracts, in microseconds of one processor per second.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Processor"))]
pub struct ProcessorStatus {
    /// Reserved time, rounded up.
    pub held_us_per_s: u64,
    /// Limit of the reservations: `processor_percent`.
    pub most_us_per_s: u64,
}

/// The memory of a node for unfinished samples, control messages, records and pictures of all its neighbours.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "NeighbourMemory"))]
pub struct MemoryStatus {
    /// Used bytes.
    pub used_bytes: u64,
    /// The limit: `neighbour_memory`.
    pub bytes: u64,
    /// Greatest number of bytes that were used at once since the start.
    pub greatest_bytes: u64,
}

impl NodeStatus {
    /// Returns the status of a node without a name, a link, a publisher or a subscription.
    #[must_use]
    pub fn new(id: NodeId) -> Self {
        Self {
            id,
            name: String::new(),
            at: Duration::ZERO,
            publishers: Vec::new(),
            subscriptions: Vec::new(),
            buffers: Vec::new(),
            links: Vec::new(),
            reservations: Vec::new(),
            processor: None,
            buffer: None,
            memory: None,
            dropped: Drops::default(),
            stalled: Vec::new(),
            clock: None,
            unread: Vec::new(),
            processor_wait: None,
            left_out: 0,
        }
    }
}

impl From<ProcessorUse> for ProcessorStatus {
    fn from(ProcessorUse { held, most }: ProcessorUse) -> Self {
        // Rounded up, so that a small reservation is not shown as zero.
        Self { held_us_per_s: held.div_ceil(1_000), most_us_per_s: most / 1_000 }
    }
}

impl MemoryStatus {
    /// Returns true if more than a tenth of the memory is used.
    #[must_use]
    pub const fn is_much(&self) -> bool {
        self.used_bytes > self.bytes / 10
    }
}
