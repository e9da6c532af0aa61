//! The last line of `--json`.

use super::timed::{DecisionCounts, SpacingLine, SyncLine};
use crate::tally::Ages;
use paceline::status::Drops;
use paceline::status::by_reason;
use serde::Serialize;

/// The last line of `--json`.
#[derive(Serialize)]
pub(super) struct SummaryLine {
    pub(super) summary: Summary,
}

#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) delivered: u64,
    pub(super) bytes: u64,
    pub(super) rate_hz: f64,
    pub(super) expected_hz: Option<f64>,
    pub(super) late: u64,
    pub(super) overdue: u64,
    pub(super) missing: u64,
    #[serde(serialize_with = "by_reason::serialize")]
    pub(super) dropped: Drops,
    pub(super) age_us: Ages,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decisions: Option<DecisionCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spacing: Option<SpacingLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sync: Option<SyncLine>,
    pub(super) refused: Vec<String>,
    pub(super) reason: Option<String>,
}
