//! The nodes that this one knows, as their records describe them.

use super::graph::Tree;
use crate::control::Control;
use crate::control::data::refusal::Refusal;
use crate::control::data::spec::{HopInfo, PublisherSpec, SubscriptionSpec};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::plan::StreamNames;
use crate::tag::Tag;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The registry's record of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'a> {
    /// The node.
    pub id: NodeId,
    /// Its name. Names are labels only and need not be unique.
    pub name: &'a str,
    /// The record's version: the number of its changes.
    pub version: u64,
    /// Its publishers.
    pub publishers: &'a BTreeMap<PublisherId, Arc<PublisherSpec>>,
    /// Its subscriptions.
    pub subscriptions: &'a BTreeMap<SubscriptionId, SubscriptionSpec>,
    /// Its neighbours, and its hop to each.
    pub neighbours: &'a BTreeMap<NodeId, HopInfo>,
    /// The refusals that it originated.
    pub refusals: &'a BTreeMap<(SubscriptionId, PublisherId), Refusal>,
}

impl Control {
    /// Returns the reachable nodes including this one, ordered by id.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> + '_ {
        let tree = Tree::new(&self.membership.registry, self.me);
        self.membership.registry.all().filter(move |&(node, _)| tree.reaches(node)).map(
            |(id, record)| NodeView {
                id,
                name: &record.name,
                version: record.version,
                publishers: &record.publishers,
                subscriptions: &record.subscriptions,
                neighbours: &record.neighbours,
                refusals: &record.refusals,
            },
        )
    }

    /// Returns a node's name, if the node is known.
    #[must_use]
    pub fn name(&self, node: NodeId) -> Option<&str> {
        self.membership.registry.record(node).map(|record| record.name.as_str())
    }

    /// Returns the names that select a stream's class: its publisher, its next hop and its tag.
    #[must_use]
    pub fn stream_names(&self, publisher: NodeId, hop: NodeId, tag: &Tag) -> StreamNames {
        let name = |node| self.name(node).unwrap_or_default().to_owned();
        StreamNames { peer: name(hop), node: name(publisher), tag: Some(tag.clone()) }
    }
}
