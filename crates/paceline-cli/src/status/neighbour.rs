//! The traffic of a link to each node at its other end, when the node counts as down, and the memory that it uses.

use paceline::status::{MemoryUse, SentTo};
use paceline_tool::show;
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
    /// Bytes of the node's memory for neighbours that this one uses.
    #[serde(default)]
    pub(crate) memory_bytes: u64,
}

/// The memory of a node for unfinished samples, control messages, records and pictures of all its neighbours.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct NeighbourMemory {
    pub(crate) used_bytes: u64,
    pub(crate) bytes: u64,
    /// Greatest number of bytes that were used at once since the start.
    pub(crate) greatest_bytes: u64,
}

impl NeighbourMemory {
    pub(super) const fn new(memory: MemoryUse) -> Self {
        let MemoryUse { used, limit, greatest } = memory;
        Self { used_bytes: used, bytes: limit, greatest_bytes: greatest }
    }

    /// Returns true if more than a tenth of the memory is used.
    pub(crate) const fn is_much(&self) -> bool {
        self.used_bytes > self.bytes / 10
    }
}

impl Neighbour {
    pub(super) fn new(sent: &SentTo) -> Self {
        let SentTo { node, wire_bytes, down_after, memory: memory_bytes } = *sent;
        let down_after_us = show::micros(down_after);
        let id = node.to_string();
        Self { id, wire_bytes, use_bits_per_s: None, down_after_us, memory_bytes }
    }
}
