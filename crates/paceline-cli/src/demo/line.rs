//! What the nodes of the demo report to it: one line of JSON each second.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Samples by reason.
pub(crate) type Dropped = BTreeMap<String, u64>;

/// One line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// From the robot.
    Robot(RobotLine),
    /// From a subscriber.
    Row(RowLine),
}

/// What the robot publishes and sends.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct RobotLine {
    /// Its publishers.
    pub(crate) publishers: Vec<PublisherLine>,
    /// Its links.
    pub(crate) links: Vec<LinkLine>,
}

/// A publisher.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PublisherLine {
    pub(crate) tag: String,
    pub(crate) published: u64,
    pub(crate) rate_hz: f64,
}

/// A link.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct LinkLine {
    pub(crate) name: String,
    pub(crate) capacity_bits_per_s: Option<u64>,
    pub(crate) use_bits_per_s: Option<u64>,
    pub(crate) round_trip_us: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) streams: Vec<StreamLine>,
}

/// A stream.
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

/// What a subscriber got.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct RowLine {
    /// Its place in the scenario.
    pub(crate) row: usize,
    /// Samples delivered so far.
    pub(crate) delivered: u64,
    /// The size of its last picture.
    pub(crate) size: Option<(u32, u32)>,
    /// The second before this line.
    pub(crate) second: Measured,
    /// Everything since the warm-up.
    pub(crate) whole: Measured,
    /// Samples dropped at this node.
    pub(crate) dropped: Dropped,
    /// Why it is not served.
    pub(crate) refused: Vec<String>,
}

/// What was delivered in some time.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    pub(crate) delivered: u64,
    pub(crate) rate_hz: f64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    pub(crate) max_us: u64,
    pub(crate) late: u64,
    /// Samples that never came.
    pub(crate) lost: u64,
    /// Windows of y samples of which more than x were late or lost.
    pub(crate) beyond: u64,
}
