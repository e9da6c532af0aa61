//! The health of a subscription: the one check of requested against delivered samples that every display shows.
//!
//! A node reads the counters of its subscriptions about twice per second. [`HealthWindow`] keeps the readings of ten seconds, and
//! computes from them the state, the requested, delivered and lost samples of one window, and the dominant reason. `ls`, `top`, the
//! page and the metrics display these figures and compute none of them again.

#[cfg(test)]
mod tests;
mod window;

use super::units::{Named, by_name, maybe_hertz, maybe_micros, micros};
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub use window::{HealthReading, HealthRequest, HealthWindow};

/// The state of a subscription.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum HealthState {
    /// No publisher matches.
    #[default]
    NoPublisher,
    /// No sample arrives, and the publishers declare no rate: they may only pause.
    Silent,
    /// It receives the requested samples, in time. Losses are within the requested tolerance.
    Served,
    /// It receives fewer samples than requested.
    Short,
    /// It has a delay bound, and more samples were late or lost than the requested tolerance allows.
    Broken,
    /// A publisher or a node refuses it.
    Refused,
}

impl HealthState {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::NoPublisher, Self::Silent, Self::Served, Self::Short, Self::Broken, Self::Refused];

    /// Returns the name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoPublisher => "no_publisher",
            Self::Silent => "silent",
            Self::Served => "served",
            Self::Short => "short",
            Self::Broken => "broken",
            Self::Refused => "refused",
        }
    }

    /// Returns the state for display.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::NoPublisher => "no publisher",
            Self::Silent => "no samples",
            Self::Served => "as requested",
            Self::Short => "less than requested",
            Self::Broken => "contract broken",
            Self::Refused => "refused",
        }
    }

    /// Returns true if the subscription does not receive its requested service.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Short | Self::Broken | Self::Refused)
    }
}

impl Named for HealthState {
    const CHOICES: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.name()
    }
}

/// The requested, delivered and lost samples of a subscription in one window, and the result of their comparison.
///
/// `requested = delivered + lost`, unless fewer samples are missing than the rate of a request can show: with a requested rate,
/// up to a tenth and 1.5 samples.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Health"))]
pub struct SubscriptionHealth {
    /// `no_publisher`, `silent`, `served`, `short`, `broken` or `refused`.
    #[serde(with = "by_name")]
    #[cfg_attr(
        feature = "typescript",
        ts(
            type = "\"no_publisher\" | \"silent\" | \"served\" | \"short\" | \"broken\" | \"refused\""
        )
    )]
    pub state: HealthState,
    /// The state in words.
    pub label: String,
    /// The time that the figures cover: up to 10 s, and less after a change of the request or of the publishers.
    #[serde(rename = "window_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub window: Duration,
    /// Samples that the publishers sent and the request includes; null if their number is unknown.
    pub requested: Option<u64>,
    /// Delivered samples, including late ones.
    pub delivered: u64,
    /// Requested samples that were not delivered.
    pub lost: u64,
    /// The part of `lost` that did not arrive at the node of the subscription. It dropped the rest.
    pub lost_before: u64,
    /// Delivered samples that were later than the delay bound.
    pub late: u64,
    /// Rate of `requested`; null if it is unknown. In Rust in millihertz.
    #[serde(rename = "requested_hz", with = "maybe_hertz")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub requested_millihertz: Option<u64>,
    /// Rate of `delivered`; null before the first second. In Rust in millihertz.
    #[serde(rename = "delivered_hz", with = "maybe_hertz")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub delivered_millihertz: Option<u64>,
    /// The dominant reason of late or lost samples, or of the refusal, in words; null without any.
    pub reason: Option<String>,
    /// Seconds in the state `broken` since the start.
    pub broken_seconds: u64,
    /// Time since the subscription was last in the state `broken`; null if it never was.
    #[serde(rename = "broken_ago_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub broken_ago: Option<Duration>,
}

impl SubscriptionHealth {
    /// Returns the three figures with their window: `54 of 233 in 10 s, 179 lost`.
    #[must_use]
    pub fn figures(&self) -> String {
        let Self { delivered, lost, late, .. } = self;
        let of = self.requested.map(|requested| format!(" of {requested}")).unwrap_or_default();
        let late = if *late > 0 { format!(", {late} late") } else { String::new() };
        format!(
            "{delivered}{of} in {} s, {lost} lost{late}",
            (self.window.as_millis() + 500) / 1_000
        )
    }
}
