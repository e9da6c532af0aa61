//! The reservations on paths through a node.

use super::units::{maybe_micros, micros, text};
use paceline_proto::control::{Grant, GrantedHop};
use paceline_proto::{NodeId, PublisherId, SubscriptionId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The reservation of one publisher's samples for one subscription.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Reservation {
    /// Id of the publisher.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub publisher: PublisherId,
    /// Tag; null if the node does not know the publisher.
    pub tag: Option<String>,
    /// Id of the subscription.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub subscription: SubscriptionId,
    /// Requested delay bound.
    #[serde(rename = "within_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub within: Option<Duration>,
    /// Sum of the delays guaranteed by the links of the path.
    #[serde(rename = "bound_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub bound: Duration,
    /// True if the reserved traffic was learned from the publisher's samples of the last minute and not declared.
    pub learned: bool,
    /// Nodes of the path, the publisher's first; empty on a node that only the spare's path leads through.
    pub hops: Vec<ReservedHop>,
    /// Nodes of the spare's path; empty without a spare, and on a node that only the first path leads through.
    pub spare: Vec<ReservedHop>,
}

/// The reservation of one node of a path on its link to the next one.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ReservedHop {
    /// Id of the node that sends.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub node: NodeId,
    /// Display name of the node.
    pub name: String,
    /// Name of the link.
    pub link: String,
    /// Capacity of the link; null if nothing is reserved.
    pub capacity_bits_per_s: Option<u64>,
    /// Reserved rate, including headers.
    pub bits_per_s: u64,
    /// Reserved burst.
    pub burst_bytes: u64,
    /// Delay bound of the link.
    #[serde(rename = "bound_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub bound: Duration,
    /// True if the processors are reserved at both ends of the hop.
    pub realtime: bool,
}

impl Reservation {
    /// Returns the reservation of a grant; `tag` is the publisher's.
    #[must_use]
    pub fn new(grant: &Grant, tag: Option<String>) -> Self {
        Self {
            publisher: grant.publisher,
            tag,
            subscription: grant.subscription,
            within: grant.within.map(Into::into),
            bound: grant.bound.into(),
            learned: grant.learned,
            hops: ReservedHop::of_path(&grant.hops),
            spare: ReservedHop::of_path(&grant.spare),
        }
    }
}

impl ReservedHop {
    /// Returns the hops of a granted path.
    #[must_use]
    pub fn of_path(hops: &[GrantedHop]) -> Vec<Self> {
        hops.iter().map(Self::new).collect()
    }

    fn new(hop: &GrantedHop) -> Self {
        Self {
            node: hop.node,
            name: hop.node_name.clone(),
            link: hop.link.clone(),
            capacity_bits_per_s: hop.capacity.map(|capacity| capacity.bits_per_s()),
            bits_per_s: hop.bytes_per_s.saturating_mul(8),
            burst_bytes: hop.burst,
            bound: hop.bound.into(),
            realtime: hop.realtime,
        }
    }
}
