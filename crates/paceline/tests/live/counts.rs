//! What became of the samples of streams, those that were closed included.

use crate::support::SOON;
use paceline::{Form, Node, NodeId, PublisherId, StreamCounters};
use std::collections::BTreeMap;

/// Whose stream it is: the node that sends it, the next hop, the publisher, the form, and whether it
/// has a contract.
type Key = (NodeId, NodeId, PublisherId, Form, bool);

/// The counts of the streams under one key.
#[derive(Default)]
struct Seen {
    /// How many there were when they were last seen.
    open: usize,
    last: StreamCounters,
    /// Of those before, that were closed.
    closed: StreamCounters,
}

/// What nodes said of their streams. A node forgets a stream when it is closed, so what happened
/// since the last look is missing.
#[derive(Default)]
pub(crate) struct Counts(BTreeMap<Key, Seen>);

impl Counts {
    /// Asks a node for its streams as they are now.
    pub(crate) fn look(&mut self, node: &Node) {
        let me = node.id();
        let mine = node.status(SOON).into_iter().find(|status| status.id == me).unwrap();
        let mut now = BTreeMap::<Key, (usize, StreamCounters)>::new();
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

    /// All counts of a publisher's streams from one node to the next.
    pub(crate) fn sum(&self, from: NodeId, hop: NodeId, publisher: PublisherId) -> StreamCounters {
        let mut sum = StreamCounters::default();
        for seen in self.between(from, hop, publisher) {
            sum.merge(&seen.closed);
            sum.merge(&seen.last);
        }
        sum
    }

    /// How many streams of a publisher there were from one node to the next at the last look.
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
