//! A frame in flight on a carrier that keeps order.

use paceline_sched::Instant;

/// A frame that was sent and not yet acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) seq: u64,
    pub(super) bytes: u64,
    pub(super) sent: Instant,
    /// Requested an immediate acknowledgement, so its round trip is a valid sample.
    pub(super) asked: bool,
    /// Carries only background streams.
    pub(super) background: bool,
}
