//! The counters of a link.

use super::class::ClassStatus;
use super::counters::LinkCounters;
use super::queue::QueueStatus;
use super::stream::StreamStatus;
use super::units::{by_name, maybe_part, micros, text, texts};
use paceline_proto::NodeId;
use paceline_proto::capacity::{CapacityEstimate, CapacityState};
use paceline_proto::guard::Flood;
use paceline_proto::link::RepairCounters;
use paceline_proto::medium::MediumView;
use paceline_sched::Capacity;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The counters of a link and of its outgoing streams.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Link"))]
pub struct LinkStatus {
    /// Name of the link.
    pub name: String,
    /// Time at which the counters of the link and its streams were read, by its node's clock: at most 250 ms before `at` of the
    /// node.
    #[serde(rename = "at_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub at: Duration,
    /// Capacity, as configured or as measured; null without one.
    pub capacity_bits_per_s: Option<u64>,
    /// Measurement of the capacity; null unless it is measured.
    pub measured: Option<MeasuredCapacity>,
    /// Medium that the link shares with others; null without one, and without a neighbour.
    pub medium: Option<MediumStatus>,
    /// Rate sent over the last second or more; null in the first two seconds of the node.
    pub use_bits_per_s: Option<u64>,
    /// Rate reserved by the contracts of its streams.
    pub reserved_bits_per_s: u64,
    /// Smallest capacity at which all its contracts stay, of a measured one the part for contracts; 0 without contracts, null
    /// without a capacity, with classes, and in the first two seconds of the node.
    pub least_capacity_bits_per_s: Option<u64>,
    /// Smallest round trip of 10 to 20 s; zero if none was measured.
    #[serde(rename = "round_trip_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub least_round_trip: Duration,
    /// Last round trip of the slowest neighbour, without acknowledgement delay; zero if none was measured.
    #[serde(rename = "delay_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub round_trip: Duration,
    /// Jitter of the round trips, by RFC 3550, of the neighbour with the largest; it includes both directions.
    #[serde(rename = "jitter_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub jitter: Duration,
    /// Ids of its neighbours.
    #[serde(with = "texts")]
    #[cfg_attr(feature = "typescript", ts(type = "Array<string>"))]
    pub hops: Vec<NodeId>,
    /// Traffic to each of the hops.
    pub neighbours: Vec<NeighbourStatus>,
    /// Bytes sent, with an estimate of the headers of all layers.
    pub wire_bytes: u64,
    /// Frames sent.
    pub frames: u64,
    /// Frames lost by a transport that should keep order; 0 unless the transport has a fault.
    pub frames_lost: u64,
    /// Frames lost by a carrier that may lose them, such as QUIC. The losses of TCP are not visible, and appear as jitter.
    pub frames_dropped: u64,
    /// Part of the frames lost over the last second or more, 0 to 1; null if none was sent.
    #[serde(with = "maybe_part")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub loss: Option<f64>,
    /// Open streams.
    pub streams: Vec<StreamStatus>,
    /// Sums over closed streams.
    pub closed: LinkCounters,
    /// Its classes in tree order, each followed by its traffic per neighbour; empty without classes.
    pub classes: Vec<ClassStatus>,
    /// Neighbours that are or were muted, because they flooded the node.
    pub muted: Vec<MutedStatus>,
    /// Retransmissions; all zero on transports without loss, such as TCP.
    pub repairs: Repairs,
    /// Queue space of the link for contracts; null for a link without a capacity or a neighbour.
    pub buffer: Option<QueueStatus>,
}

/// A shared medium, as the node of one of its links knows it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Medium"))]
pub struct MediumStatus {
    /// Name of the medium.
    pub name: String,
    /// Sum of the rates that all its links may have: 15/16 of its capacity.
    pub allottable_bits_per_s: u64,
    /// Rate of this link.
    pub allotted_bits_per_s: u64,
    /// Sum of the least rates that the contracts of all links need.
    pub reserved_bits_per_s: u64,
    /// Number of its links.
    pub links: usize,
    /// Id of the node that manages it.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub manager: NodeId,
}

impl MediumStatus {
    /// Returns the status of a link on a medium with this rate in bits per second.
    #[must_use]
    pub fn new(view: MediumView, allotted_bits_per_s: u64) -> Self {
        let MediumView { name, allottable, reserved, links, manager, .. } = view;
        Self {
            name,
            allottable_bits_per_s: allottable,
            allotted_bits_per_s,
            reserved_bits_per_s: reserved,
            links,
            manager,
        }
    }
}

/// The measurement of a link's capacity.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MeasuredCapacity {
    /// `unknown`, `measuring`, `stable`, `falling` or `outage`.
    #[serde(with = "by_name")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub state: CapacityState,
    /// The most probable capacity; during an outage, the last one before it. 0 before the first measurement.
    pub estimate_bits_per_s: u64,
    /// The conservative end of the confidence interval, at which the link sends; it uses less while a queue drains.
    pub low_bits_per_s: u64,
    /// The optimistic end; null if nothing bounds the capacity.
    pub high_bits_per_s: Option<u64>,
    /// The part of it that contracts may use: 95 % of the conservative end, of the last second or two after a rise.
    pub contracts_bits_per_s: u64,
}

impl MeasuredCapacity {
    /// Returns the measurement, and the part for contracts.
    #[must_use]
    pub fn new(found: &CapacityEstimate, contracts: Option<Capacity>) -> Self {
        Self {
            state: found.state,
            estimate_bits_per_s: found.estimate,
            low_bits_per_s: found.low,
            high_bits_per_s: (found.high != u64::MAX).then_some(found.high),
            contracts_bits_per_s: contracts.map_or(0, Capacity::bits_per_s),
        }
    }
}

/// The node at the other end of a link: the bytes that the link sent to it, and the silence after which it is down.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Neighbour"))]
pub struct NeighbourStatus {
    /// Id of the neighbour.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub id: NodeId,
    /// Bytes sent to this node since the link found it, counted like those of the link.
    pub wire_bytes: u64,
    /// Rate sent over the last second or more; null in the first two seconds.
    pub use_bits_per_s: Option<u64>,
    /// Silence after which it counts as down: 1.8 s, and longer on a link below 200 kbit/s, whose idle hops use 2 % of the
    /// capacity. The slower end of the link determines it.
    #[serde(rename = "down_after_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub down_after: Duration,
    /// Bytes of the node's memory for neighbours that this one uses.
    pub memory_bytes: u64,
}

/// A neighbour that was muted because it flooded its node.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Muted"))]
pub struct MutedStatus {
    /// Id of the neighbour.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub peer: NodeId,
    /// Kind of excess traffic: `control` messages, `unasked` samples or `malformed` frames.
    #[serde(with = "by_name")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub flood: Flood,
    /// True if the neighbour is muted now. Its other traffic is still forwarded, unless none of its frames can be decoded.
    pub muted: bool,
    /// Number of times that the neighbour was muted.
    pub times: u64,
    /// Dropped messages, samples or frames.
    pub dropped: u64,
}

/// Losses on a link and their repair.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Repairs"))]
pub struct Repairs {
    /// Retransmitted pieces.
    pub repeated: u64,
    /// Payload bytes of the retransmitted pieces.
    pub repeated_bytes: u64,
    /// Samples that could no longer arrive in time.
    pub given_up: u64,
    /// The share of the capacity that is reserved for retransmission, in thousandths: it follows the loss of a measured link. 0 on
    /// links that keep order.
    pub share_per_mille: u64,
}

impl From<RepairCounters> for Repairs {
    fn from(counters: RepairCounters) -> Self {
        let RepairCounters { repeated, repeated_bytes, given_up, share_per_mille } = counters;
        Self { repeated, repeated_bytes, given_up, share_per_mille }
    }
}
