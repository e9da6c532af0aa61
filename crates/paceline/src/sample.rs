//! Received samples.

use crate::delivery::{Actuation, Placement};
use bytes::Bytes;
use paceline_proto::{Encoding, Kind, PublisherId, Tag, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// A delivered sample.
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
    /// The age at delivery: the time since publish.
    pub age: Duration,
    /// True if the age exceeds the delay bound.
    pub late: bool,
    /// The decision of [`SubscriberBuilder::fresh_within`](crate::SubscriberBuilder::fresh_within); `None` without
    /// an age limit.
    pub actuation: Option<Actuation>,
    /// The place in the order of times; `None` without [`SubscriberBuilder::ordered`](crate::SubscriberBuilder::ordered).
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
