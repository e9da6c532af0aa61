//! The counters of a pull buffer.

use super::units::{micros, text};
use paceline_proto::SubscriptionId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The counters of a pull buffer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Buffer"))]
pub struct BufferStatus {
    /// Id of the subscription that fills the buffer.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub id: SubscriptionId,
    /// Pattern of its tags.
    pub pattern: String,
    /// Limit of its samples.
    pub samples_max: u64,
    /// Limit of its bytes.
    pub bytes_max: u64,
    /// Limit of the age of a sample.
    #[serde(rename = "age_max_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub age_max: Duration,
    /// Buffered samples.
    pub samples: u64,
    /// Buffered payload bytes.
    pub bytes: u64,
    /// First capture time in nanoseconds since 1970 UTC, by its publisher's clock; null if it is empty.
    pub oldest_ns: Option<u64>,
    /// Last capture time in nanoseconds since 1970 UTC, by its publisher's clock; null if it is empty.
    pub newest_ns: Option<u64>,
}
