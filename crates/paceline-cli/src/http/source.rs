//! Where the figures and pictures come from.

use super::api::{Known, SCHEMA, State};
use super::pictures::{NoPicture, Pictures, Shown};
use crate::ls::{Document, Reader};
use crate::publish::unix_micros;
use paceline::{Node, NodeId, NodeStatus, Pattern};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a neighbour may take to say how it is.
const PATIENCE: Duration = Duration::from_millis(300);

/// What is served. Its functions may wait, for a second or two.
pub(crate) trait Source: Send + Sync + 'static {
    /// How everything is now; asked once a second.
    fn state(&self) -> State;

    /// The newest picture of a subscription, if it is not the one with the number `after`.
    ///
    /// # Errors
    /// [`NoPicture`]: there is no such subscription, or what it gets can't be shown.
    fn picture(&self, subscription: &str, after: Option<u64>) -> Result<Option<Shown>, NoPicture>;

    /// Turns a switch on or off; false if there is no such one.
    fn turn(&self, switch: &str, on: bool) -> bool;
}

/// Of whom a node's server tells beside itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Neighbours {
    /// Of nobody: each of them has a server of its own.
    No,
    /// Of the nodes that are reached without a link that has a capacity: what a thin link carries is not for
    /// looking.
    Free,
}

/// One node, in this process.
pub(crate) struct OwnSource {
    node: Node,
    neighbours: Neighbours,
    reader: Mutex<Reader>,
    pictures: Mutex<Pictures>,
}

impl OwnSource {
    /// Of `node`.
    pub(crate) fn new(node: &Node, neighbours: Neighbours) -> Self {
        Self {
            node: node.clone(),
            neighbours,
            reader: Mutex::new(Reader::new(PATIENCE)),
            pictures: Mutex::default(),
        }
    }

    fn status(&self) -> Vec<NodeStatus> {
        // Which process of a host holds its place is chance: others may be two hops away.
        let ask = match self.neighbours {
            Neighbours::No => vec![self.node.id()],
            Neighbours::Free => self.node.near(),
        };
        self.node.status_of(&ask, PATIENCE)
    }
}

impl OwnSource {
    /// Names the streams and reservations of publishers whose nodes were not asked: every node knows all tags.
    fn name_streams(&self, nodes: &mut [crate::ls::Node]) {
        let Ok(all) = Pattern::new("**") else { return };
        let sources = self.node.sources(&all).into_iter();
        let tags: BTreeMap<String, String> =
            sources.map(|it| (it.publisher.to_string(), it.tag.to_string())).collect();
        for node in nodes {
            for stream in node.links.iter_mut().flat_map(|link| &mut link.streams) {
                stream.tag = stream.tag.take().or_else(|| tags.get(&stream.publisher).cloned());
            }
            for grant in &mut node.reservations {
                grant.tag = grant.tag.take().or_else(|| tags.get(&grant.publisher).cloned());
            }
        }
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    unix_micros() / 1_000
}

impl Source for OwnSource {
    fn state(&self) -> State {
        self.pictures.lock().unwrap_or_else(PoisonError::into_inner).forget_unwatched();
        let status = self.status();
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut document = Document::new(&status);
        reader.add_use(&mut document);
        self.name_streams(&mut document.nodes);
        let asked: BTreeSet<NodeId> = status.iter().map(|node| node.id).collect();
        let known = match self.neighbours {
            Neighbours::No => Vec::new(),
            Neighbours::Free => self.node.nodes(),
        };
        let known = known.into_iter().filter(|(id, _)| !asked.contains(id));
        let known = known.map(|(id, name)| Known { id: id.to_string(), name });
        State {
            schema: SCHEMA,
            at_ms: now_ms(),
            nodes: document.nodes,
            known: known.collect(),
            switches: Vec::new(),
        }
    }

    fn picture(&self, subscription: &str, after: Option<u64>) -> Result<Option<Shown>, NoPicture> {
        let mut pictures = self.pictures.lock().unwrap_or_else(PoisonError::into_inner);
        pictures.newest(&self.node, subscription, after)
    }

    fn turn(&self, _switch: &str, _on: bool) -> bool {
        false
    }
}
