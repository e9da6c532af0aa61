//! The source of the server's figures and pictures.

use super::api::{Change, Known, SCHEMA, State};
use super::far::Far;
use super::pictures::{Pictures, Shown};
use super::values::Watching;
use super::watched::NoPicture;
use crate::change::{change_one, try_one};
use crate::status::StatusDocument;
use bytes::Bytes;
use hyper::StatusCode;
use paceline::Node;
use paceline::status::{NetworkHealth, NodeId, NodeStatus};
use paceline_tool::host::unix_micros;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The longest wait for a neighbour's status.
const PATIENCE: Duration = Duration::from_millis(300);

/// The longest wait for the path's answer to a change.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_millis(2_500);

/// The data of a server. Its functions may block for a second or two.
pub trait Source: Send + Sync + 'static {
    /// Returns the current state; called once per second. `viewed` is true while a page is open.
    fn state(&self, viewed: bool) -> State;

    /// Returns the newest picture of a subscription, or `None` if its sequence number is `after`.
    ///
    /// # Errors
    /// Returns [`NoPicture`] if there is no such subscription, or its samples cannot be displayed.
    fn picture(&self, subscription: &str, after: Option<u64>) -> Result<Option<Shown>, NoPicture>;

    /// Records the request of a client that was refused for lack of a token.
    fn note_refused(&self, from: &str, path: &str, why: &str);

    /// Changes a subscription to the given options, or tries it. Returns the answer as JSON.
    ///
    /// # Errors
    /// Returns the status and the reason.
    fn change(&self, subscription: &str, change: &Change) -> Result<Bytes, (StatusCode, String)>;

    /// Returns the newest value of each tag of a subscription as JSON.
    ///
    /// # Errors
    /// Returns the status and the reason.
    fn values(&self, subscription: &str) -> Result<Bytes, (StatusCode, String)>;

    /// Returns the same traffic in another discipline as JSON; only in the demo.
    fn comparison(&self) -> Option<Bytes>;

    /// Sets a switch; returns false if it does not exist.
    fn turn(&self, switch: &str, on: bool) -> bool;

    /// Returns the node that browsers connect to; `None` if they cannot.
    fn node(&self) -> Option<Node> {
        None
    }

    /// Returns the world of `paceline demo world` as JSON; `None` if there is none.
    fn world(&self) -> Option<Bytes> {
        None
    }

    /// Sets the capacity of the world's thin link.
    ///
    /// # Errors
    /// Returns the reason, also if there is no world.
    fn set_world(&self, _capacity: &str) -> Result<(), String> {
        Err("there is no world: start `paceline demo world`".to_owned())
    }
}

/// The other nodes whose state a server includes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Neighbours {
    /// None, because each of them has its own server.
    No,
    /// The nodes that are reachable without a link of limited capacity, and while a page is open also those behind such links.
    /// Their answers use at most 2 % of the smallest capacity.
    All,
}

/// One node in this process.
pub struct OwnSource {
    node: Node,
    neighbours: Neighbours,
    pictures: Mutex<Pictures>,
    values: Mutex<Watching>,
    far: Far,
}

impl OwnSource {
    /// Creates a source for `node`.
    pub fn new(node: &Node, neighbours: Neighbours) -> Self {
        Self {
            node: node.clone(),
            neighbours,
            pictures: Mutex::default(),
            values: Mutex::default(),
            far: Far::default(),
        }
    }

    /// Returns the status of the nodes that cost no capacity, and of all while a page is open.
    fn status(&self, viewed: bool) -> (Vec<NodeStatus>, BTreeSet<NodeId>) {
        // Any process may be its host's node, so the other processes of the host may be two hops
        // away.
        let ask = match self.neighbours {
            Neighbours::No => vec![self.node.id()],
            Neighbours::All => self.node.near(),
        };
        let mut status = self.node.status_of(&ask, PATIENCE);
        if !viewed || self.neighbours == Neighbours::No {
            self.far.forget();
            return (status, BTreeSet::new());
        }
        let others = self.node.nodes().into_iter().map(|(id, _)| id);
        let others = others.filter(|id| !ask.contains(id) && *id != self.node.id());
        let far = self.far.read(&self.node, others.collect());
        let ids = far.iter().map(|node| node.id).collect();
        status.extend(far);
        (status, ids)
    }
}

impl OwnSource {
    /// Removes the subscriptions that exist only for this page.
    fn hide_observers(&self, nodes: &mut [NodeStatus]) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.forget_unwatched();
        let mut observers = values.observers();
        observers.extend(self.pictures.lock().unwrap_or_else(PoisonError::into_inner).observers());
        for node in nodes.iter_mut().filter(|_| !observers.is_empty()) {
            node.subscriptions.retain(|it| !observers.contains(&it.id.to_string()));
        }
    }
}

/// Returns the milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    unix_micros() / 1_000
}

fn json(value: &impl serde::Serialize) -> Result<Bytes, (StatusCode, String)> {
    let text = serde_json::to_vec(value);
    let text = text.map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(text.into())
}

impl Source for OwnSource {
    fn node(&self) -> Option<Node> {
        Some(self.node.clone())
    }

    fn note_refused(&self, from: &str, path: &str, why: &str) {
        self.node.audit("http refused", &[("from", from), ("path", path), ("why", why)]);
    }

    fn state(&self, viewed: bool) -> State {
        self.pictures.lock().unwrap_or_else(PoisonError::into_inner).forget_unwatched();
        let (status, far) = self.status(viewed);
        let asked: BTreeSet<NodeId> = status.iter().map(|node| node.id).collect();
        let mut document = StatusDocument::new(status);
        self.hide_observers(&mut document.nodes);
        let known = match self.neighbours {
            Neighbours::No => Vec::new(),
            Neighbours::All => self.node.nodes(),
        };
        let known = known.into_iter().filter(|(id, _)| !asked.contains(id));
        let known = known.map(|(id, name)| Known { id: id.to_string(), name });
        State {
            schema: SCHEMA,
            at_ms: now_ms(),
            health: NetworkHealth::of(&document.nodes),
            nodes: document.nodes,
            known: known.collect(),
            switches: Vec::new(),
            far,
        }
    }

    fn picture(&self, subscription: &str, after: Option<u64>) -> Result<Option<Shown>, NoPicture> {
        let mut pictures = self.pictures.lock().unwrap_or_else(PoisonError::into_inner);
        pictures.newest(&self.node, subscription, after)
    }

    fn change(&self, subscription: &str, change: &Change) -> Result<Bytes, (StatusCode, String)> {
        let line = match change.dry_run {
            true => try_one(&self.node, subscription, &change.set),
            false => change_one(&self.node, subscription, &change.set, ANSWERS_WITHIN),
        };
        json(&line.map_err(|error| (StatusCode::BAD_REQUEST, format!("{error:#}")))?)
    }

    fn values(&self, subscription: &str) -> Result<Bytes, (StatusCode, String)> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let found = values.newest(&self.node, subscription).map_err(|why| match why {
            NoPicture::Unknown => (
                StatusCode::NOT_FOUND,
                "there is no such subscription here: /api/v1/subscriptions lists them".to_owned(),
            ),
            NoPicture::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "values of 16 subscriptions are already shown: close some".to_owned(),
            ),
            NoPicture::NotShown(why) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, why),
            NoPicture::NoAnswer(why) => (StatusCode::BAD_GATEWAY, why),
        })?;
        json(&found)
    }

    fn comparison(&self) -> Option<Bytes> {
        None
    }

    fn turn(&self, _switch: &str, _on: bool) -> bool {
        false
    }
}
