//! Reservations in the status document.

use paceline::contract::{Grant, GrantedHop};
use paceline::status::{BufferUse, HostBuffer, LinkReserved, NodeStatus, ProcessorUse};
use paceline_tool::show::micros;
use serde::{Deserialize, Serialize};

/// The reservation of one publisher's samples for one subscription.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Reservation"))]
pub struct ReservationJson {
    /// Id of the publisher.
    pub publisher: String,
    /// Tag; null if the publisher's node did not answer.
    pub tag: Option<String>,
    /// Id of the subscription.
    pub subscription: String,
    /// Requested delay bound.
    pub within_us: Option<u64>,
    /// Sum of the delays guaranteed by the links of the path.
    pub bound_us: u64,
    /// Nodes of the path, the publisher's first; empty on a node that only the spare's path leads through.
    pub hops: Vec<HopJson>,
    /// Nodes of the spare's path; empty without a spare, and on a node that only the first path leads through.
    pub spare: Vec<HopJson>,
}

/// The processor time reserved by a host's contracts, in microseconds of one processor per second.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Processor"))]
pub struct ProcessorJson {
    /// Reserved time in microseconds of one processor per second.
    pub held_us_per_s: u64,
    /// Limit of the reservations: `processor_percent`.
    pub most_us_per_s: u64,
}

impl ProcessorJson {
    pub(super) const fn new(processor: &ProcessorUse) -> Self {
        // Round up, so that a small reservation is not shown as zero.
        let held_us_per_s = processor.held.div_ceil(1_000);
        Self { held_us_per_s, most_us_per_s: processor.most / 1_000 }
    }
}

/// The queue space of a link or of a node for contracts, in bytes on the wire.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "QueueBuffer"))]
pub struct QueueJson {
    /// Most bytes that all contracts together can have queued.
    pub reserved_bytes: u64,
    /// Size of the space.
    pub bytes: u64,
    /// Greatest number of bytes of contracted samples in the queues since the start.
    pub greatest_bytes: u64,
}

impl QueueJson {
    pub(super) const fn of_host(host: &HostBuffer) -> Self {
        let BufferUse { held, most } = host.space;
        Self { reserved_bytes: held, bytes: most, greatest_bytes: host.greatest }
    }

    pub(super) fn new(link: &LinkReserved) -> Option<Self> {
        let BufferUse { held, most } = link.buffer?;
        let greatest_bytes = link.greatest_depth;
        Some(Self { reserved_bytes: held, bytes: most, greatest_bytes })
    }
}

/// The reservation of one node of a path on its link to the next one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "ReservedHop"))]
pub struct HopJson {
    /// Id of the node that sends.
    pub node: String,
    /// Display name of the node.
    pub name: String,
    /// Name of the link.
    pub link: String,
    /// Capacity of the link; null if nothing is reserved.
    pub capacity_bits_per_s: Option<u64>,
    /// Reserved rate.
    pub bits_per_s: u64,
    /// Reserved burst.
    pub burst_bytes: u64,
    /// Delay bound of the link.
    pub bound_us: u64,
    /// True if the processor is reserved for the node.
    pub realtime: bool,
}

impl ReservationJson {
    pub(super) fn new(grant: &Grant, all: &[NodeStatus]) -> Self {
        let publishers = all.iter().flat_map(|node| &node.publishers);
        let publisher = publishers.into_iter().find(|it| it.id == grant.publisher);
        Self {
            publisher: grant.publisher.to_string(),
            tag: publisher.map(|publisher| publisher.tag.to_string()),
            subscription: grant.subscription.to_string(),
            within_us: grant.within.map(|within| micros(within.into())),
            bound_us: micros(grant.bound.into()),
            hops: HopJson::of_path(&grant.hops),
            spare: HopJson::of_path(&grant.spare),
        }
    }
}

impl HopJson {
    /// Returns the hops of a granted path.
    pub fn of_path(hops: &[GrantedHop]) -> Vec<Self> {
        hops.iter().map(Self::new).collect()
    }

    fn new(hop: &GrantedHop) -> Self {
        Self {
            node: hop.node.to_string(),
            name: hop.node_name.clone(),
            link: hop.link.clone(),
            capacity_bits_per_s: hop.capacity.map(|capacity| capacity.bits_per_s()),
            bits_per_s: hop.bytes_per_s.saturating_mul(8),
            burst_bytes: hop.burst,
            bound_us: micros(hop.bound.into()),
            realtime: hop.realtime,
        }
    }
}
