//! A hop, as two threads see it.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// The state that the egress thread and the receiving side of a hop share.
#[derive(Debug, Default)]
pub(crate) struct HopShared {
    /// The local epoch of the hop; 0 without one.
    pub(crate) epoch: AtomicU32,
    /// Half of the smallest RTT, in nanoseconds.
    pub(crate) half_round_trip: AtomicU64,
}
