//! Several tags published together, each message at its own time: telemetry files and recordings.

use super::session::{Counts, Teller};
use super::topic::{Topic, TopicsLine, Whole};
use super::{SENT_WITHIN, heard, not_all_sent, wait_for_subscriber};
use crate::show;
use crate::stop::Stop;
use paceline::Node;
use std::time::{Duration, Instant};

/// Interval of the check for subscribers.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The publishers of a file.
pub(crate) struct Playback {
    /// The common name of the publishers in reports.
    name: String,
    json: bool,
    topics: Vec<Topic>,
    counts: Counts,
    teller: Teller,
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
            teller: Teller::new(name, json),
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
        self.teller = Teller::new(&self.name, self.json);
        true
    }

    /// Waits until `due` and reports progress once per second; returns false if the user interrupts it.
    pub(crate) fn wait_until(&mut self, due: Instant) -> anyhow::Result<bool> {
        loop {
            if self.stop.wait_until(due.min(self.teller.next())) {
                return Ok(false);
            }
            let wanted = wanted(&self.topics);
            self.teller.tick(self.counts, || wanted)?;
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
        self.teller.end(self.counts, wanted(&self.topics))?;
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
    (wanted > 0, format!("{wanted} of {} topics wanted", topics.len()))
}
