//! The delivery by time of a subscription, and the clock of a node, in the document.

use paceline::delivery::TimedStatus;
use paceline::time::ClockReport;
use paceline_tool::show::micros;
use serde::{Deserialize, Serialize};

/// The delivery by time of a subscription. Values that a method does not have are 0 or null.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Timed"))]
pub struct TimedJson {
    /// `fresh`, `ordered`, `spacing`, `max_jitter` or `sync_group`.
    pub method: String,
    /// The setting as on the command line.
    pub setting: String,
    /// Released samples.
    pub released: u64,
    /// Samples that arrived after their release or after a later one.
    pub late: u64,
    /// Samples released before their time, because too many waited.
    pub early: u64,
    /// Samples dropped because of their time.
    pub refused: u64,
    /// Starts of the safe action.
    pub silences: u64,
    /// Samples of unknown order.
    pub unknown: u64,
    /// Samples that exceeded the maximum jitter.
    pub beyond: u64,
    /// Jumps of capture times.
    pub jumps: u64,
    /// Jitter at arrival, by RFC 3550.
    pub jitter_in_us: Option<u64>,
    /// Jitter at release, by RFC 3550.
    pub jitter_out_us: Option<u64>,
    /// Added delay.
    pub added_us: Option<u64>,
    /// Wake-up delay of 99 % of the releases.
    pub wakeup_us: Option<u64>,
    /// Error of the clock or of the ages, plus `wakeup_us`.
    pub bound_us: Option<u64>,
}

impl TimedJson {
    pub(super) fn new(timed: &TimedStatus) -> Self {
        Self {
            method: timed.method.name().to_owned(),
            setting: timed.setting.clone(),
            released: timed.released,
            late: timed.late,
            early: timed.early,
            refused: timed.refused,
            silences: timed.silences,
            unknown: timed.unknown,
            beyond: timed.beyond,
            jumps: timed.jumps,
            jitter_in_us: timed.jitter_in.map(micros),
            jitter_out_us: timed.jitter_out.map(micros),
            added_us: timed.added.map(micros),
            wakeup_us: timed.wakeup.map(micros),
            bound_us: timed.bound.map(micros),
        }
    }
}

/// The state of a node's clock. `paceline clock --json` has all fields.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "NodeClock"))]
pub struct ClockJson {
    /// `unsynchronised`, `synchronised`, `holdover` or `disrupted`.
    pub status: String,
    /// Bound of its error; null if it is unknown.
    pub error_us: Option<u64>,
    /// The system clock minus this clock; null if its error is unknown.
    pub system_offset_us: Option<i64>,
}

impl ClockJson {
    pub(super) fn new(report: &ClockReport) -> Self {
        let error_us = report.error_nanos.map(|nanos| nanos.div_ceil(1_000));
        let system_offset_us = error_us.map(|_| report.system_offset_nanos / 1_000);
        Self { status: report.status.to_string(), error_us, system_offset_us }
    }
}
