//! Asking the nodes.

use super::document::{Document, bits_per_s};
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

/// Reads again and again, and knows the use of links by the reading before.
pub(crate) struct Reader {
    timeout: Duration,
    near: bool,
    before: BTreeMap<(String, String), (Instant, u64)>,
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
        }
        let mut document = Document::new(&status);
        self.add_use(&mut document, Instant::now());
        document
    }

    /// Fills in the use of links from the bytes since the last reading.
    pub(crate) fn add_use(&mut self, document: &mut Document, now: Instant) {
        for node in &mut document.nodes {
            for link in &mut node.links {
                let key = (node.id.clone(), link.name.clone());
                let before = self.before.insert(key, (now, link.wire_bytes));
                link.use_bits_per_s = before.and_then(|(then, bytes)| {
                    let more = link.wire_bytes.checked_sub(bytes)?;
                    Some(bits_per_s(more, (now - then).as_secs_f64()))
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ls::document::tests::status;

    #[test]
    fn the_use_of_a_link_is_known_from_the_second_reading_on() {
        let mut reader = Reader::new(Duration::ZERO);
        let start = Instant::now();
        let mut status = status();
        let mut read = |bytes: u64, after: u64| {
            status[0].links[0].wire_bytes = bytes;
            let mut document = Document::new(&status);
            reader.add_use(&mut document, start + Duration::from_millis(after));
            document.nodes[1].links[0].use_bits_per_s
        };
        assert_eq!(read(1_000, 0), None);
        assert_eq!(read(126_000, 500), Some(2_000_000));
        assert_eq!(read(126_000, 1_500), Some(0));
        assert_eq!(read(10, 2_500), None, "the node has started again");
    }
}
