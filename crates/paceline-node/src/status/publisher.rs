//! The counters of a publisher.

use super::units::{by_name, hertz, in_hertz, maybe_micros, text};
use paceline_proto::{Kind, PublisherId, Tag};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The counters of a publisher.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Publisher"))]
pub struct PublisherStatus {
    /// Id of the publisher.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub id: PublisherId,
    /// Tag of its samples.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub tag: Tag,
    /// Kind of its samples.
    #[serde(with = "by_name")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub kind: Kind,
    /// Media type of its samples.
    pub encoding: String,
    /// Declared period; null if none is declared.
    #[serde(rename = "period_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub period: Option<Duration>,
    /// Samples since the start.
    pub published: u64,
    /// Samples per second, over the last second or more; in Rust in millihertz.
    #[serde(rename = "rate_hz", with = "hertz")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub rate_millihertz: u64,
    /// True if the rate differs from the declared one by more than a tenth and by more than one sample per second; false in a
    /// pause.
    pub off_rate: bool,
    /// True if any subscription, on any node, matches the tag.
    pub matching: bool,
}

impl PublisherStatus {
    /// Returns the rate in samples per second.
    #[must_use]
    pub fn rate_hz(&self) -> f64 {
        in_hertz(self.rate_millihertz)
    }

    /// Returns true if a rate differs from the one of a declared period by more than a tenth and by more than one sample per
    /// second; false in a pause and without a period.
    #[must_use]
    pub fn is_off_rate(period: Option<Duration>, rate_millihertz: u64) -> bool {
        let Some(period) = period.filter(|_| rate_millihertz > 0) else { return false };
        let nanos = period.as_nanos().max(1);
        let declared = u64::try_from(1_000_000_000_000 / nanos).unwrap_or(u64::MAX);
        rate_millihertz.abs_diff(declared) > (declared / 10).max(1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_is_off_its_rate_by_more_than_a_tenth_and_by_more_than_one_hertz() {
        let period = Some(Duration::from_micros(33_333));
        for (rate, off) in
            [(30_000, false), (33_100, true), (26_900, true), (27_100, false), (0, false)]
        {
            assert_eq!(PublisherStatus::is_off_rate(period, rate), off, "{rate} mHz");
        }
        let slow = Some(Duration::from_secs(1));
        assert!(!PublisherStatus::is_off_rate(slow, 2_000));
        assert!(PublisherStatus::is_off_rate(slow, 2_001));
        assert!(!PublisherStatus::is_off_rate(None, 5_000));
    }
}
