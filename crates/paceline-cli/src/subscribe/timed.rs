//! The measurements of delivery by time in the lines of `sub`.

use super::Session;
use paceline::delivery::{Decisions, Resumption, Silence, SpacingReport, SyncReport};
use paceline_tool::show;
use serde::Serialize;

/// The decisions of `--fresh`.
#[derive(Serialize)]
pub(super) struct DecisionCounts {
    released: u64,
    stale: u64,
    silences: u64,
}

/// The measurements of `--spacing` or `--max-jitter`.
#[derive(Serialize)]
pub(super) struct SpacingLine {
    released: u64,
    late: u64,
    early: u64,
    jumps: u64,
    jitter_in_us: u64,
    jitter_out_us: u64,
    added_us: u64,
    wakeup_us: u64,
    beyond: u64,
    doubt_us: Option<u64>,
}

impl From<SpacingReport> for SpacingLine {
    fn from(report: SpacingReport) -> Self {
        Self {
            released: report.released,
            late: report.late,
            early: report.early,
            jumps: report.jumps,
            jitter_in_us: show::micros(report.jitter_in),
            jitter_out_us: show::micros(report.jitter_out),
            added_us: show::micros(report.added),
            wakeup_us: show::micros(report.wakeup),
            beyond: report.beyond,
            doubt_us: report.doubt.map(show::micros),
        }
    }
}

/// The measurements of `--sync-group`.
#[derive(Serialize)]
pub(super) struct SyncLine {
    group: String,
    delay_us: u64,
    released: u64,
    late: u64,
    early: u64,
    by_clocks: u64,
    clock_error_us: Option<u64>,
    publisher_error_us: Option<u64>,
    wakeup_us: u64,
    bound_us: Option<u64>,
}

impl From<SyncReport> for SyncLine {
    fn from(report: SyncReport) -> Self {
        Self {
            group: report.group,
            delay_us: show::micros(report.delay),
            released: report.released,
            late: report.late,
            early: report.early,
            by_clocks: report.by_clocks,
            clock_error_us: report.clock_error.map(show::micros),
            publisher_error_us: report.publisher_error.map(show::micros),
            wakeup_us: show::micros(report.wakeup),
            bound_us: report.bound.map(show::micros),
        }
    }
}

impl Session<'_> {
    pub(super) fn report_silence(&mut self, silence: &Silence) {
        let Silence { publisher, seq, .. } = silence;
        let name = self.name(*publisher);
        show::note(&format!(
            "silent: the last command, number {seq} of {name}, has reached the age limit"
        ));
    }

    pub(super) fn report_resumption(&mut self, resumption: &Resumption) {
        let Resumption { publisher, seq, silent, .. } = resumption;
        let name = self.name(*publisher);
        show::note(&format!("resumed: command {seq} of {name} ends a silence of {silent:.1?}"));
    }

    pub(super) fn decisions(&self) -> Option<DecisionCounts> {
        self.args.timing.fresh?;
        let Decisions { released, stale, silences } = self.subscriber.decisions();
        Some(DecisionCounts { released, stale, silences })
    }

    /// Returns the state of the group as the end of a line; empty without one.
    pub(super) fn synchronised(&self) -> String {
        let Some(SyncReport { group, delay, late, bound, wakeup, .. }) =
            self.subscriber.sync_report()
        else {
            return String::new();
        };
        let error = match bound {
            Some(bound) => format!("± {bound:.1?}"),
            None => format!("wake-up {wakeup:.1?}, clock error unknown"),
        };
        format!("  {} {delay:?} {error}, {late} late", show::harmless(&group))
    }
}
