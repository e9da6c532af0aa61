//! The reports of the demo's nodes: one line of JSON per second.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of dropped samples by reason.
pub(crate) type Dropped = BTreeMap<String, u64>;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    Robot(RobotLine),
    Row(RowLine),
}

/// The robot's publishers and links.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct RobotLine {
    pub(crate) publishers: Vec<PublisherLine>,
    pub(crate) links: Vec<LinkLine>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PublisherLine {
    pub(crate) tag: String,
    pub(crate) published: u64,
    pub(crate) rate_hz: f64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct LinkLine {
    pub(crate) name: String,
    pub(crate) capacity_bits_per_s: Option<u64>,
    pub(crate) use_bits_per_s: Option<u64>,
    pub(crate) round_trip_us: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) streams: Vec<StreamLine>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StreamLine {
    pub(crate) tag: Option<String>,
    pub(crate) form: String,
    pub(crate) offered: u64,
    pub(crate) sent: u64,
    pub(crate) late: u64,
    pub(crate) violations: u64,
    pub(crate) dropped: Dropped,
}

/// The samples delivered to a subscriber.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct RowLine {
    /// The index of the scenario's row.
    pub(crate) row: usize,
    /// The number of samples delivered so far.
    pub(crate) delivered: u64,
    /// The size of the last picture.
    pub(crate) size: Option<(u32, u32)>,
    /// The figures of the last second.
    pub(crate) second: Measured,
    /// The figures since the warm-up.
    pub(crate) whole: Measured,
    /// The samples dropped at this node.
    pub(crate) dropped: Dropped,
    /// The reasons for refused publishers.
    pub(crate) refused: Vec<String>,
}

/// The deliveries in an interval.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) delivered: u64,
    pub(crate) rate_hz: f64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) max_us: u64,
    pub(crate) late: u64,
    /// The number of samples that did not arrive.
    pub(crate) lost: u64,
    /// The number of windows of y samples with more than x late or lost.
    pub(crate) beyond: u64,
}
