//! The delivery by time of a subscription in the status of its node.

use super::units::{by_name, maybe_micros, named};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A method of delivery by time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimedMethod {
    /// `SubscriberBuilder::fresh_within`.
    Fresh,
    /// `SubscriberBuilder::ordered`.
    Ordered,
    /// `SubscriberBuilder::spacing`.
    Spacing,
    /// `SubscriberBuilder::max_jitter`.
    MaxJitter,
    /// `SubscriberBuilder::sync_group`.
    SyncGroup,
}

impl TimedMethod {
    /// All methods.
    pub const ALL: [Self; 5] =
        [Self::Fresh, Self::Ordered, Self::Spacing, Self::MaxJitter, Self::SyncGroup];

    /// Returns the name in JSON and in metrics, such as `max_jitter`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Ordered => "ordered",
            Self::Spacing => "spacing",
            Self::MaxJitter => "max_jitter",
            Self::SyncGroup => "sync_group",
        }
    }
}

named!(TimedMethod);

/// The delivery by time of a subscription: the setting and its results.
///
/// Values that a method does not have are 0 or null.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Timed"))]
pub struct TimedStatus {
    /// The method: `fresh`, `ordered`, `spacing`, `max_jitter` or `sync_group`.
    #[serde(with = "by_name")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub method: TimedMethod,
    /// The setting in the form of the command line, such as `100ms:zero`, `time 50ms` or `stage=150ms`.
    pub setting: String,
    /// Samples that were released to the application.
    pub released: u64,
    /// Samples that arrived after their release time or after a later sample had left.
    pub late: u64,
    /// Samples that left before their release time, because too many waited.
    pub early: u64,
    /// Samples that were dropped because of their time: not provably young, or after a later one.
    pub refused: u64,
    /// Starts of the safe action.
    pub silences: u64,
    /// Released samples whose order the bounds of their times do not decide.
    pub unknown: u64,
    /// Samples whose delay differed by more than the accepted jitter.
    pub beyond: u64,
    /// Jumps of capture times.
    pub jumps: u64,
    /// The largest jitter of a publisher's arrivals by RFC 3550.
    #[serde(rename = "jitter_in_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub jitter_in: Option<Duration>,
    /// The largest jitter of a publisher's releases by RFC 3550.
    #[serde(rename = "jitter_out_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub jitter_out: Option<Duration>,
    /// The delay that is added to the fastest sample, or the constant delay.
    #[serde(rename = "added_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub added: Option<Duration>,
    /// The time by which the thread woke up too late in 99 % of the last 512 releases.
    #[serde(rename = "wakeup_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub wakeup: Option<Duration>,
    /// The largest difference of a release from its time: clock or age error, plus wake-up; null if it is unknown.
    #[serde(rename = "bound_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub bound: Option<Duration>,
}

impl TimedStatus {
    /// Returns the status of a subscription that has received nothing.
    #[must_use]
    pub const fn new(method: TimedMethod, setting: String) -> Self {
        Self {
            method,
            setting,
            released: 0,
            late: 0,
            early: 0,
            refused: 0,
            silences: 0,
            unknown: 0,
            beyond: 0,
            jumps: 0,
            jitter_in: None,
            jitter_out: None,
            added: None,
            wakeup: None,
            bound: None,
        }
    }
}
