//! Received samples.

use bytes::Bytes;
use paceline_proto::{Encoding, Kind, PublisherId, Tag, Timestamp};
use paceline_time::order::Placement;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A delivered sample.
///
/// The payload is shared, not copied: a clone costs a reference count.
///
/// ```
/// use paceline_node::Sample;
///
/// fn line(sample: &Sample) -> String {
///     let state = if sample.late { "late" } else { "in time" };
///     format!("{} {} {} bytes, age {:?}, {state}", sample.tag, sample.seq, sample.payload.len(), sample.age)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Sample {
    /// The tag of its publisher.
    pub tag: Tag,
    /// The publisher.
    pub publisher: PublisherId,
    /// The publisher's sequence number.
    pub seq: u64,
    /// The capture time by the publisher's clock.
    pub captured: Timestamp,
    /// The age when the application takes it: the time since publish. In a view, the age at its arrival or release.
    pub age: Duration,
    /// True if the age exceeds the delay bound.
    pub late: bool,
    /// The decision of `SubscriberBuilder::fresh_within`; `None` without an age limit.
    pub actuation: Option<Actuation>,
    /// The place in the order of times; `None` without `SubscriberBuilder::ordered`.
    pub placement: Option<Placement>,
    /// The kind of the sample.
    pub kind: Kind,
    /// The media type.
    pub encoding: Encoding,
    /// The message.
    pub payload: Bytes,
    /// The publisher's attachment, unchanged.
    pub attachment: Option<Arc<[u8]>>,
}

/// The decision on a sample of a subscription with an age limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Actuation {
    /// A command that is provably younger than the limit.
    Command {
        /// The instant at which it reaches the limit. It must not act later.
        until: Instant,
    },
    /// The safe action: the last command has reached the limit.
    Safe,
}

impl Actuation {
    /// Returns true if the sample may act now. Check it again directly before the actuator.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the application asks, after the node has decided"
    )]
    pub fn may_act(&self) -> bool {
        match self {
            Self::Command { until } => Instant::now() < *until,
            Self::Safe => true,
        }
    }
}
