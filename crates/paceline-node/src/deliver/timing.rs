//! Delivery by time: the last step before the application.

mod fresh;
mod group;
mod lateness;
mod ordered;
mod paced;
mod staged;
#[cfg(test)]
mod tests;
mod waiting;

pub use fresh::{Fresh, SafeAction};
pub use group::SyncGroup;
pub use staged::Staged;

use paceline_proto::{RawSample, Timestamp};
use paceline_time::TimeBounds;

/// Returns the capture time as an interval; `None` if the error of the publisher's clock is unknown.
pub(super) fn captured(sample: &RawSample) -> Option<TimeBounds> {
    let Timestamp { nanos, error } = sample.captured;
    (error != Timestamp::UNKNOWN_ERROR).then(|| TimeBounds::of_stamp(nanos, error))
}

/// The delivery by time of one subscription.
#[derive(Debug)]
pub enum DeliveryTiming {
    /// Commands within an age limit.
    Fresh(Fresh),
    /// Samples that wait for their release.
    Staged(Staged),
}
