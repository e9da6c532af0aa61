//! The counters of samples that pass a link.

use super::by_reason;
use paceline_proto::{Drops, StreamCounters};
use serde::{Deserialize, Serialize};

/// The counters of samples on a link: of a stream, of a class, or of all closed streams together.
///
/// `offered = sent + dropped + waiting`, where `waiting` is the number of samples still queued.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Counters"))]
pub struct LinkCounters {
    /// Samples passed to the link.
    pub offered: u64,
    /// Samples whose last byte was sent.
    pub sent: u64,
    /// Payload bytes sent, including those of aborted samples.
    pub bytes: u64,
    /// Sent samples that missed their deadline.
    pub late: u64,
    /// Windows in which more samples missed their deadline than the loss tolerance allows.
    pub violations: u64,
    /// Samples dropped after their first segment was sent, so the next hop also counts them as lost.
    pub aborted: u64,
    /// Samples in excess of the contract: ahead of their period by more than earlier hops may cause.
    pub too_early: u64,
    /// Samples in excess of the contract: longer than declared.
    pub too_long: u64,
    /// Samples that were not sent.
    #[serde(with = "by_reason")]
    #[cfg_attr(feature = "typescript", ts(type = "Drops"))]
    pub dropped: Drops,
}

impl LinkCounters {
    /// Adds other counters to these.
    pub fn merge(&mut self, other: &Self) {
        let Self { offered, sent, bytes, late, violations, aborted, too_early, too_long, dropped } =
            self;
        for (mine, theirs) in [
            (offered, other.offered),
            (sent, other.sent),
            (bytes, other.bytes),
            (late, other.late),
            (violations, other.violations),
            (aborted, other.aborted),
            (too_early, other.too_early),
            (too_long, other.too_long),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        dropped.merge(&other.dropped);
    }
}

impl From<StreamCounters> for LinkCounters {
    fn from(counters: StreamCounters) -> Self {
        let StreamCounters { offered, sent, bytes, late, violations, drops, aborted, excess } =
            counters;
        let (too_early, too_long) = (excess.early, excess.long);
        Self {
            offered,
            sent,
            bytes,
            late,
            violations,
            aborted,
            too_early,
            too_long,
            dropped: drops,
        }
    }
}
