//! The stream counters of nodes, including those of closed streams.

use crate::support::SOON;
use paceline::Node;
use paceline::contract::Form;
use paceline::status::{LinkCounters, NodeId, PublisherId};
use std::collections::BTreeMap;

/// The sending node, the next hop, the publisher, the form, and whether the stream has a contract.
type Key = (NodeId, NodeId, PublisherId, Form, bool);

/// The counters of the streams under one key.
#[derive(Default)]
struct Seen {
    /// The number of streams at the last look.
    open: usize,
    last: LinkCounters,
    /// The sum of the earlier streams, which were closed.
    closed: LinkCounters,
}

/// The collected stream counters. A node forgets a closed stream, so changes after the last look
/// are missing.
#[derive(Default)]
pub(crate) struct Counts(BTreeMap<Key, Seen>);

impl Counts {
    /// Reads the current streams of a node.
    pub(crate) fn look(&mut self, node: &Node) {
        let me = node.id();
        let mine = node.status(SOON).into_iter().find(|status| status.id == me).unwrap();
        let mut now = BTreeMap::<Key, (usize, LinkCounters)>::new();
        for stream in mine.links.iter().flat_map(|link| &link.streams) {
            let key = (me, stream.hop, stream.publisher, stream.form, stream.contracted);
            let (open, sum) = now.entry(key).or_default();
            *open += 1;
            sum.merge(&stream.counters);
        }
        self.0.iter_mut().filter(|(key, _)| key.0 == me).for_each(|(_, seen)| seen.open = 0);
        for (key, (open, counters)) in now {
            let seen = self.0.entry(key).or_default();
            seen.open = open;
            let before = std::mem::replace(&mut seen.last, counters);
            if counters.offered < before.offered {
                seen.closed.merge(&before);
            }
        }
    }

    /// Returns the sum of the counters of a publisher's streams from one node to the next.
    pub(crate) fn sum(&self, from: NodeId, hop: NodeId, publisher: PublisherId) -> LinkCounters {
        let mut sum = LinkCounters::default();
        for seen in self.between(from, hop, publisher) {
            sum.merge(&seen.closed);
            sum.merge(&seen.last);
        }
        sum
    }

    /// Returns the number of a publisher's streams from one node to the next at the last look.
    pub(crate) fn open(&self, from: NodeId, hop: NodeId, publisher: PublisherId) -> usize {
        self.between(from, hop, publisher).map(|seen| seen.open).sum()
    }

    fn between(
        &self,
        from: NodeId,
        hop: NodeId,
        publisher: PublisherId,
    ) -> impl Iterator<Item = &Seen> {
        let wanted = (from, hop, publisher);
        let fits = move |key: &Key| (key.0, key.1, key.2) == wanted;
        self.0.iter().filter(move |(key, _)| fits(key)).map(|(_, seen)| seen)
    }
}
