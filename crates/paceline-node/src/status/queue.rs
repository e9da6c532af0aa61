//! Queue space for contracts.

use paceline_proto::control::BufferUse;
use serde::{Deserialize, Serialize};

/// The queue space of a link or of a node for contracts, in bytes on the wire.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "QueueBuffer"))]
pub struct QueueStatus {
    /// Most bytes that all contracts together can have queued.
    pub reserved_bytes: u64,
    /// Size of the space.
    pub bytes: u64,
    /// Greatest number of bytes of contracted samples in the queues since the start.
    pub greatest_bytes: u64,
}

impl QueueStatus {
    /// Returns the status of a queue space of which `greatest_bytes` were in use at once.
    #[must_use]
    pub const fn new(BufferUse { held, most }: BufferUse, greatest_bytes: u64) -> Self {
        Self { reserved_bytes: held, bytes: most, greatest_bytes }
    }
}
