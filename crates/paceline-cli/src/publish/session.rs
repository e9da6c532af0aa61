//! Publishing one source: each sample at its moment, and a report each second.

use super::adapt::Quality;
use super::args::PubArgs;
use super::pace::Pacer;
use super::promises::Promises;
use super::source::{Next, Source};
use crate::show::{self, Block};
use crate::stats::round3;
use crate::stop::Stop;
use anyhow::Context as _;
use paceline::Publisher;
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
    pub(crate) skipped: u64,
    /// How many subscriptions have a promise, and how many were refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) granted: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<usize>,
    /// What the test card is coded with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quality: Option<u8>,
}

/// What has been published so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) published: u64,
    pub(crate) taken: u64,
    pub(crate) dropped: u64,
    pub(crate) skipped: u64,
    /// What pictures that are coded here are coded with now.
    pub(crate) quality: Option<u8>,
}

impl Counts {
    /// Counts one sample.
    pub(crate) fn add(&mut self, put: paceline::Put) {
        self.published += 1;
        self.taken += u64::from(put.taken);
        self.dropped += u64::from(put.dropped);
    }
}

/// Tells once a second how far it is.
pub(crate) struct Teller {
    tag: String,
    json: bool,
    /// True if its quality is told.
    adapts: bool,
    block: Block,
    /// Of one publisher; none where several are told of together.
    promises: Option<Promises>,
    tick: Instant,
    began: Instant,
    reported: (Instant, Counts),
}

impl Teller {
    /// The first report comes in a second.
    pub(crate) fn new(tag: &str, json: bool) -> Self {
        let now = Instant::now();
        Self {
            tag: tag.to_owned(),
            json,
            adapts: false,
            block: Block::on_stdout(),
            promises: None,
            tick: now + TICK,
            began: now,
            reported: (now, Counts::default()),
        }
    }

    /// Tells at once what became of the promises to subscriptions.
    pub(crate) fn hear(&mut self, publisher: &Publisher) {
        let promises = self.promises.get_or_insert_default();
        while let Some(event) = publisher.try_event() {
            self.block.note(&promises.take(event));
        }
    }

    /// The moment of the next report.
    pub(crate) const fn next(&self) -> Instant {
        self.tick
    }

    /// Reports if it is time to; `wanted` tells whether anybody wants the samples, and in words.
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

    /// The last report: its rate is that of the whole run, or of a second where the run was shorter.
    pub(crate) fn end(&mut self, counts: Counts, wanted: (bool, String)) -> anyhow::Result<()> {
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
            self.block.note(&format!(
                "late: skipped {} periods, this host makes samples more slowly than asked; lower \
                 the rate or the size",
                counts.skipped - before.skipped
            ));
        }
        let Counts { published, taken, dropped, skipped, quality } = counts;
        if self.json {
            let tag = self.tag.clone();
            let report = Report {
                tag,
                published,
                rate_hz,
                matching,
                taken,
                dropped,
                skipped,
                quality,
                granted: self.promises.as_ref().map(Promises::granted),
                refused: self.promises.as_ref().map(Promises::refused),
            };
            return show::json(&report);
        }
        let quality = quality.filter(|_| self.adapts);
        let adapted = quality.map(|it| format!("  quality {it}")).unwrap_or_default();
        self.block.update(&format!(
            "average rate: {rate_hz:.1} Hz  published {published}  dropped {dropped}  {wanted}{adapted}"
        ))
    }
}

fn rate(samples: u64, time: Duration) -> f64 {
    round3(f64::from(u32::try_from(samples).unwrap_or(u32::MAX)) / time.as_secs_f64().max(1e-3))
}

/// Publishes one source on one tag.
pub(super) struct Session<'a> {
    args: &'a PubArgs,
    pacer: Option<Pacer>,
    counts: Counts,
    teller: Teller,
}

impl<'a> Session<'a> {
    pub(super) fn new(args: &'a PubArgs, hz: Option<f64>) -> Self {
        Self {
            args,
            pacer: hz.map(|hz| Pacer::new(Instant::now(), hz)),
            counts: Counts::default(),
            teller: Teller { adapts: args.adapt, ..Teller::new(args.tag.as_str(), args.json) },
        }
    }

    /// True if it came to its end, false if the user ended what had an end of its own.
    pub(super) fn run(
        mut self,
        publisher: &mut Publisher,
        mut source: Source,
        stop: &Stop,
    ) -> anyhow::Result<bool> {
        let bounded = self.args.count.is_some() || source.has_end();
        let whole = loop {
            if self.args.count.is_some_and(|count| self.counts.published >= count) {
                break true;
            }
            if stop.requested() {
                break !bounded;
            }
            self.counts.quality = source.quality().map(Quality::get);
            self.teller.hear(publisher);
            self.teller.tick(self.counts, || wanted(publisher))?;
            if !self.due(&source, stop) {
                continue;
            }
            match source.next(self.counts.published)? {
                Next::Sample(payload) => self.put(publisher, payload)?,
                Next::Wait => {}
                Next::End => break true,
            }
        };
        self.teller.hear(publisher);
        self.teller.end(self.counts, wanted(publisher))?;
        Ok(whole)
    }

    /// Waits for the moment of the next sample, at most until the next report.
    fn due(&mut self, source: &Source, stop: &Stop) -> bool {
        let Some(pacer) = &mut self.pacer else { return true };
        let due = pacer.due();
        if stop.wait_until(due.min(self.teller.next())) || due > Instant::now() {
            return false;
        }
        if source.keeps_time() {
            self.counts.skipped += pacer.skip_missed(Instant::now());
        } else {
            pacer.restart_if_behind(Instant::now());
        }
        true
    }

    fn put(&mut self, publisher: &mut Publisher, payload: bytes::Bytes) -> anyhow::Result<()> {
        let number = self.counts.published;
        let put = match &mut self.pacer {
            Some(pacer) => {
                pacer.advance();
                publisher.put(payload)
            }
            None => publisher.put_blocking(payload),
        };
        self.counts.add(put.with_context(|| format!("cannot publish sample {number}"))?);
        Ok(())
    }
}

fn wanted(publisher: &Publisher) -> (bool, String) {
    let matching = publisher.matching();
    (matching, if matching { "wanted" } else { "nobody subscribes" }.to_owned())
}
