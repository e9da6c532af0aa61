//! Reports on published samples, once per second.

use super::lines::LineLimit;
use super::promises::Promises;
use paceline::status::by_reason;
use paceline::status::{Drops, NodeId, SubscriptionId};
use paceline::{Node, Publisher};
use paceline_tool::show::{self, Block};
use paceline_tool::stats::round3;
use serde::Serialize;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_secs(1);

/// One line of `--json`.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) tag: String,
    pub(crate) published: u64,
    pub(crate) rate_hz: f64,
    pub(crate) matching: bool,
    pub(crate) taken: u64,
    pub(crate) dropped: u64,
    #[serde(serialize_with = "by_reason::serialize", skip_serializing_if = "Drops::is_empty")]
    pub(crate) reasons: Drops,
    pub(crate) skipped: u64,
    /// Damaged places of the input, and pictures that need earlier ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) left_out: u64,
    /// Numbers of granted and of refused subscriptions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) granted: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<usize>,
    /// JPEG quality of the test card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quality: Option<u8>,
}

/// Counts since the start.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) published: u64,
    pub(crate) taken: u64,
    pub(crate) dropped: u64,
    /// The drops with a known reason.
    pub(crate) reasons: Drops,
    pub(crate) skipped: u64,
    /// Damaged places of the input, and pictures that need earlier ones.
    pub(crate) left_out: u64,
    /// Current JPEG quality of pictures encoded here.
    pub(crate) quality: Option<u8>,
}

impl Counts {
    /// Counts one sample.
    pub(crate) fn add(&mut self, put: paceline::PutReport) {
        self.published += 1;
        self.taken += u64::from(put.taken);
        self.dropped += u64::from(put.dropped);
        if let Some(reason) = put.reason {
            self.reasons.add(reason, u64::from(put.dropped));
        }
    }
}

/// Prints a progress report once per second.
pub(crate) struct Reporter {
    tag: String,
    json: bool,
    /// True if reports include the quality.
    adapts: bool,
    /// True without a report each second: answers and samples that are left out are still noted.
    quiet: bool,
    block: Block,
    /// Answers of one publisher; `None` for a report on several publishers.
    promises: Option<Promises>,
    /// Other nodes cause these lines as often as they repeat their requests.
    answers: LineLimit<Option<NodeId>>,
    tick: Instant,
    began: Instant,
    reported: (Instant, Counts),
}

impl Reporter {
    /// Creates a reporter whose first report is due in a second.
    pub(crate) fn new(tag: &str, json: bool) -> Self {
        let now = Instant::now();
        Self {
            tag: tag.to_owned(),
            json,
            adapts: false,
            quiet: false,
            block: Block::on_stdout(),
            promises: None,
            answers: LineLimit::default(),
            tick: now + TICK,
            began: now,
            reported: (now, Counts::default()),
        }
    }

    /// Includes the quality of encoded pictures in reports if `adapts`.
    pub(crate) fn with_quality(self, adapts: bool) -> Self {
        Self { adapts, ..self }
    }

    /// Leaves out the report of each second if `quiet`.
    pub(crate) fn quiet(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    /// Prints new answers to subscriptions immediately, and many answers to one node as a count.
    pub(crate) fn hear(&mut self, publisher: &Publisher, node: &Node) {
        let promises = self.promises.get_or_insert_default();
        if let Some(report) = self.answers.due(Instant::now()) {
            show::note(&report);
        }
        while let Some(event) = publisher.try_event() {
            let name = |subscription: SubscriptionId| {
                let nodes = node.nodes();
                let found = nodes.into_iter().find(|(id, _)| *id == subscription.node);
                found.map_or_else(|| subscription.to_string(), |(_, name)| name)
            };
            let (node, text) = promises.take(event, name);
            if let Some(text) = self.answers.pass(node, text, Instant::now()) {
                show::note(&text);
            }
        }
    }

    /// Returns the time of the next report.
    pub(crate) const fn next(&self) -> Instant {
        self.tick
    }

    /// Prints a report if it is due; `wanted` returns whether there are subscribers, with a description.
    pub(crate) fn tick(
        &mut self,
        counts: Counts,
        wanted: impl FnOnce() -> (bool, String),
    ) -> anyhow::Result<()> {
        let now = Instant::now();
        if now < self.tick {
            return Ok(());
        }
        while self.tick <= now {
            self.tick += TICK;
        }
        let (since, before) = self.reported;
        let rate_hz = rate(counts.published - before.published, now - since);
        self.reported.0 = now;
        self.report(rate_hz, counts, wanted())
    }

    /// Prints the last report, with the average rate of the whole run. A run shorter than a second counts as
    /// one.
    pub(crate) fn end(&mut self, counts: Counts, wanted: (bool, String)) -> anyhow::Result<()> {
        if let Some(report) = self.answers.rest() {
            show::note(&report);
        }
        let rate_hz = rate(counts.published, self.began.elapsed().max(TICK));
        self.report(rate_hz, counts, wanted)
    }

    fn report(
        &mut self,
        rate_hz: f64,
        counts: Counts,
        (matching, wanted): (bool, String),
    ) -> anyhow::Result<()> {
        let before = std::mem::replace(&mut self.reported.1, counts);
        if counts.skipped > before.skipped {
            show::note(&format!(
                "{} late and skipped: this host is too slow for the requested rate; lower the rate or \
                 the size",
                show::count(
                    usize::try_from(counts.skipped - before.skipped).unwrap_or(usize::MAX),
                    "sample"
                )
            ));
        }
        if self.quiet {
            return Ok(());
        }
        let Counts { published, taken, dropped, reasons, skipped, left_out, quality } = counts;
        if self.json {
            let tag = self.tag.clone();
            let report = Report {
                tag,
                published,
                rate_hz,
                matching,
                taken,
                dropped,
                reasons,
                skipped,
                left_out,
                quality,
                granted: self.promises.as_ref().map(Promises::granted),
                refused: self.promises.as_ref().map(Promises::refused),
            };
            return show::json(&report);
        }
        let quality = quality.filter(|_| self.adapts);
        let adapted = quality.map(|it| format!("  quality {it}")).unwrap_or_default();
        let why = if reasons.is_empty() {
            String::new()
        } else {
            format!(" ({})", show::drops(&reasons))
        };
        self.block.update(&format!(
            "average rate: {rate_hz:.1} Hz  published {published}  dropped {dropped}{why}  {wanted}{adapted}"
        ))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn rate(samples: u64, time: Duration) -> f64 {
    round3(f64::from(u32::try_from(samples).unwrap_or(u32::MAX)) / time.as_secs_f64().max(1e-3))
}
