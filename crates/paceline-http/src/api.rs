//! The types of the API. The dashboard's types are generated from these structs (`api/types.rs`).

use paceline::status::{
    BufferStatus, LinkStatus, NetworkHealth, NodeId, NodeStatus, PublisherStatus, StreamStatus,
    SubscriptionId, SubscriptionStatus,
};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt::Display;

mod demo;
#[cfg(test)]
mod types;

pub use demo::{Comparison, ContractState, ObserverState, WorldReading, WorldState};

/// The version of the API; it increases when a field changes its meaning or is removed.
pub(super) const SCHEMA: u32 = 1;

/// The full state, sent once per second: the document of `paceline ls --json` and additional
/// fields.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct State {
    /// Version of the answer: 1.
    pub schema: u32,
    /// Milliseconds since 1970 by this host's clock.
    pub at_ms: u64,
    /// State of all subscriptions, in one sentence.
    #[serde(default)]
    pub health: NetworkHealth,
    /// Nodes, sorted by name.
    pub nodes: Vec<NodeStatus>,
    /// Nodes that are known but not queried.
    pub known: Vec<Known>,
    /// Load switches; only in the demo.
    pub switches: Vec<Switch>,
    /// The nodes of `nodes` that are only read while a page is open. Metrics omit them: their series would begin and end with
    /// the page.
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub far: BTreeSet<NodeId>,
}

/// A node that is known by name only.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Known {
    /// Id of the node.
    pub id: String,
    /// Display name of the node.
    pub name: String,
}

/// A switch.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Switch {
    /// Name in requests.
    pub name: String,
    /// Label for display.
    pub label: String,
    /// Description in one sentence.
    pub about: String,
    /// True if the load is on.
    pub on: bool,
}

/// The body of `POST /api/v1/switches/NAME`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(Serialize, ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub(super) struct Turn {
    pub(super) on: bool,
}

/// The body of `POST /api/v1/world`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(test, derive(Serialize, ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub(super) struct WorldChange {
    /// The capacity of the thin link, such as `256kbit`.
    pub(super) capacity: String,
}

/// The body of `POST /api/v1/subscriptions/ID`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Options of `paceline set`, such as `--max-hz 5 --size 160x120`.
    pub(super) set: String,
    /// Only asks whether the changed request would be granted in place of the present one; changes nothing.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// The nodes alone, as `paceline ls --json` prints them.
#[derive(Debug, Serialize)]
pub(super) struct Nodes<'a> {
    schema: u32,
    nodes: &'a [NodeStatus],
}

/// Rows of one kind, from all nodes.
#[derive(Debug, Serialize)]
pub(super) struct Rows<T> {
    schema: u32,
    rows: Vec<T>,
}

/// A row with its node.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a, T> {
    #[serde(serialize_with = "as_text")]
    node: NodeId,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<&'a str>,
    #[serde(flatten)]
    row: &'a T,
}

/// The refusal of a publisher for a subscription.
#[derive(Debug, Serialize)]
pub(super) struct Refused<'a> {
    #[serde(serialize_with = "as_text")]
    node: NodeId,
    #[serde(serialize_with = "as_text")]
    subscription: SubscriptionId,
    pattern: &'a str,
    refusal: &'a str,
}

fn as_text<S: Serializer>(id: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(id)
}

impl State {
    /// Returns the nodes alone.
    pub(super) fn nodes(&self) -> Nodes<'_> {
        Nodes { schema: SCHEMA, nodes: &self.nodes }
    }

    /// Returns the node with this id or name.
    pub(super) fn node(&self, named: &str) -> Option<&NodeStatus> {
        self.nodes.iter().find(|node| node.name == named || node.id.to_string() == named)
    }

    fn rows<'a, T>(&'a self, of: impl Fn(&'a NodeStatus) -> &'a [T]) -> Rows<Row<'a, T>> {
        let rows = self
            .nodes
            .iter()
            .flat_map(|node| of(node).iter().map(|row| Row { node: node.id, link: None, row }));
        Rows { schema: SCHEMA, rows: rows.collect() }
    }

    pub(super) fn publishers(&self) -> Rows<Row<'_, PublisherStatus>> {
        self.rows(|node| &node.publishers)
    }

    pub(super) fn subscriptions(&self) -> Rows<Row<'_, SubscriptionStatus>> {
        self.rows(|node| &node.subscriptions)
    }

    pub(super) fn buffers(&self) -> Rows<Row<'_, BufferStatus>> {
        self.rows(|node| &node.buffers)
    }

    pub(super) fn links(&self) -> Rows<Row<'_, LinkStatus>> {
        self.rows(|node| &node.links)
    }

    pub(super) fn streams(&self) -> Rows<Row<'_, StreamStatus>> {
        let links =
            self.nodes.iter().flat_map(|node| node.links.iter().map(move |link| (node, link)));
        let rows = links.flat_map(|(node, link)| {
            let row = move |row| Row { node: node.id, link: Some(link.name.as_str()), row };
            link.streams.iter().map(row)
        });
        Rows { schema: SCHEMA, rows: rows.collect() }
    }

    pub(super) fn refusals(&self) -> Rows<Refused<'_>> {
        let rows = self.nodes.iter().flat_map(|node| {
            node.subscriptions.iter().flat_map(move |subscription| {
                subscription.refusals.iter().map(move |refusal| Refused {
                    node: node.id,
                    subscription: subscription.id,
                    pattern: &subscription.pattern,
                    refusal,
                })
            })
        });
        Rows { schema: SCHEMA, rows: rows.collect() }
    }
}
