//! The delivery by time of a subscription, and the clock of a node, in the document.

use paceline::delivery::TimedStatus;
use paceline::time::ClockReport;
use paceline_tool::show::micros;
use serde::{Deserialize, Serialize};

/// The delivery by time of a subscription. Values that a method does not have are 0 or null.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct Timed {
    /// `fresh`, `ordered`, `spacing`, `max_jitter` or `sync_group`.
    pub(crate) method: String,
    /// The setting as on the command line.
    pub(crate) setting: String,
    pub(crate) released: u64,
    pub(crate) late: u64,
    pub(crate) early: u64,
    pub(crate) refused: u64,
    pub(crate) silences: u64,
    pub(crate) unknown: u64,
    pub(crate) beyond: u64,
    pub(crate) jumps: u64,
    pub(crate) jitter_in_us: Option<u64>,
    pub(crate) jitter_out_us: Option<u64>,
    pub(crate) added_us: Option<u64>,
    pub(crate) wakeup_us: Option<u64>,
    pub(crate) bound_us: Option<u64>,
}

impl Timed {
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
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct NodeClock {
    /// `unsynchronised`, `synchronised`, `holdover` or `disrupted`.
    pub(crate) status: String,
    /// Bound of its error; null if it is unknown.
    pub(crate) error_us: Option<u64>,
    /// The system clock minus this clock; null if its error is unknown.
    pub(crate) system_offset_us: Option<i64>,
}

impl NodeClock {
    pub(super) fn new(report: &ClockReport) -> Self {
        let error_us = report.error_nanos.map(|nanos| nanos.div_ceil(1_000));
        let system_offset_us = error_us.map(|_| report.system_offset_nanos / 1_000);
        Self { status: report.status.to_string(), error_us, system_offset_us }
    }
}
