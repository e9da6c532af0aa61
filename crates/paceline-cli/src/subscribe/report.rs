//! The lines of `sub` about the requested, delivered and lost samples: one per second, and one at the end.

use super::summary::{Summary, SummaryLine};
use super::{End, Session};
use crate::shortfall;
use crate::status::published_tags;
use crate::tally::Tally;
use paceline::status::{Drops, SourceView};
use paceline_tool::exit::{self, INTERRUPTED};
use paceline_tool::show;
use paceline_tool::stats::round3;
use std::process::ExitCode;
use std::time::Instant;

/// The losses until now, and until the previous line.
#[derive(Debug, Default)]
pub(super) struct Losses {
    missing: u64,
    overdue: u64,
    drops: Drops,
    /// The reason of the losses in the last second, once the nodes have answered.
    pub(super) reason: Option<String>,
}

/// The losses of one second.
pub(super) struct Lost {
    missing: u64,
    /// The late samples that waited in this process.
    overdue: u64,
    drops: Drops,
    is_short: bool,
}

impl Lost {
    /// Returns true if samples of this second did not arrive.
    pub(super) fn is_any(&self) -> bool {
        self.are_counted() || self.is_short
    }

    /// Returns true if samples of this second are known to be lost. A publisher without a declared rate may only pause.
    pub(super) fn are_counted(&self) -> bool {
        self.missing > 0 || self.drops.total() > 0
    }
}

/// Returns the place of late samples that arrived in time; empty without any.
fn waited_here(overdue: u64) -> String {
    if overdue > 0 { format!(" ({overdue} waited in this process)") } else { String::new() }
}

/// Returns the growth of the counters since `earlier`.
fn since(drops: &Drops, earlier: &Drops) -> Drops {
    let mut grown = Drops::default();
    drops.iter().for_each(|(reason, count)| {
        grown.add(reason, count.saturating_sub(earlier.of(reason)));
    });
    grown
}

impl Session<'_> {
    /// Returns the number of samples that should have arrived.
    fn missing(&self) -> u64 {
        self.subscriber.missing()
    }

    /// Returns the losses since the last call.
    pub(super) fn lost(&mut self, now: Instant) -> Lost {
        let (missing, drops) = (self.missing(), self.subscriber.drops());
        let overdue = self.subscriber.overdue();
        let lost = Lost {
            missing: missing.saturating_sub(self.losses.missing),
            overdue: overdue.saturating_sub(self.losses.overdue),
            drops: since(&drops, &self.losses.drops),
            is_short: self.recent.is_short(&self.window, self.asked, now),
        };
        (self.losses.missing, self.losses.drops, self.losses.overdue) = (missing, drops, overdue);
        lost
    }

    /// Returns the line about the last second: the requested, delivered and lost samples, and the reason.
    pub(super) fn second(&self, lost: &Lost) -> String {
        let (window, ages) = (&self.window, self.window.ages());
        let rate = match (window.delivered, self.recent.expected_hz(self.asked)) {
            (0, Some(hertz)) if self.rates.are_declared() => {
                format!("no new samples of {hertz:.2} Hz")
            }
            (0, _) => "no new samples".to_owned(),
            (_, None) => format!("average rate: {:.2} Hz", window.rate_hz()),
            (_, Some(hertz)) => format!("average rate: {:.2} of {hertz:.2} Hz", window.rate_hz()),
        };
        let age = match window.delivered {
            0 => String::new(),
            _ => format!(
                "  {}  age p50 {} p99 {} max {} ms  late {}{}",
                self.latest,
                show::millis(ages.p50),
                show::millis(ages.p99),
                show::millis(ages.max),
                window.late,
                waited_here(lost.overdue.min(window.late))
            ),
        };
        let reason = self.losses.reason.as_ref().filter(|_| lost.is_any());
        format!(
            "{rate}{age}  missing {}  dropped {}{}{}",
            lost.missing,
            show::drops(&lost.drops),
            self.synchronised(),
            reason.map(|reason| format!("; {reason}")).unwrap_or_default(),
        )
    }

    /// Returns all matching publishers, including those that refused.
    pub(super) fn sources(&self) -> Vec<SourceView> {
        self.node.sources(&self.args.pattern)
    }

    /// Returns true if the command has received fewer samples than requested.
    fn has_fewer(&self, sources: &[SourceView]) -> bool {
        let delivered = self.total.delivered;
        match self.args.count {
            Some(count) => delivered < count,
            None if delivered == 0 => true,
            None => {
                let short = || self.published.is_short(&self.total, self.asked, Instant::now());
                !sources.is_empty() && short()
            }
        }
    }

    /// Returns the dominant reason if fewer samples arrived than requested, or if some were lost.
    pub(super) fn reason(&self, end: &End) -> Option<String> {
        if let Some(refused) = self.refused.values().next() {
            return Some(refused.to_string());
        }
        let (sources, drops) = (self.sources(), self.subscriber.drops());
        let fewer = self.has_fewer(&sources);
        if !fewer && drops.total() == 0 && self.missing() == 0 {
            let is_late = self.total.late > 0;
            return is_late.then(|| shortfall::busy(self.node, &sources)).flatten();
        }
        if !self.heard && sources.is_empty() {
            // A user who stops before a publisher exists does not need a reason.
            return (!matches!(end, End::Stopped)).then(|| {
                format!(
                    "no publisher on {}; {}; check the tag or start a publisher",
                    self.args.pattern,
                    published_tags(self.node)
                )
            });
        }
        let longer = "--timeout or a lower --count";
        match fewer {
            true => Some(shortfall::reason(self.node, &sources, &drops, self.asked, longer)),
            false => shortfall::loss(self.node, &sources, &drops),
        }
    }

    pub(super) fn summary(&mut self, reason: Option<&str>) -> anyhow::Result<()> {
        let (total, ages) = (&self.total, self.total.ages());
        let (dropped, missing) = (self.subscriber.drops(), self.missing());
        let expected = self.published.expected_hz(self.asked);
        if self.args.json {
            let refused = self.refused.values().map(|refused| refused.why.clone()).collect();
            return show::json(&SummaryLine {
                summary: Summary {
                    delivered: total.delivered,
                    bytes: total.bytes,
                    rate_hz: total.rate_hz(),
                    expected_hz: expected.map(round3),
                    late: total.late,
                    overdue: self.subscriber.overdue().min(total.late),
                    missing,
                    dropped,
                    age_us: ages,
                    decisions: self.decisions(),
                    spacing: self.subscriber.spacing_report().map(Into::into),
                    sync: self.subscriber.sync_report().map(Into::into),
                    refused,
                    reason: reason.map(str::to_owned),
                },
            });
        }
        let age = match total.delivered {
            0 => String::new(),
            _ => format!(
                ", {:.2}{} Hz; age p50 {} p99 {} max {} ms",
                total.rate_hz(),
                expected.map(|hertz| format!(" of {hertz:.2}")).unwrap_or_default(),
                show::millis(ages.p50),
                show::millis(ages.p99),
                show::millis(ages.max)
            ),
        };
        let Tally { delivered, bytes, late, .. } = total;
        let refused = self.refused.values().next();
        let fewer = match (refused, reason) {
            // Its reason has been printed.
            (Some(refused), _) => {
                format!("; fewer than requested: {} {}", refused.by, refused.answer)
            }
            (None, Some(reason)) if self.has_fewer(&self.sources()) => {
                format!("; fewer than requested: {reason}")
            }
            (None, Some(reason)) => format!("; {reason}"),
            (None, None) => String::new(),
        };
        // Overdue samples that were dropped count there.
        let waited = waited_here(self.subscriber.overdue().min(*late));
        let text = format!(
            "delivered {delivered} samples, {bytes} bytes{age}; late {late}{waited}; missing {missing}; dropped {}{}{fewer}",
            show::drops(&dropped),
            self.synchronised()
        );
        if self.args.to_stdout() || self.lines.are_printed() {
            show::note(&text)
        } else {
            show::line(&text)?
        }
        Ok(())
    }

    pub(super) fn verdict(&self, end: &End, reason: Option<String>) -> anyhow::Result<ExitCode> {
        let (delivered, wanted) = (self.total.delivered, self.args.count);
        match end {
            End::Count => return Ok(ExitCode::SUCCESS),
            End::Stopped if wanted.is_some() => return Ok(ExitCode::from(INTERRUPTED)),
            End::Timeout if wanted.is_none() && delivered > 0 => return Ok(ExitCode::SUCCESS),
            End::Stopped if delivered > 0 || self.refused.is_empty() => {
                return Ok(ExitCode::SUCCESS);
            }
            End::Refused | End::Timeout | End::Stopped => {}
        }
        let asked = wanted
            .map_or_else(|| "no sample".to_owned(), |n| format!("{delivered} of {n} samples"));
        let waited = match (end, self.args.timeout) {
            (End::Refused, _) => "and --require".to_owned(),
            (End::Count | End::Timeout | End::Stopped, Some(timeout)) => {
                format!("within --timeout {}s", timeout.as_secs_f64())
            }
            (End::Count | End::Timeout | End::Stopped, None) => {
                "before the command ended".to_owned()
            }
        };
        let why = match self.refused.values().next() {
            Some(refused) => {
                format!("{} {}, for the reason above", refused.by, refused.answer)
            }
            None => reason
                .unwrap_or_else(|| "the command was ended before a publisher appeared".to_owned()),
        };
        Err(exit::refused(format!("{asked} {waited}: {why}")))
    }
}
