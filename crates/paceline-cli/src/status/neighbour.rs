//! The traffic of a link to each node at its other end, and when the node counts as down.

use crate::show;
use paceline::status::SentTo;
use serde::{Deserialize, Serialize};

/// A node at the other end of a link.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Neighbour {
    pub(crate) id: String,
    /// Bytes sent to this node since the link found it, including headers on the wire.
    pub(crate) wire_bytes: u64,
    /// Rate between the last two readings.
    pub(crate) use_bits_per_s: Option<u64>,
    /// Silence after which it counts as down.
    pub(crate) down_after_us: u64,
}

impl Neighbour {
    pub(super) fn new(sent: &SentTo) -> Self {
        let SentTo { node, wire_bytes, down_after } = *sent;
        let down_after_us = show::micros(down_after);
        Self { id: node.to_string(), wire_bytes, use_bits_per_s: None, down_after_us }
    }
}
