//! Publishes one source: each sample at its time.

use super::adapt::Quality;
use super::args::PubArgs;
use super::news::News;
use super::source::{Next, Origin, Piece, Source};
use crate::pacer::Pacer;
use crate::playback::{Counts, Reporter};
use anyhow::Context as _;
use paceline::time::{ClockReading, TimeBounds};
use paceline::{Node, Publisher, PutOptions, Timestamp};
use paceline_edge::Captured;
use paceline_tool::show;
use paceline_tool::stop::{STOP_SLICE, Stop};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shortest time between two notes on parts of the input that are left out.
const NOTE_EVERY: Duration = Duration::from_secs(10);
/// The age from which on a live sample has waited, for the first subscriber or because its source is faster than time.
const BACKLOG: Duration = Duration::from_millis(50);
/// The longest time between two of these, so that they do not fill the queues at once.
const SPREAD_MAX: Duration = Duration::from_millis(5);
/// The longest time between two readings of clocks, and the most attempts.
const READ_MAX: Duration = Duration::from_micros(200);
const READS_MAX: u32 = 5;
/// The wait from which on a sample keeps the time of its arrival.
const WAIT_MIN_NS: u64 = 1_000_000;

/// Publishes one source on one tag.
pub(super) struct Session<'a> {
    args: &'a PubArgs,
    node: &'a Node,
    news: Option<Arc<News>>,
    pacer: Option<Pacer>,
    /// Waits for room in the queues before each sample.
    waits: bool,
    /// The time between live samples that have waited.
    spread: Option<Duration>,
    counts: Counts,
    reporter: Reporter,
    /// The number of parts left out that were reported, and the time from which on more are.
    noted: (u64, Option<Instant>),
}

impl<'a> Session<'a> {
    pub(super) fn new(args: &'a PubArgs, node: &'a Node, origin: &Origin) -> Self {
        let hz = origin.hz.filter(|_| !origin.live);
        Self {
            args,
            node,
            news: origin.news.clone(),
            pacer: hz.map(|hz| Pacer::new(Instant::now(), hz)),
            spread: origin.live.then(|| spread(origin.hz)),
            waits: hz.is_none() && (!origin.live || args.late),
            counts: Counts::default(),
            reporter: Reporter::new(args.tag.as_str(), args.json)
                .with_quality(args.adapt)
                .quiet(args.quiet),
            noted: (0, None),
        }
    }

    /// Publishes until the end. Returns false if the user interrupts a source or `--count` before its end.
    pub(super) fn run(
        mut self,
        publisher: &mut Publisher,
        mut source: Box<dyn Source + Send>,
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
            self.note(false);
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
        self.note(true);
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

    /// Reports parts of the input that are left out: at once, then at most every ten seconds, and at the end.
    fn note(&mut self, ends: bool) {
        let Some(news) = &self.news else { return };
        self.counts.left_out = news.count();
        let (noted, from) = self.noted;
        let now = Instant::now();
        if self.counts.left_out > noted && (ends || from.is_none_or(|from| from <= now)) {
            self.noted = (self.counts.left_out, Some(now + NOTE_EVERY));
            show::note(&news.describe());
        }
    }

    fn put(&mut self, publisher: &mut Publisher, piece: Piece) -> anyhow::Result<()> {
        let number = self.counts.published;
        if let Some(spread) = self.spread
            && piece.arrived.is_some_and(|arrived| arrived.elapsed() > BACKLOG)
        {
            std::thread::sleep(spread);
        }
        let live = self.pacer.is_none();
        let captured = live.then(|| captured(self.node, &piece)).flatten();
        let options = PutOptions { captured, ..PutOptions::default() };
        if let Some(pacer) = &mut self.pacer {
            pacer.advance();
        }
        while self.waits
            && let Some(room) = publisher.room()
        {
            // A closed stream does not notify, so check again periodically.
            let _ = room.wait_until(Instant::now() + STOP_SLICE);
        }
        let put = publisher.put_with(piece.payload, options);
        self.counts.add(put.with_context(|| format!("cannot publish sample {number}"))?);
        Ok(())
    }
}

/// Returns the time at which a sample was captured, or arrived and waited for its turn; `None` for the present time.
pub(super) fn captured(node: &Node, piece: &Piece) -> Option<Timestamp> {
    let arrived = piece.arrived?;
    // Both clocks at one moment: the processor may be taken away between them.
    let mut read = both(node);
    for _ in 1..READS_MAX {
        if read.1.elapsed() < READ_MAX {
            break;
        }
        read = both(node);
    }
    let (now, at) = read;
    let waited = u64::try_from(at.saturating_duration_since(arrived).as_nanos()).ok()?;
    if let Some(captured) = piece.captured {
        return Some(of_camera(now, waited, captured));
    }
    (waited >= WAIT_MIN_NS)
        .then(|| Timestamp { nanos: now.nanos.saturating_sub(waited), error: now.error_byte() })
}

/// Reads the node's clock and this process's.
fn both(node: &Node) -> (ClockReading, Instant) {
    let at = Instant::now();
    (node.clock().now(), at)
}

/// Returns the capture time of a sample that arrived `waited` nanoseconds ago.
fn of_camera(now: ClockReading, waited: u64, captured: Captured) -> Timestamp {
    let nanos = now.nanos.saturating_sub(waited.saturating_add(captured.before_ns));
    let latest = now.bounds.latest.saturating_add(captured.bound_ns);
    let earliest = now.bounds.earliest.saturating_sub(captured.bound_ns);
    // The bounds of the same clock, of which the time of capture may be off by more.
    let error = ClockReading { bounds: TimeBounds { earliest, latest }, ..now }.error_byte();
    Timestamp { nanos, error }
}

/// Returns a quarter of the period, so that a backlog ends.
fn spread(hz: Option<f64>) -> Duration {
    let quarter = hz.and_then(|hz| Duration::try_from_secs_f64(0.25 / hz).ok());
    quarter.unwrap_or(SPREAD_MAX / 2).min(SPREAD_MAX)
}

fn wanted(publisher: &Publisher) -> (bool, String) {
    let matching = publisher.matching();
    (matching, if matching { "wanted" } else { "no subscriber" }.to_owned())
}
