//! A source of samples at given instants.

use crate::handle::{Payload, Pub};
use paceline_sched::{Duration, Instant};

/// Returns the instant of a publisher's n-th sample, which must not precede the one before it.
pub type Times = Box<dyn FnMut(u64) -> Instant + Send>;

/// The timing of a driver's samples.
pub(super) enum Pace {
    /// One sample per period, each delayed by up to `jitter`.
    Every { period: Duration, jitter: Duration, due: Instant },
    /// Samples at the instants that the function returns.
    At(Times),
}

/// Publishes a number of samples.
pub(super) struct Driver {
    pub(super) publisher: Pub,
    pub(super) pace: Pace,
    /// The instant of the next sample.
    pub(super) at: Instant,
    pub(super) number: u64,
    /// Samples left to publish.
    pub(super) count: u64,
    pub(super) payload: Payload,
}
