//! Publishes one source: each sample at its time.

use super::adapt::Quality;
use super::args::PubArgs;
use super::source::{Next, Source};
use crate::pacer::Pacer;
use crate::playback::{Counts, Reporter};
use crate::stop::Stop;
use anyhow::Context as _;
use paceline::{Node, Publisher};
use std::time::Instant;

/// Publishes one source on one tag.
pub(super) struct Session<'a> {
    args: &'a PubArgs,
    node: &'a Node,
    pacer: Option<Pacer>,
    counts: Counts,
    reporter: Reporter,
}

impl<'a> Session<'a> {
    pub(super) fn new(args: &'a PubArgs, node: &'a Node, hz: Option<f64>) -> Self {
        Self {
            args,
            node,
            pacer: hz.map(|hz| Pacer::new(Instant::now(), hz)),
            counts: Counts::default(),
            reporter: Reporter::new(args.tag.as_str(), args.json).with_quality(args.adapt),
        }
    }

    /// Publishes until the end. Returns false if the user interrupts a source or `--count` before its end.
    pub(super) fn run(
        mut self,
        publisher: &mut Publisher,
        mut source: Box<dyn Source>,
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
            self.reporter.hear(publisher, self.node);
            self.reporter.tick(self.counts, || wanted(publisher))?;
            if !self.due(source.as_ref(), stop) {
                continue;
            }
            match source.next(self.counts.published)? {
                Next::Sample(payload) => self.put(publisher, payload)?,
                Next::Wait => {}
                Next::End => break true,
            }
        };
        self.reporter.hear(publisher, self.node);
        self.reporter.end(self.counts, wanted(publisher))?;
        Ok(whole)
    }

    /// Waits for the time of the next sample, at most until the next report; returns true if it is due.
    fn due(&mut self, source: &dyn Source, stop: &Stop) -> bool {
        let Some(pacer) = &mut self.pacer else { return true };
        let due = pacer.due();
        if stop.wait_until(due.min(self.reporter.next())) || due > Instant::now() {
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
    (matching, if matching { "wanted" } else { "no subscriber" }.to_owned())
}
