//! `paceline record`: records samples and their delivery results in an MCAP file.

mod args;
mod decisions;
mod file;
mod links;
mod news;
mod stream;
mod writer;

pub(crate) use args::RecordArgs;
pub(crate) use file::open;

use crate::playback::LineLimit;
use crate::shortfall;
use crate::status::describe_tags;
use anyhow::{Context as _, anyhow};
use file::OutFile;
use links::Links;
use news::News;
use paceline::status::by_reason;
use paceline::status::{DropReason, Drops, SourceView};
use paceline::{Node, Pattern, Sample, SubscribeError, Subscription};
use paceline_record::RecordedEvent;
use paceline_tool::exit;
use paceline_tool::show::{self, Block};
use paceline_tool::stop::{STOP_SLICE, Stop};
use serde::Serialize;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};
use writer::{Arrived, Job, Progress, Shared, Writer};

const TICK: Duration = Duration::from_secs(1);
/// Interval of the search for publishers; the search adds no load to links.
const LOOK: Duration = Duration::from_millis(250);
/// Time to wait for a publisher before printing a note.
const PATIENCE: Duration = Duration::from_secs(2);
/// Limit of the payload bytes that wait for the disk.
const WAITING_BYTES_MAX: usize = 128 << 20;

/// One line of `--json`.
#[derive(Serialize)]
struct Line {
    samples: u64,
    bytes: u64,
    written: u64,
    streams: usize,
    late: u64,
    missing: u64,
    #[serde(serialize_with = "by_reason::serialize")]
    dropped: Drops,
}

/// Records until `--duration`, `--max-bytes` or a signal ends it.
pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    let stop = Stop::on_signals()?;
    // Catching SIGXFSZ lets a write beyond the file size limit fail instead of killing the process.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .context("cannot watch for SIGXFSZ")?;
    let out = OutFile::create(&args.out, args.force)?;
    let node = args.node.open("record", args.patterns.first().map_or("", |it| it.as_str()))?;
    let done = std::thread::scope(|scope| {
        let shared = Shared::default();
        let (jobs, work) = sync_channel(args.queue);
        let writer = Writer::new(args, &node, out, shared.clone());
        let named = std::thread::Builder::new().name("paceline-record".to_owned());
        let thread = named
            .spawn_scoped(scope, move || writer.run(&work))
            .context("cannot start a thread")?;
        let lost = Arc::new(AtomicU64::new(0));
        let subscriptions = args.patterns.iter().enumerate().map(|(place, pattern)| {
            subscribe(args, &node, (place, pattern), jobs.clone(), &shared, &lost)
        });
        let subscriptions = subscriptions.collect::<Result<Vec<_>, _>>().map_err(|error| {
            if matches!(error, SubscribeError::Closed) { error.into() } else { exit::usage(error) }
        })?;
        let mut session = Session {
            args,
            node: &node,
            subscriptions,
            jobs,
            shared,
            lost,
            news: News::new(args.fresh),
            lines: LineLimit::default(),
            links: Links::default(),
            block: Block::on_stdout(),
            began: Instant::now(),
            noted: false,
            asked: false,
        };
        let why = session.run(&stop, || thread.is_finished())?;
        session.end(why, thread.is_finished());
        let joined = thread.join().map_err(|_| anyhow!("the writer thread has ended"))??;
        session.verdict(why, &joined)
    });
    node.close();
    done
}

/// The reason for the end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Duration,
    Bytes,
    Stopped,
    Refused,
    /// The writer failed and returns its own error.
    Failed,
}

impl End {
    const fn reason(self) -> &'static str {
        match self {
            Self::Duration => "--duration",
            Self::Bytes => "--max-bytes",
            Self::Stopped => "a signal",
            Self::Refused => "a refusal with --require",
            Self::Failed => "an error",
        }
    }
}

fn subscribe(
    args: &RecordArgs,
    node: &Node,
    (place, pattern): (usize, &Pattern),
    jobs: SyncSender<Job>,
    shared: &Shared,
    lost: &Arc<AtomicU64>,
) -> Result<Subscription, SubscribeError> {
    let (waiting, lost) = (Arc::clone(&shared.waiting), Arc::clone(lost));
    // Runs on a receiving thread, which must not block: samples without room are dropped and counted.
    args.ask(node, pattern).callback(move |delivery: Sample| {
        let bytes = delivery.payload.len();
        let came_ns = writer::now_ns();
        let before = waiting.fetch_add(bytes, Ordering::Relaxed);
        let arrived = Arrived { pattern: place, came_ns, delivery };
        let room = before == 0 || before + bytes <= WAITING_BYTES_MAX;
        if !room || jobs.try_send(Job::Sample(Box::new(arrived))).is_err() {
            waiting.fetch_sub(bytes, Ordering::Relaxed);
            lost.fetch_add(1, Ordering::Relaxed);
        }
    })
}

struct Session<'a> {
    args: &'a RecordArgs,
    node: &'a Node,
    subscriptions: Vec<Subscription>,
    jobs: SyncSender<Job>,
    shared: Shared,
    /// Samples dropped because the queue was full.
    lost: Arc<AtomicU64>,
    news: News,
    lines: LineLimit<String>,
    links: Links,
    block: Block,
    began: Instant,
    noted: bool,
    /// True once the nodes on the path were queried.
    asked: bool,
}

impl Session<'_> {
    fn run(&mut self, stop: &Stop, failed: impl Fn() -> bool) -> anyhow::Result<End> {
        let deadline = self.args.duration.map(|duration| self.began + duration);
        let (mut look, mut tick) = (self.began, self.began + TICK);
        loop {
            let now = Instant::now();
            if stop.requested() {
                return Ok(End::Stopped);
            }
            if failed() {
                return Ok(End::Failed);
            }
            if self.progress().full {
                return Ok(End::Bytes);
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(End::Duration);
            }
            if now >= look {
                self.look();
                look = now + LOOK;
            }
            self.hear();
            if self.args.require && self.news.no().is_some() {
                return Ok(End::Refused);
            }
            if now >= tick {
                self.tick(now)?;
                tick += TICK;
            }
            let until = deadline.unwrap_or(tick).min(tick).min(look).min(now + STOP_SLICE);
            std::thread::sleep(until.saturating_duration_since(now));
        }
    }

    fn look(&mut self) {
        for event in self.news.look(self.node, &self.args.patterns) {
            self.send(event);
        }
        if !self.asked && !self.news.sources().is_empty() {
            self.asked = true;
            self.links.begin(self.node, self.news.sources());
        }
    }

    fn hear(&mut self) {
        let pending = self.subscriptions.iter().enumerate().map(|(place, subscription)| {
            (place, std::iter::from_fn(|| subscription.try_event()).collect::<Vec<_>>())
        });
        let pending: Vec<_> = pending.filter(|(_, events)| !events.is_empty()).collect();
        if pending.is_empty() {
            return;
        }
        // Events refer to publishers; their tags have to be known.
        self.look();
        let news = &mut self.news;
        let jobs = pending.into_iter().flat_map(|one| news.hear(one, &self.shared));
        let jobs = jobs.collect::<Vec<_>>();
        let notes = core::mem::take(&mut self.news.notes);
        notes.into_iter().for_each(|note| self.note(note));
        for job in jobs {
            match &job {
                Job::Event(RecordedEvent::Refused { tag, reason, .. }) => {
                    self.note(format!("refused: {tag}: {reason}"));
                }
                Job::Changed(_, wish) => {
                    self.note(format!("the request changed: {}", wish.words()));
                }
                Job::Event(_) | Job::Sample(_) | Job::End(_) => {}
            }
            self.hand(job);
        }
    }

    /// Prints a line that another node has caused.
    fn note(&mut self, line: String) {
        let now = Instant::now();
        let due = self.lines.due(now);
        for line in due.into_iter().chain(self.lines.pass(line.clone(), line, now)) {
            show::note(&line);
        }
    }

    fn send(&self, event: RecordedEvent) {
        self.hand(Job::Event(event));
    }

    /// Sends a job to the writer. Unlike samples it waits for room, at most a second: events are rare.
    fn hand(&self, mut job: Job) {
        let until = Instant::now() + TICK;
        while let Err(TrySendError::Full(back)) = self.jobs.try_send(job) {
            if Instant::now() >= until {
                return;
            }
            job = back;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn progress(&self) -> Progress {
        *self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the samples dropped here.
    fn drops(&self) -> Drops {
        let mut drops = Drops::default();
        self.subscriptions.iter().for_each(|one| drops.merge(&one.drops()));
        drops.add(DropReason::SubscriberFull, self.lost.load(Ordering::Relaxed));
        drops
    }

    fn tick(&mut self, now: Instant) -> anyhow::Result<()> {
        self.links.look(self.node, self.news.sources());
        let drops = self.drops();
        if let Some(event) = self.news.dropped(drops) {
            self.send(event);
        }
        if let Some(event) = self.news.decisions.news(&self.subscriptions) {
            self.send(event);
        }
        let progress = self.progress();
        if self.news.sources().is_empty() && !self.noted && now >= self.began + PATIENCE {
            self.noted = true;
            let (wanted, there) = (self.args.patterns_in_words(), self.there());
            show::note(&format!(
                "no publisher on {wanted} yet; {there}; still waiting (Ctrl-C ends)"
            ));
        }
        self.show(&progress, drops)
    }

    fn show(&mut self, progress: &Progress, dropped: Drops) -> anyhow::Result<()> {
        let Progress { samples, bytes, streams, late, missing, written, .. } = *progress;
        if self.args.json {
            return show::json(&Line { samples, bytes, written, streams, late, missing, dropped });
        }
        self.block.update(&format!(
            "{:.0} s  {samples} samples of {}, {bytes} bytes  file {written} bytes  late {late}  missing {missing}  dropped {}",
            self.began.elapsed().as_secs_f64(),
            show::count(streams, "publisher"),
            show::drops(&dropped),
        ))
    }

    /// Sends the end to the writer, after all earlier events.
    fn end(&mut self, why: End, failed: bool) {
        self.hear();
        self.lines.rest().iter().for_each(|line| show::note(line));
        if self.asked && !failed {
            for event in self.links.end(self.node, self.news.sources()) {
                self.send(event);
            }
        }
        let drops = self.drops();
        if let Some(event) = self.news.decisions.news(&self.subscriptions) {
            self.send(event);
        }
        // No samples arrive after this.
        self.subscriptions.clear();
        if let Some(event) = self.news.dropped(drops) {
            self.send(event);
        }
        // A failed writer no longer receives.
        if !failed {
            let _ = self.jobs.send(Job::End(why.reason()));
        }
    }

    fn there(&self) -> String {
        let all = Pattern::new("**").map(|all| self.node.sources(&all)).unwrap_or_default();
        describe_tags(&all.iter().map(|source| source.tag.to_string()).collect())
    }

    /// Explains why no samples arrived.
    fn shortfall(&self, dropped: &Drops) -> String {
        let sources: Vec<SourceView> = self.news.sources().values().cloned().collect();
        let asked = self.args.wish.requested_rate();
        shortfall::reason(self.node, &sources, dropped, asked, "--duration")
    }

    fn verdict(&mut self, why: End, done: &Progress) -> anyhow::Result<ExitCode> {
        let dropped = self.news.all_dropped();
        self.show(done, dropped)?;
        let refusal = self.news.no();
        if why == End::Refused || (why == End::Duration && done.samples == 0) {
            let wanted = self.args.patterns_in_words();
            let reason = match refusal {
                Some(reason) => reason,
                None if self.news.sources().is_empty() => {
                    format!("no publisher on {wanted}; {}; check the tag", self.there())
                }
                None => self.shortfall(&dropped),
            };
            let (samples, file) = (done.samples, self.args.out.display());
            return Err(exit::refused(format!("{samples} samples in {file}: {reason}")));
        }
        Ok(ExitCode::SUCCESS)
    }
}
