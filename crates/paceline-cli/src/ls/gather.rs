//! Asking the nodes.

use super::document::{Document, Link, bits_per_s};
use crate::stop::Stop;
use paceline::Node;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A node that has just started hears of its neighbours one by one.
const QUIET: Duration = Duration::from_millis(300);
const STEP: Duration = Duration::from_millis(25);

/// Waits until the nodes that can be reached are known: none came for a while, or the time is over.
pub(crate) fn settle(node: &Node, timeout: Duration, stop: &Stop) {
    let until = Instant::now() + timeout;
    let (mut known, mut since) = (0, Instant::now());
    while Instant::now() < until && !stop.requested() {
        let now_known = node.nodes().iter().filter(|(id, _)| *id != node.id()).count();
        if now_known != known {
            (known, since) = (now_known, Instant::now());
        }
        if known > 0 && since.elapsed() >= QUIET {
            return;
        }
        std::thread::sleep(STEP);
    }
}

/// Reads again and again, and derives the use of links from the reading before.
pub(crate) struct Reader {
    timeout: Duration,
    near: bool,
    before: BTreeMap<(String, String), Reading>,
}

/// The counts of a link at one reading, and the use that followed from them.
#[derive(Clone)]
struct Reading {
    at_us: u64,
    all: Sent,
    each: BTreeMap<String, Sent>,
}

/// Bytes sent so far, and per second since the reading before.
#[derive(Clone, Copy)]
struct Sent {
    bytes: u64,
    bits_per_s: Option<u64>,
}

impl Sent {
    /// The same with its rate since `before`, `us` microseconds earlier. A link reads its counts four times a second: if
    /// it has not since, they have the rate that they had.
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
    fn new(link: &Link, before: Option<&Self>) -> Self {
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
        }
    }
}

impl Reader {
    /// A reader that waits at most `timeout` for an answer.
    pub(crate) const fn new(timeout: Duration) -> Self {
        Self { timeout, near: false, before: BTreeMap::new() }
    }

    /// The same of the nodes that no link with a capacity lies between.
    pub(crate) const fn near(timeout: Duration) -> Self {
        Self { timeout, near: true, before: BTreeMap::new() }
    }

    /// What every node but the reader's own says now.
    pub(crate) fn read(&mut self, node: &Node) -> Document {
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
        let mut document = Document::new(&status);
        self.add_use(&mut document);
        document
    }

    /// Fills in the use of links: the bytes since the last reading, by the time between by the clock of their node. When
    /// answers arrive says nothing: one may have waited for a node that did not answer, or on a link that is full.
    pub(crate) fn add_use(&mut self, document: &mut Document) {
        let before = std::mem::take(&mut self.before);
        for node in &mut document.nodes {
            for link in &mut node.links {
                let key = (node.id.clone(), link.name.clone());
                let reading = Reading::new(link, before.get(&key));
                link.use_bits_per_s = reading.all.bits_per_s;
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
    use crate::ls::document::tests::status;
    use paceline::{NodeId, SentTo};

    /// The use of the one link, and of its two neighbours, at readings of so many bytes in all and to the first of them,
    /// at these milliseconds of the node's clock.
    fn uses(readings: &[(u64, u64, u64)]) -> Vec<(Option<u64>, Vec<Option<u64>>)> {
        let mut reader = Reader::new(Duration::ZERO);
        let mut status = status();
        let mut read = |&(at, bytes, first): &(u64, u64, u64)| {
            let link = &mut status[0].links[0];
            link.at = Duration::from_millis(at);
            link.wire_bytes = bytes;
            let sent = |node, wire_bytes| SentTo { node: NodeId(node), wire_bytes };
            link.sent = vec![sent(1, first), sent(2, bytes - first)];
            let mut document = Document::new(&status);
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
        assert_eq!(of_link, [None, Some(2_000_000), Some(0), None], "at last it has started again");
    }

    #[test]
    fn the_time_of_a_rate_is_that_of_the_node_and_not_of_the_answers() {
        // The first answer was waited for, the second came at once: 2.75 s of a link lie between them.
        assert_eq!(uses(&[(0, 0, 0), (2_750, 687_500, 0)])[1].0, Some(2_000_000));
        // The same counts, read again: no time passed for them.
        assert_eq!(
            uses(&[(0, 0, 0), (1_000, 250_000, 0), (1_000, 250_000, 0)])[2].0,
            Some(2_000_000)
        );
    }

    #[test]
    fn what_goes_to_each_neighbour_makes_up_the_use_of_the_link() {
        let (all, each) = &uses(&[(0, 0, 0), (1_000, 250_000, 200_000)])[1];
        assert_eq!((*all, &each[..]), (Some(2_000_000), &[Some(1_600_000), Some(400_000)][..]));
    }
}
