//! The counters of a class of a link.

use super::counters::LinkCounters;
use super::units::{maybe_text, part};
use paceline_proto::NodeId;
use paceline_proto::control::ClassUse;
use paceline_proto::link::ClassView;
use serde::{Deserialize, Serialize};

/// The counters of a class of a link.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Class"))]
pub struct ClassStatus {
    /// Name of the class; for the class of a neighbour, the name of the class above it.
    pub name: String,
    /// Name of the class above; null directly below the link.
    pub parent: Option<String>,
    /// Id of the next hop for a class per neighbour; null for other classes.
    #[serde(with = "maybe_text")]
    #[cfg_attr(feature = "typescript", ts(type = "string | null"))]
    pub peer: Option<NodeId>,
    /// Its part of a busy link, 0 to 1; 0 with only a guarantee. For the class of a neighbour, the part of all neighbours
    /// together.
    #[serde(with = "part")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub share: f64,
    /// Bytes sent on the wire.
    pub served_bytes: u64,
    /// Bytes sent because of the guarantee.
    pub guaranteed_bytes: u64,
    /// Rate that the class guarantees to contracts; 0 if it guarantees nothing.
    pub guaranteed_bits_per_s: u64,
    /// Part of it that contracts reserve.
    pub reserved_bits_per_s: u64,
    /// Open streams.
    pub streams: u32,
    /// The counters of its samples.
    #[serde(flatten)]
    pub counters: LinkCounters,
}

impl ClassStatus {
    /// Returns the status of a class; `reserved` are the guarantees of the classes of its link.
    #[must_use]
    pub fn new(class: &ClassView, reserved: &[ClassUse]) -> Self {
        let contracts = reserved.iter().find(|it| class.peer.is_none() && it.name == class.name);
        Self {
            name: class.name.clone(),
            parent: class.parent.clone(),
            peer: class.peer,
            share: f64::from(class.part) / 1_000_000.0,
            served_bytes: class.served,
            guaranteed_bytes: class.guaranteed,
            guaranteed_bits_per_s: contracts.map_or(0, |it| it.most),
            reserved_bits_per_s: contracts.map_or(0, |it| it.held),
            streams: class.streams,
            counters: class.counters.into(),
        }
    }
}
