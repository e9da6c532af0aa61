//! The writing thread. Samples wait in a bounded queue, so that a slow disk does not delay delivery.

use super::args::{RecordArgs, Wish};
use super::file::OutFile;
use super::stream::Stream;
use anyhow::Context as _;
use paceline::status::{PublisherId, SourceView};
use paceline::{Late, Node, Pattern, Sample};
use paceline_record::{About, Declared, RecordedEvent, RecordedSample, Recording};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Interval of writes to the disk.
const FLUSH: Duration = Duration::from_secs(1);

/// A job for the writer.
pub(super) enum Job {
    /// A sample.
    Sample(Box<Arrived>),
    /// An event.
    Event(RecordedEvent),
    /// The request for the pattern with this index changed.
    Changed(usize, Wish),
    /// The end, with its reason.
    End(&'static str),
}

/// A received sample.
pub(super) struct Arrived {
    /// Index of its pattern.
    pub(super) pattern: usize,
    /// Arrival time in nanoseconds since 1970.
    pub(super) came_ns: u64,
    /// The sample.
    pub(super) delivery: Sample,
}

/// Progress for reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub(super) samples: u64,
    pub(super) bytes: u64,
    pub(super) streams: usize,
    pub(super) late: u64,
    pub(super) missing: u64,
    /// Bytes in the file.
    pub(super) written: u64,
    /// True once the file has reached its size limit.
    pub(super) full: bool,
}

/// State that the writer shares with other threads.
#[derive(Clone, Default)]
pub(super) struct Shared {
    pub(super) progress: Arc<Mutex<Progress>>,
    /// Descriptions of the grants.
    pub(super) granted: Arc<Mutex<BTreeMap<PublisherId, String>>>,
    /// Payload bytes in the queue.
    pub(super) waiting: Arc<AtomicUsize>,
}

/// Returns the current time in nanoseconds since 1970: that of the host's clock at the first call, and the time since
/// then. Setting the clock during a recording does not change it.
pub(super) fn now_ns() -> u64 {
    static BEGAN: OnceLock<(Instant, Duration)> = OnceLock::new();
    let (began, since) = BEGAN.get_or_init(|| {
        (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    });
    u64::try_from((*since + began.elapsed()).as_nanos()).unwrap_or(u64::MAX)
}

pub(super) struct Writer<'a> {
    args: &'a RecordArgs,
    /// The request of each pattern.
    wishes: Vec<Wish>,
    node: Node,
    file: OutFile,
    recording: Recording,
    streams: BTreeMap<PublisherId, Stream>,
    shared: Shared,
    began: Instant,
    samples: u64,
    bytes: u64,
    attachments: u64,
    /// Samples in the file.
    kept: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(args: &'a RecordArgs, node: &Node, file: OutFile, shared: Shared) -> Self {
        let program = concat!("paceline ", env!("CARGO_PKG_VERSION"));
        Self {
            args,
            wishes: vec![args.wish(); args.patterns.len()],
            node: node.clone(),
            file,
            recording: Recording::new(args.compression, program),
            streams: BTreeMap::new(),
            shared,
            began: Instant::now(),
            samples: 0,
            bytes: 0,
            attachments: 0,
            kept: 0,
        }
    }

    /// Writes until [`Job::End`]; returns the totals.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) -> anyhow::Result<Progress> {
        self.begin()?;
        let mut flush = Instant::now() + FLUSH;
        let why = loop {
            match jobs.recv_timeout(flush.saturating_duration_since(Instant::now())) {
                Ok(Job::Sample(arrived)) => self.sample(&arrived)?,
                Ok(Job::Event(event)) => self.recording.event(&event, now_ns())?,
                Ok(Job::Changed(pattern, wish)) => self.change(pattern, wish)?,
                Ok(Job::End(why)) => break why,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break "the command has ended",
            }
            let now = Instant::now();
            if now >= flush {
                self.second()?;
                flush = now + FLUSH;
            }
        };
        self.end(why)
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        let event = RecordedEvent::Begin {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: self.node.id().to_string(),
            name: self.node.name().to_owned(),
            patterns: self.args.patterns.iter().map(ToString::to_string).collect(),
            asked: self.args.wish().asked,
        };
        self.recording.event(&event, now_ns())?;
        self.flush()
    }

    fn change(&mut self, pattern: usize, wish: Wish) -> anyhow::Result<()> {
        self.streams
            .values_mut()
            .filter(|stream| stream.pattern == pattern)
            .for_each(|stream| stream.change(&wish));
        let changed = self.args.patterns.get(pattern).map(ToString::to_string);
        let asked = wish.asked.clone();
        if let Some(slot) = self.wishes.get_mut(pattern) {
            *slot = wish;
        }
        let event = RecordedEvent::Changed { pattern: changed.unwrap_or_default(), asked };
        Ok(self.recording.event(&event, now_ns())?)
    }

    fn sample(&mut self, arrived: &Arrived) -> anyhow::Result<()> {
        let Arrived { pattern, came_ns, delivery } = arrived;
        self.shared.waiting.fetch_sub(delivery.payload.len(), Ordering::Relaxed);
        let Some(wish) = self.wishes.get(*pattern) else { return Ok(()) };
        let streams = self.streams.entry(delivery.publisher);
        let stream = streams.or_insert_with(|| Stream::new(delivery, *pattern, wish));
        if stream.pattern != *pattern {
            return Ok(());
        }
        if let Some(gap) = stream.take(delivery, Instant::now()) {
            self.recording.event(&gap, *came_ns)?;
        }
        let sample = RecordedSample {
            tag: delivery.tag.as_str(),
            publisher: &stream.publisher,
            seq: delivery.seq,
            encoding: delivery.encoding.as_str(),
            captured_ns: delivery.captured.nanos,
            came_ns: *came_ns,
            payload: &delivery.payload,
            attachment: delivery.attachment.as_deref(),
        };
        let (node, granted) = (&self.node, &self.shared.granted);
        let recorded = self.recording.sample(&sample, || about(wish, node, granted, delivery));
        recorded.with_context(|| format!("cannot record {}", delivery.tag))?;
        self.samples += 1;
        self.bytes += delivery.payload.len() as u64;
        self.attachments += u64::from(delivery.attachment.is_some());
        self.write()
    }

    /// Records statistics and flushes once per second.
    fn second(&mut self) -> anyhow::Result<()> {
        for event in self.streams.values_mut().filter_map(Stream::news) {
            self.recording.event(&event, now_ns())?;
        }
        self.flush()
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.recording.flush();
        self.write()
    }

    /// Writes the complete chunks.
    fn write(&mut self) -> anyhow::Result<()> {
        let ready = self.recording.take();
        if ready.is_empty() {
            return Ok(());
        }
        self.file.write(&ready, self.kept)?;
        self.kept = self.samples;
        let mut progress = self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner);
        *progress = self.progress();
        Ok(())
    }

    fn progress(&self) -> Progress {
        let written = self.file.bytes();
        Progress {
            samples: self.samples,
            bytes: self.bytes,
            streams: self.streams.len(),
            late: self.streams.values().map(Stream::late).sum(),
            missing: self.streams.values().map(Stream::missing).sum(),
            written,
            full: self.args.max_bytes.is_some_and(|max| written >= max),
        }
    }

    fn end(mut self, why: &str) -> anyhow::Result<Progress> {
        for stream in self.streams.values() {
            self.recording.event(&stream.delivered(), now_ns())?;
        }
        let event = RecordedEvent::End {
            why: why.to_owned(),
            seconds: self.began.elapsed().as_secs_f64(),
            samples: self.samples,
            bytes: self.bytes,
            attachments: self.attachments,
        };
        self.recording.event(&event, now_ns())?;
        let progress = self.progress();
        let written = self.file.finish(&self.recording.finish(), self.kept)?;
        Ok(Progress { written, ..progress })
    }
}

/// Describes a publisher at its first sample.
fn about(
    wish: &Wish,
    node: &Node,
    granted: &Mutex<BTreeMap<PublisherId, String>>,
    delivery: &Sample,
) -> About {
    let sources = Pattern::new(delivery.tag.as_str()).map(|tag| node.sources(&tag));
    let sources = sources.unwrap_or_default();
    let source = sources.iter().find(|source| source.publisher == delivery.publisher);
    let granted = granted.lock().unwrap_or_else(PoisonError::into_inner);
    let promised = granted.get(&delivery.publisher).cloned();
    About {
        kind: delivery.kind.to_string(),
        node: source.map(|source| source.node.clone()).unwrap_or_default(),
        period_us: source.and_then(|source| source.period).map(paceline_tool::show::micros),
        asked: wish.words(),
        granted: promised.unwrap_or_else(|| "best effort".to_owned()),
        declared: source.map(|source| declared(source, wish)).unwrap_or_default(),
    }
}

/// Returns the publisher's declaration for the samples that the request selects.
fn declared(source: &SourceView, wish: &Wish) -> Declared {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let every = wish.step.map(u32::try_from).and_then(Result::ok);
    let whole = wish.unchanged;
    Declared {
        period_ns: source
            .period
            .zip(every)
            .map(|(period, every)| nanos(period.saturating_mul(every))),
        sends_late: source.late == Late::Send,
        loss: source.loss.map(|loss| (loss.x(), loss.y())),
        within_ns: source.within.map(nanos),
        size: source.size.filter(|_| whole).map(|size| (size.width, size.height)),
        bytes_max: source.bytes_max.filter(|_| whole),
        traffic: source.traffic.filter(|_| whole && every == Some(1)),
        latch: source.latch,
    }
}
