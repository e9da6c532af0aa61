//! Publishing from files, for `pub` and `replay`: declares publishers, waits for subscribers, and reports
//! progress. A [`Playback`] publishes several tags together, each message at its own time.

mod heard;
mod lines;
mod links;
mod progress;
mod promises;
mod topic;

pub(crate) use heard::wait as wait_until_heard;
pub(crate) use lines::LineLimit;
pub(crate) use links::report as report_links;
pub(crate) use progress::{Counts, Reporter};
pub(crate) use topic::{Topic, Whole};

use paceline::pull::History;
use paceline::{Late, LossTolerance, Node, PublishError, Publisher, PublisherBuilder};
use paceline_tool::exit;
use paceline_tool::show;
use paceline_tool::stop::Stop;
use std::time::{Duration, Instant};
use topic::TopicsLine;

/// Limit of the wait for queued samples after the last one was published.
pub(crate) const SENT_WITHIN: Duration = Duration::from_secs(30);

/// Interval of the check for subscribers.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The publishers of a file.
pub(crate) struct Playback {
    /// The common name of the publishers in reports.
    name: String,
    json: bool,
    topics: Vec<Topic>,
    counts: Counts,
    reporter: Reporter,
    stop: Stop,
}

impl Playback {
    /// Creates a playback that has published nothing.
    pub(crate) fn new(name: &str, json: bool, topics: Vec<Topic>, stop: &Stop) -> Self {
        Self {
            name: name.to_owned(),
            json,
            topics,
            counts: Counts::default(),
            reporter: Reporter::new(name, json),
            stop: stop.clone(),
        }
    }

    /// Waits at most `wait` for a subscriber to any of the tags, then until all subscribers are connected.
    /// Returns false if the user interrupts it.
    pub(crate) fn wait(&mut self, node: &Node, wait: Duration) -> bool {
        let wanted = |slice: Duration| {
            std::thread::sleep(slice.min(LOOK_AGAIN));
            self.topics.iter().any(|topic| topic.publisher.matching())
        };
        if !wait_for_subscriber(&self.name, wait, &self.stop, wanted) {
            return false;
        }
        if !wait.is_zero() && self.topics.iter().any(|topic| topic.publisher.matching()) {
            heard::wait(node, self.topics.iter().map(|topic| &topic.publisher), &self.stop);
        }
        self.reporter = Reporter::new(&self.name, self.json);
        true
    }

    /// Waits until `due` and reports progress once per second; returns false if the user interrupts it.
    pub(crate) fn wait_until(&mut self, due: Instant) -> anyhow::Result<bool> {
        loop {
            if self.stop.wait_until(due.min(self.reporter.next())) {
                return Ok(false);
            }
            let wanted = wanted(&self.topics);
            self.reporter.tick(self.counts, || wanted)?;
            if due <= Instant::now() {
                return Ok(true);
            }
        }
    }

    /// Publishes a message on the tag with this index; if `waits`, waits for room in the queues first.
    pub(crate) fn put(&mut self, topic: usize, sample: Whole, waits: bool) -> anyhow::Result<()> {
        let Some(topic) = self.topics.get_mut(topic) else { return Ok(()) };
        self.counts.add(topic.put(sample, waits)?);
        Ok(())
    }

    /// Returns the number of published messages.
    pub(crate) const fn published(&self) -> u64 {
        self.counts.published
    }

    /// Waits until everything was sent, and prints the totals of each tag.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.reporter.end(self.counts, wanted(&self.topics))?;
        let until = Instant::now() + SENT_WITHIN;
        let mut rows = Vec::new();
        let mut sent = true;
        for topic in self.topics {
            let left = until.saturating_duration_since(Instant::now());
            let stopped = self.stop.requested();
            let (row, all) = topic.close(if stopped { Duration::ZERO } else { left });
            rows.push(row);
            sent &= all;
        }
        if !sent && !self.stop.requested() {
            not_all_sent();
        }
        if self.json {
            return show::json(&TopicsLine { topics: rows });
        }
        rows.iter().try_for_each(|row| show::line(&row.to_string()))
    }
}

/// Returns whether any tag has a subscriber, with a description.
fn wanted(topics: &[Topic]) -> (bool, String) {
    let wanted = topics.iter().filter(|topic| topic.publisher.matching()).count();
    (wanted > 0, format!("{wanted} of {} topics have subscribers", topics.len()))
}

/// Prints a note that queued samples are lost.
pub(crate) fn not_all_sent() {
    let seconds = SENT_WITHIN.as_secs();
    show::note(&format!("the last samples were not sent within {seconds} s; they are lost"));
}

/// Declares a publisher with the settings that `pub` and `replay` offer for every tag.
pub(crate) fn declare_with(
    mut builder: PublisherBuilder<'_>,
    late: bool,
    loss: Option<LossTolerance>,
    history: Option<History>,
) -> Result<Publisher, PublishError> {
    if let Some(loss) = loss {
        builder = builder.loss(loss.x(), loss.y());
    }
    if late {
        builder = builder.late(Late::Send);
    }
    if let Some(history) = history {
        builder = builder.history(history);
    }
    builder.declare()
}

/// Converts the error of a declaration: wrong options are a usage error.
pub(crate) fn declared(error: PublishError) -> anyhow::Error {
    if matches!(error, PublishError::Closed) { error.into() } else { exit::usage(error) }
}

/// Waits at most `wait` until `matches` reports a subscriber. Returns false if the user interrupts it.
pub(crate) fn wait_for_subscriber(
    name: &str,
    wait: Duration,
    stop: &Stop,
    matches: impl Fn(Duration) -> bool,
) -> bool {
    let until = Instant::now() + wait;
    loop {
        if stop.requested() {
            return false;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            if !wait.is_zero() {
                show::note(&format!("no subscriber for {name} yet; publishing anyway"));
            }
            return true;
        }
        if matches(left.min(paceline_tool::stop::STOP_SLICE)) {
            return true;
        }
    }
}
