//! The paths of samples: the reserved ones, and the ones that routing finds.

use super::Control;
use super::data::ids::PairKey;
use super::data::refusal::RefusalReason;
use super::data::route::Route;
use super::data::spec::{PublisherSpec, SubscriptionSpec};
use super::routing::detour::Router;
use super::routing::spare::PathFinder;
use crate::control::data::spec::HopInfo;
use crate::control::membership::graph::Tree;
use crate::form::{Form, Proxy};
use crate::ids::{NodeId, PublisherId, SubscriptionId};

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

impl Control {
    /// Returns the hops between two nodes in path order: start node, end node and link of each.
    ///
    /// The path from a node to itself is empty. Returns `None` if no path is known.
    #[must_use]
    pub fn path(&self, from: NodeId, to: NodeId) -> Option<Vec<(NodeId, NodeId, &HopInfo)>> {
        let path = Tree::new(&self.membership.registry, from).path(to)?;
        let pairs = path.iter().zip(path.iter().skip(1));
        let hop = |(&one, &other): (&NodeId, &NodeId)| {
            Some((one, other, self.membership.registry.record(one)?.neighbours.get(&other)?))
        };
        pairs.map(hop).collect()
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
        if let Some(booking) = self.contracts.admission.carrying_of(&self.membership.registry, key)
        {
            let asked = spec.form_of(booking.request.form);
            return path_of(&booking.path, booking.split.proxy(), asked);
        }
        self.way(key, spec, request)
    }

    /// Returns a finder of second paths from the root of `tree`.
    pub(super) fn second_paths<'r>(&'r self, tree: &'r Tree) -> PathFinder<'r> {
        PathFinder { registry: &self.membership.registry, tree, known: &self.routing.second_paths }
    }

    /// Returns the path of a pair through the proxy, or the reason why there is none; `None` for a proxy at one of the ends.
    pub(super) fn route(
        &self,
        key: PairKey,
        proxy: &Proxy,
    ) -> Option<Result<Route, RefusalReason>> {
        let tree = Tree::new(&self.membership.registry, key.1.node);
        Router::new(&self.membership.registry).route(&tree, key, proxy)
    }

    /// Returns the path of a request as the registry has it.
    pub(in crate::control) fn way(
        &self,
        key: PairKey,
        spec: &PublisherSpec,
        request: &SubscriptionSpec,
    ) -> Option<StreamPath> {
        let tree = Tree::new(&self.membership.registry, key.1.node);
        let route = Router::new(&self.membership.registry).route(&tree, key, &request.proxy);
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
