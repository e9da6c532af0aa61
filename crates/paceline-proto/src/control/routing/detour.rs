//! Paths through a proxy between the ends of a pair.
//!
//! The path leads from the publisher's node to the proxy and from there to the subscription's node, each part on the
//! shortest path of its first node. No node is visited twice, because a reservation has one place on each node. Nodes with
//! equal registries compute equal paths.

use crate::control::data::ids::HOPS_MAX;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::RefusalReason;
use crate::control::data::route::Route;
use crate::control::membership::graph::Tree;
use crate::control::membership::registry::Registry;
use crate::form::Proxy;
use crate::ids::NodeId;
use std::collections::BTreeMap;

/// Finds paths through proxies, and remembers what they have in common.
pub(in crate::control) struct Router<'a> {
    registry: &'a Registry,
    names: BTreeMap<&'a str, Vec<NodeId>>,
    /// The shortest paths from proxies.
    trees: BTreeMap<NodeId, Tree>,
    /// The paths from a node through a proxy to another node.
    known: BTreeMap<(NodeId, NodeId, NodeId), Option<Route>>,
}

impl<'a> Router<'a> {
    pub(in crate::control) fn new(registry: &'a Registry) -> Self {
        Self { registry, names: BTreeMap::new(), trees: BTreeMap::new(), known: BTreeMap::new() }
    }

    /// Returns the path of pair `key` if its proxy is a node of its own; `None` for a proxy at one of the ends. `tree` has
    /// the shortest paths from the publisher's node.
    pub(in crate::control) fn route(
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
