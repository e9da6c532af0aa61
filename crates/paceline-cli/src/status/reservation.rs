//! Reservations in the status document.

use paceline::contract::{Grant, GrantedHop};
use paceline::status::{BufferUse, HostBuffer, LinkReserved, NodeStatus, ProcessorUse};
use paceline_tool::show::micros;
use serde::{Deserialize, Serialize};

/// The reservation of one publisher's samples for one subscription.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Reservation {
    pub(crate) publisher: String,
    /// Tag; null if the publisher's node did not answer.
    pub(crate) tag: Option<String>,
    pub(crate) subscription: String,
    /// Requested delay bound.
    pub(crate) within_us: Option<u64>,
    /// Sum of the delays guaranteed by the links of the path.
    pub(crate) bound_us: u64,
    /// Nodes of the path, the publisher's first; empty on a node that only the spare's path leads through.
    pub(crate) hops: Vec<ReservedHop>,
    /// Nodes of the spare's path; empty without a spare, and on a node that only the first path leads through.
    pub(crate) spare: Vec<ReservedHop>,
}

/// The processor time reserved by a host's contracts, in microseconds of one processor per second.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Processor {
    pub(crate) held_us_per_s: u64,
    /// Limit of the reservations: `processor_percent`.
    pub(crate) most_us_per_s: u64,
}

impl Processor {
    pub(super) const fn new(processor: &ProcessorUse) -> Self {
        // Round up, so that a small reservation is not shown as zero.
        let held_us_per_s = processor.held.div_ceil(1_000);
        Self { held_us_per_s, most_us_per_s: processor.most / 1_000 }
    }
}

/// The queue space of a link or of a node for contracts, in bytes on the wire.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct QueueBuffer {
    /// Most bytes that all contracts together can have queued.
    pub(crate) reserved_bytes: u64,
    pub(crate) bytes: u64,
    /// Greatest number of bytes of contracted samples in the queues since the start.
    pub(crate) greatest_bytes: u64,
}

impl QueueBuffer {
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
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct ReservedHop {
    pub(crate) node: String,
    pub(crate) name: String,
    pub(crate) link: String,
    pub(crate) capacity_bits_per_s: Option<u64>,
    pub(crate) bits_per_s: u64,
    pub(crate) burst_bytes: u64,
    pub(crate) bound_us: u64,
    /// True if the processor is reserved for the node.
    pub(crate) realtime: bool,
}

impl Reservation {
    pub(super) fn new(grant: &Grant, all: &[NodeStatus]) -> Self {
        let publishers = all.iter().flat_map(|node| &node.publishers);
        let publisher = publishers.into_iter().find(|it| it.id == grant.publisher);
        Self {
            publisher: grant.publisher.to_string(),
            tag: publisher.map(|publisher| publisher.tag.to_string()),
            subscription: grant.subscription.to_string(),
            within_us: grant.within.map(|within| micros(within.into())),
            bound_us: micros(grant.bound.into()),
            hops: ReservedHop::of_path(&grant.hops),
            spare: ReservedHop::of_path(&grant.spare),
        }
    }
}

impl ReservedHop {
    pub(crate) fn of_path(hops: &[GrantedHop]) -> Vec<Self> {
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
