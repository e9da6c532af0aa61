//! Reads the status of nodes.

use super::document::{LinkJson, StatusJson, bits_per_s};
use paceline::Node;
use std::collections::BTreeMap;
use std::time::Duration;

/// Reads the status repeatedly and derives the use of links from the difference to the previous
/// reading.
pub struct StatusReader {
    timeout: Duration,
    near: bool,
    before: BTreeMap<(String, String), Reading>,
}

/// The counters of a link at one reading, and the resulting rates.
#[derive(Clone)]
struct Reading {
    at_us: u64,
    all: Sent,
    each: BTreeMap<String, Sent>,
    frames: u64,
    dropped: u64,
    /// The part of the frames lost since the previous reading.
    loss: Option<f64>,
}

/// The bytes sent so far, and the rate since the previous reading.
#[derive(Clone, Copy)]
struct Sent {
    bytes: u64,
    bits_per_s: Option<u64>,
}

impl Sent {
    /// Returns the same with its rate since `before`, `us` microseconds earlier. A link updates its
    /// counters four times per second. If they have not changed since `before`, the previous rate
    /// remains.
    fn since(self, before: Option<&Self>, us: u64) -> Self {
        let rate = |before: &Self| match us {
            0 => before.bits_per_s,
            us => {
                let seconds = Duration::from_micros(us).as_secs_f64();
                Some(bits_per_s(self.bytes.checked_sub(before.bytes)?, seconds))
            }
        };
        Self { bits_per_s: before.and_then(rate), ..self }
    }
}

impl Reading {
    fn new(link: &LinkJson, before: Option<&Self>) -> Self {
        let us = before.map(|before| link.at_us.saturating_sub(before.at_us)).unwrap_or_default();
        let sent = |bytes: u64| Sent { bytes, bits_per_s: None };
        let each = link.neighbours.iter().map(|to| {
            let before = before.and_then(|before| before.each.get(&to.id));
            (to.id.clone(), sent(to.wire_bytes).since(before, us))
        });
        Self {
            at_us: link.at_us,
            all: sent(link.wire_bytes).since(before.map(|before| &before.all), us),
            each: each.collect(),
            frames: link.frames,
            dropped: link.frames_dropped,
            loss: before.and_then(|before| before.loss_until(link, us)),
        }
    }

    /// Returns the part of the frames lost from this reading until that of `link`, `us` microseconds later; `None` if none
    /// was sent, or after a restart.
    fn loss_until(&self, link: &LinkJson, us: u64) -> Option<f64> {
        if us == 0 {
            return self.loss;
        }
        let sent = link.frames.checked_sub(self.frames).filter(|sent| *sent > 0)?;
        let lost = link.frames_dropped.saturating_sub(self.dropped).min(sent);
        #[expect(clippy::cast_precision_loss, reason = "counts of one second")]
        let part = lost as f64 / sent as f64;
        Some(part)
    }
}

impl StatusReader {
    /// Creates a reader that waits at most `timeout` for an answer.
    pub const fn new(timeout: Duration) -> Self {
        Self { timeout, near: false, before: BTreeMap::new() }
    }

    /// Creates a reader of the nodes that are reachable without a link of limited capacity.
    pub const fn near(timeout: Duration) -> Self {
        Self { timeout, near: true, before: BTreeMap::new() }
    }

    /// Returns the current status of every node; the reader's own node is omitted unless it is in
    /// use.
    pub fn read(&mut self, node: &Node) -> StatusJson {
        let mut status = match self.near {
            true => node.status_of(&node.near(), self.timeout),
            false => node.status(self.timeout),
        };
        status.retain(|found| {
            found.id != node.id()
                || !(found.publishers.is_empty()
                    && found.subscriptions.is_empty()
                    && found.buffers.is_empty()
                    && found.links.iter().all(|link| link.streams.is_empty()))
        });
        for link in status.iter_mut().flat_map(|found| &mut found.links) {
            link.hops.retain(|hop| *hop != node.id());
            link.sent.retain(|sent| sent.node != node.id());
        }
        let mut document = StatusJson::new(&status);
        self.add_use(&mut document);
        document
    }

    /// Sets the use of links: the bytes since the last reading, divided by the elapsed time of the
    /// node's clock. The arrival times of answers are not used: an answer may have waited for
    /// another node or on a full link.
    pub fn add_use(&mut self, document: &mut StatusJson) {
        let before = std::mem::take(&mut self.before);
        for node in &mut document.nodes {
            for link in &mut node.links {
                let key = (node.id.clone(), link.name.clone());
                let reading = Reading::new(link, before.get(&key));
                link.use_bits_per_s = reading.all.bits_per_s;
                link.loss = reading.loss;
                for to in &mut link.neighbours {
                    to.use_bits_per_s = reading.each.get(&to.id).and_then(|sent| sent.bits_per_s);
                }
                self.before.insert(key, reading);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::test_status as status;
    use paceline::status::{NodeId, SentTo};

    /// Returns the use of the only link and of its two neighbours. Each reading has a time of the
    /// node's clock in milliseconds, the total bytes, and the bytes to the first neighbour.
    fn uses(readings: &[(u64, u64, u64)]) -> Vec<(Option<u64>, Vec<Option<u64>>)> {
        let mut reader = StatusReader::new(Duration::ZERO);
        let mut status = status();
        let mut read = |&(at, bytes, first): &(u64, u64, u64)| {
            let link = &mut status[0].links[0];
            link.at = Duration::from_millis(at);
            link.wire_bytes = bytes;
            let sent = |node, wire_bytes| SentTo {
                node: NodeId(node),
                wire_bytes,
                down_after: Duration::from_millis(1_800),
                memory: 0,
            };
            link.sent = vec![sent(1, first), sent(2, bytes - first)];
            let mut document = StatusJson::new(&status);
            reader.add_use(&mut document);
            let link = &document.nodes[1].links[0];
            (
                link.use_bits_per_s,
                link.neighbours.iter().map(|to| to.use_bits_per_s).collect::<Vec<_>>(),
            )
        };
        readings.iter().map(&mut read).collect()
    }

    #[test]
    fn the_use_of_a_link_is_known_from_the_second_reading_on() {
        let readings =
            [(1_000, 1_000, 0), (1_500, 126_000, 0), (2_500, 126_000, 0), (3_500, 10, 0)];
        let of_link: Vec<_> = uses(&readings).into_iter().map(|(all, _)| all).collect();
        assert_eq!(
            of_link,
            [None, Some(2_000_000), Some(0), None],
            "the last reading is after a \
             restart"
        );
    }

    #[test]
    fn the_time_of_a_rate_is_that_of_the_node_and_not_of_the_answers() {
        // The first answer was delayed, the second arrived at once: 2.75 s of link time lie between
        // them.
        assert_eq!(uses(&[(0, 0, 0), (2_750, 687_500, 0)])[1].0, Some(2_000_000));
        // The same counters again, without elapsed time.
        assert_eq!(
            uses(&[(0, 0, 0), (1_000, 250_000, 0), (1_000, 250_000, 0)])[2].0,
            Some(2_000_000)
        );
    }

    #[test]
    fn the_loss_of_a_link_is_that_since_the_last_reading() {
        let mut reader = StatusReader::new(Duration::ZERO);
        let mut status = status();
        let mut read = |at, frames, dropped| {
            let link = &mut status[0].links[0];
            (link.at, link.frames, link.frames_dropped) =
                (Duration::from_secs(at), frames, dropped);
            let mut document = StatusJson::new(&status);
            reader.add_use(&mut document);
            document.nodes[1].links[0].loss
        };
        let losses = [
            (1, 1_000, 7),
            (2, 1_100, 12),
            (2, 1_100, 12),
            (3, 1_100, 12),
            (4, 1_200, 12),
            (5, 3, 0),
        ];
        let losses = losses.map(|(at, frames, dropped)| read(at, frames, dropped));
        assert_eq!(losses, [None, Some(0.05), Some(0.05), None, Some(0.0), None]);
    }

    #[test]
    fn the_use_of_the_link_is_the_sum_over_its_neighbours() {
        let (all, each) = &uses(&[(0, 0, 0), (1_000, 250_000, 200_000)])[1];
        assert_eq!((*all, &each[..]), (Some(2_000_000), &[Some(1_600_000), Some(400_000)][..]));
    }
}
