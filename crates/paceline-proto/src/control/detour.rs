//! Paths through a proxy between the ends of a pair.
//!
//! The path leads from the publisher's node to the proxy and from there to the subscription's node, each part on the
//! shortest path of its first node. No node is visited twice, because a reservation has one place on each node. Nodes with
//! equal registries compute equal paths.

use super::Control;
use super::graph::{HOPS_MAX, Tree};
use super::refusal::RefusalReason;
use super::registry::{PairKey, Registry};
use super::spec::{PublisherSpec, SubscriptionSpec};
use super::split::Split;
use crate::form::{Form, Proxy};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The path of a publisher's samples to a subscription.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamPath {
    /// The nodes from the publisher's to the subscription's.
    pub nodes: Vec<NodeId>,
    /// The node that scales the samples, or would scale them.
    pub proxy: NodeId,
    /// The form of the samples on the first hop, if no other stream carries them.
    pub first: Form,
    /// Their form on the last hop.
    pub last: Form,
}

/// The path of a pair through its proxy.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) path: Arc<[NodeId]>,
    /// The index of the proxy in the path.
    pub(super) proxy: usize,
}

/// Finds paths through proxies, and remembers what they have in common.
pub(super) struct Router<'a> {
    registry: &'a Registry,
    names: BTreeMap<&'a str, Vec<NodeId>>,
    /// The shortest paths from proxies.
    trees: BTreeMap<NodeId, Tree>,
    /// The paths from a node through a proxy to another node.
    known: BTreeMap<(NodeId, NodeId, NodeId), Option<Route>>,
}

impl<'a> Router<'a> {
    pub(super) fn new(registry: &'a Registry) -> Self {
        Self { registry, names: BTreeMap::new(), trees: BTreeMap::new(), known: BTreeMap::new() }
    }

    /// Returns the path of pair `key` if its proxy is a node of its own; `None` for a proxy at one of the ends. `tree` has
    /// the shortest paths from the publisher's node.
    pub(super) fn route(
        &mut self,
        tree: &Tree,
        key: PairKey,
        proxy: &Proxy,
    ) -> Option<Result<Route, RefusalReason>> {
        let (from, to) = (key.1.node, key.0.node);
        if from == to {
            return None;
        }
        match proxy {
            Proxy::Publisher | Proxy::Subscriber => None,
            Proxy::Auto => {
                let chosen = self.registry.place_of(key)?;
                let route = tree.reaches(chosen).then(|| self.through(tree, (from, chosen, to)));
                route.flatten().map(Ok)
            }
            Proxy::Node(name) => Some(self.named(tree, (from, to), name)),
        }
    }

    fn named(
        &mut self,
        tree: &Tree,
        (from, to): (NodeId, NodeId),
        name: &str,
    ) -> Result<Route, RefusalReason> {
        if self.names.is_empty() {
            for (node, record) in self.registry.all() {
                self.names.entry(record.name.as_str()).or_default().push(node);
            }
        }
        let named = self.names.get(name).into_iter().flatten().copied();
        let named: Vec<NodeId> = named.filter(|node| tree.reaches(*node)).collect();
        let routes = named.iter().filter_map(|node| self.through(tree, (from, *node, to)));
        let shortest = routes.min_by_key(|route| route.path.len());
        shortest.ok_or(RefusalReason::NoProxy { apart: !named.is_empty() })
    }

    /// Returns the path from a node through a second one to a third one.
    fn through(&mut self, tree: &Tree, nodes: (NodeId, NodeId, NodeId)) -> Option<Route> {
        if let Some(known) = self.known.get(&nodes) {
            return known.clone();
        }
        let (_, proxy, to) = nodes;
        let registry = self.registry;
        let behind = self.trees.entry(proxy).or_insert_with(|| Tree::new(registry, proxy));
        let found = tree.path(proxy).zip(behind.path(to)).and_then(|(mut path, rest)| {
            let at = path.len() - 1;
            let fresh = rest.iter().skip(1);
            let twice = fresh.clone().any(|node| path.contains(node));
            path.extend(fresh);
            let fits = !twice && path.len() <= HOPS_MAX + 1;
            fits.then(|| Route { path: path.into(), proxy: at })
        });
        self.known.insert(nodes, found.clone());
        found
    }
}

impl PublisherSpec {
    /// Returns the form of its samples for a subscription behind the proxy of `path`.
    pub(super) fn form_behind(
        &self,
        request: &SubscriptionSpec,
        path: &[NodeId],
        split: Split,
    ) -> Form {
        let via = path.get(split.proxy()).copied().filter(|_| split.scales_between());
        Form { via, ..self.form_of(request.form) }
    }

    /// Returns the index of the node that scales, on a path of `hops` hops with the proxy at one of the ends.
    pub(super) fn proxy_at_end(request: &SubscriptionSpec, hops: usize) -> usize {
        match request.proxy {
            Proxy::Subscriber => hops,
            Proxy::Publisher | Proxy::Node(_) | Proxy::Auto => 0,
        }
    }
}

impl Control {
    /// Returns the path of a publisher's samples to a subscription of any known node, and the node that scales them.
    /// Returns `None` if one of them is unknown, or no path leads through the requested proxy.
    #[must_use]
    pub fn stream_path(
        &self,
        publisher: PublisherId,
        subscription: SubscriptionId,
    ) -> Option<StreamPath> {
        let spec = self.publisher(publisher)?;
        let request = self.subscription(subscription)?;
        let key = (subscription, publisher);
        if let Some(booking) = self.admission.carrying_of(&self.registry, key) {
            let asked = spec.form_of(booking.request.form);
            return path_of(&booking.path, booking.split.proxy(), asked);
        }
        self.way(key, spec, request)
    }

    /// Returns the path of a request as the registry has it.
    pub(super) fn way(
        &self,
        key: PairKey,
        spec: &PublisherSpec,
        request: &SubscriptionSpec,
    ) -> Option<StreamPath> {
        let tree = Tree::new(&self.registry, key.1.node);
        let route = Router::new(&self.registry).route(&tree, key, &request.proxy);
        let asked = spec.form_of(request.form);
        match route {
            Some(route) => route.ok().and_then(|it| path_of(&it.path, it.proxy, asked)),
            None => {
                let path = tree.path(key.0.node)?;
                let proxy = PublisherSpec::proxy_at_end(request, path.len() - 1);
                path_of(&path, proxy, asked)
            }
        }
    }
}

fn path_of(path: &[NodeId], proxy: usize, asked: Form) -> Option<StreamPath> {
    let last = path.len().saturating_sub(2);
    let node = *path.get(proxy)?;
    let via = Some(node).filter(|_| proxy > 0 && proxy + 1 < path.len());
    let form = |hop| if hop >= proxy { Form { via, ..asked } } else { Form::FULL };
    let (first, last) = (form(0), form(last));
    Some(StreamPath { nodes: path.to_vec(), proxy: node, first, last })
}
