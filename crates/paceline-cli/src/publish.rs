//! `paceline pub`: a test card, a file or standard input on a tag.

mod args;
mod pace;
mod pictures;
mod pieces;
mod source;

pub(crate) use args::PubArgs;
pub(crate) use pace::Pacer;
pub(crate) use source::unix_micros;

use crate::exit::{self, INTERRUPTED};
use crate::show::{self, Block};
use crate::stats::round3;
use crate::stop::Stop;
use anyhow::Context as _;
use paceline::{Node, PublishError, Publisher};
use serde::Serialize;
use source::{Next, Origin, Source};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_secs(1);

/// One line of `--json`.
#[derive(Serialize)]
struct Report {
    tag: String,
    published: u64,
    rate_hz: f64,
    matching: bool,
    taken: u64,
    dropped: u64,
    skipped: u64,
}

/// What has been published so far.
#[derive(Default)]
struct Counts {
    published: u64,
    taken: u64,
    dropped: u64,
    skipped: u64,
}

/// Publishes until the source ends, `--count` is reached or a signal comes.
pub(crate) fn run(args: &PubArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let source = source::open(args)?;
    let node = args.node.open()?;
    let mut publisher = declare(&node, args, &source.origin).map_err(declared)?;
    if args.json {
        tracing::info!(tag = %publisher.tag(), source = %source.origin.what, "publishing");
    } else {
        show::note(&format!("publishing {}: {}", publisher.tag(), source.origin.what));
    }
    let wait = args.wait.unwrap_or(source.origin.wait);
    let started = wait_for_subscriber(&publisher, wait, &stop);
    let ended = if started {
        Session::new(args, source.origin.hz).run(&mut publisher, source.feed, &stop)
    } else {
        Ok(false)
    };
    node.close();
    Ok(if ended? { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
}

fn declare(node: &Node, args: &PubArgs, origin: &Origin) -> Result<Publisher, PublishError> {
    let mut builder = node.publisher(args.tag.as_str())?.encoding(origin.encoding.clone());
    if let Some(hz) = origin.hz {
        builder = builder.hz(hz)?;
    }
    if let Some(kind) = args.kind {
        builder = builder.kind(kind);
    }
    if let Some(size) = origin.size {
        builder = builder.picture_size(size);
    }
    if let Some(bytes) = origin.bytes_max {
        builder = builder.bytes_max(bytes);
    }
    if let Some(loss) = args.loss {
        builder = builder.loss(loss.x(), loss.y())?;
    }
    if args.late {
        builder = builder.late(paceline::Late::Send);
    }
    builder.declare()
}

fn declared(error: PublishError) -> anyhow::Error {
    if matches!(error, PublishError::Closed) { error.into() } else { exit::usage(error) }
}

/// False if the user ended it first.
fn wait_for_subscriber(publisher: &Publisher, wait: Duration, stop: &Stop) -> bool {
    let until = Instant::now() + wait;
    loop {
        if stop.requested() {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            if !wait.is_zero() {
                show::note(&format!(
                    "nobody subscribes to {} yet; publishing all the same",
                    publisher.tag()
                ));
            }
            return true;
        }
        if publisher.wait_matching(left.min(crate::stop::STOP_SLICE)) {
            return true;
        }
    }
}

struct Session<'a> {
    args: &'a PubArgs,
    pacer: Option<Pacer>,
    counts: Counts,
    block: Block,
    tick: Instant,
    reported: (Instant, u64, u64),
}

impl<'a> Session<'a> {
    fn new(args: &'a PubArgs, hz: Option<f64>) -> Self {
        let now = Instant::now();
        Self {
            args,
            pacer: hz.map(|hz| Pacer::new(now, hz)),
            counts: Counts::default(),
            block: Block::on_stdout(),
            tick: now + TICK,
            reported: (now, 0, 0),
        }
    }

    /// True if it came to its end, false if the user ended what had an end of its own.
    fn run(
        mut self,
        publisher: &mut Publisher,
        mut source: Source,
        stop: &Stop,
    ) -> anyhow::Result<bool> {
        let bounded = self.args.count.is_some() || source.has_end();
        loop {
            if self.args.count.is_some_and(|count| self.counts.published >= count) {
                break;
            }
            if stop.requested() {
                self.report(publisher, Instant::now())?;
                return Ok(!bounded);
            }
            self.tick(publisher)?;
            if !self.due(&source, stop) {
                continue;
            }
            match source.next(self.counts.published)? {
                Next::Sample(payload) => self.put(publisher, payload)?,
                Next::Wait => {}
                Next::End => break,
            }
        }
        self.report(publisher, Instant::now())?;
        Ok(true)
    }

    /// Waits for the moment of the next sample, at most until the next report.
    fn due(&mut self, source: &Source, stop: &Stop) -> bool {
        let Some(pacer) = &mut self.pacer else { return true };
        let due = pacer.due();
        if stop.wait_until(due.min(self.tick)) || due > Instant::now() {
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
        let put = put.with_context(|| format!("cannot publish sample {number}"))?;
        self.counts.published += 1;
        self.counts.taken += u64::from(put.taken);
        self.counts.dropped += u64::from(put.dropped);
        Ok(())
    }

    fn tick(&mut self, publisher: &Publisher) -> anyhow::Result<()> {
        let now = Instant::now();
        if now < self.tick {
            return Ok(());
        }
        while self.tick <= now {
            self.tick += TICK;
        }
        self.report(publisher, now)
    }

    fn report(&mut self, publisher: &Publisher, now: Instant) -> anyhow::Result<()> {
        let (since, published, skipped) = self.reported;
        let counts = &self.counts;
        let seconds = (now - since).as_secs_f64().max(1e-3);
        let samples = u32::try_from(counts.published - published).unwrap_or(u32::MAX);
        let rate_hz = round3(f64::from(samples) / seconds);
        let matching = publisher.matching();
        if counts.skipped > skipped {
            self.block.note(&format!(
                "late: skipped {} periods, this host makes samples more slowly than asked; lower \
                 the rate or the size",
                counts.skipped - skipped
            ));
        }
        self.reported = (now, counts.published, counts.skipped);
        if self.args.json {
            return show::json(&Report {
                tag: publisher.tag().to_string(),
                published: counts.published,
                rate_hz,
                matching,
                taken: counts.taken,
                dropped: counts.dropped,
                skipped: counts.skipped,
            });
        }
        let wanted = if matching { "wanted" } else { "nobody subscribes" };
        self.block.update(&format!(
            "average rate: {rate_hz:.1} Hz  published {}  dropped {}  {wanted}",
            counts.published, counts.dropped
        ))
    }
}
