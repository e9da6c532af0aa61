//! The traffic of a link to each node at its other end, when the node counts as down, and the memory that it uses.

use paceline::status::{MemoryUse, SentTo};
use paceline_tool::show;
use serde::{Deserialize, Serialize};

/// A node at the other end of a link.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Neighbour"))]
pub struct NeighbourJson {
    /// Id of the neighbour.
    pub id: String,
    /// Bytes sent to this node since the link found it, including headers on the wire.
    pub wire_bytes: u64,
    /// Rate between the last two readings.
    pub use_bits_per_s: Option<u64>,
    /// Silence after which it counts as down.
    pub down_after_us: u64,
    /// Bytes of the node's memory for neighbours that this one uses.
    #[serde(default)]
    pub memory_bytes: u64,
}

/// The memory of a node for unfinished samples, control messages, records and pictures of all its neighbours.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "NeighbourMemory"))]
pub struct MemoryJson {
    /// Buffered samples, messages and streams.
    pub used_bytes: u64,
    /// The limit.
    pub bytes: u64,
    /// Greatest number of bytes that were used at once since the start.
    pub greatest_bytes: u64,
}

impl MemoryJson {
    pub(super) const fn new(memory: MemoryUse) -> Self {
        let MemoryUse { used, limit, greatest } = memory;
        Self { used_bytes: used, bytes: limit, greatest_bytes: greatest }
    }

    /// Returns true if more than a tenth of the memory is used.
    pub const fn is_much(&self) -> bool {
        self.used_bytes > self.bytes / 10
    }
}

impl NeighbourJson {
    pub(super) fn new(sent: &SentTo) -> Self {
        let SentTo { node, wire_bytes, down_after, memory: memory_bytes } = *sent;
        let down_after_us = show::micros(down_after);
        let id = node.to_string();
        Self { id, wire_bytes, use_bits_per_s: None, down_after_us, memory_bytes }
    }
}
