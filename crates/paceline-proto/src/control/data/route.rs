//! Paths of streams.

use super::ids::PairKey;
use super::refusal::RefusalReason;
use super::spec::{PublisherSpec, SubscriptionSpec};
use super::split::Split;
use crate::form::{Form, Proxy};
use crate::ids::NodeId;
use crate::plan::SourceKey;
use std::sync::Arc;

/// This node's position on the path from a publisher to a subscription.
#[derive(Clone, Copy, Debug)]
pub(in crate::control) struct Place {
    /// This node.
    pub(in crate::control) me: NodeId,
    /// The number of hops before this node; 0 on the publisher's node.
    pub(in crate::control) index: usize,
    /// The division of the delay bound among the hops of the path.
    pub(in crate::control) split: Split,
    /// The previous node; `None` on the publisher's node.
    pub(in crate::control) before: Option<NodeId>,
    /// The next node; `None` on the subscription's node.
    pub(in crate::control) next: Option<NodeId>,
    /// The proxy, if it is between the ends.
    pub(in crate::control) via: Option<NodeId>,
}

impl Place {
    /// Returns the position of `me` on `path`, if the path includes it.
    pub(in crate::control) fn on(path: &[NodeId], split: Split, me: NodeId) -> Option<Self> {
        let index = path.iter().position(|&node| node == me)?;
        let before = index.checked_sub(1).and_then(|before| path.get(before)).copied();
        let next = path.get(index + 1).copied();
        let via = path.get(split.proxy()).copied().filter(|_| split.scales_between());
        Some(Self { me, index, split, before, next, via })
    }
}

/// The path of a pair that requests a proxy at a named node.
#[derive(Clone, Debug)]
pub(in crate::control) enum Detour {
    /// The nodes of the path through the proxy.
    Path(Arc<[NodeId]>),
    /// There is no such path.
    Obstacle(RefusalReason),
}

/// A path through a proxy.
#[derive(Clone, Debug)]
pub(in crate::control) struct Route {
    pub(in crate::control) path: Arc<[NodeId]>,
    /// The index of the proxy in the path.
    pub(in crate::control) proxy: usize,
}

/// A publisher's samples that a subscription requests, with this node's position on their path.
#[derive(Debug)]
pub(in crate::control) struct WantedStream<'a> {
    pub(in crate::control) key: PairKey,
    pub(in crate::control) spec: &'a Arc<PublisherSpec>,
    pub(in crate::control) request: &'a SubscriptionSpec,
    pub(in crate::control) place: Place,
    /// The requested path through a proxy between the ends; known on the publisher's node only.
    pub(in crate::control) detour: Option<Detour>,
    /// True if the publisher's node has released the reservation of this request because nothing was published.
    pub(in crate::control) is_idle: bool,
}

impl PublisherSpec {
    /// Returns the form of its samples for a subscription behind the proxy of `path`.
    pub(in crate::control) fn form_behind(
        &self,
        request: &SubscriptionSpec,
        path: &[NodeId],
        split: Split,
    ) -> Form {
        let via = path.get(split.proxy()).copied().filter(|_| split.scales_between());
        Form { via, ..self.form_of(request.form) }
    }

    /// Returns the index of the node that scales, on a path of `hops` hops with the proxy at one of the ends.
    pub(in crate::control) fn proxy_at_end(request: &SubscriptionSpec, hops: usize) -> usize {
        match request.proxy {
            Proxy::Subscriber => hops,
            Proxy::Publisher | Proxy::Node(_) | Proxy::Auto => 0,
        }
    }
}

/// A stream of a publisher's samples to a subscription, with this node's position on its path.
pub(in crate::control) trait RoutedStream {
    fn key(&self) -> PairKey;
    fn spec(&self) -> &Arc<PublisherSpec>;
    fn request(&self) -> &SubscriptionSpec;
    fn place(&self) -> &Place;
    /// Returns the requested path through a proxy between the ends; known on the publisher's node only.
    fn detour(&self) -> Option<&Detour>;
    /// Returns the requested form, limited to the publisher's samples.
    fn requested(&self) -> Form;
    /// Returns the source of the samples that arrive at this node.
    fn source(&self) -> SourceKey;
    /// Returns true if it requests a contract.
    fn wants_contract(&self) -> bool;
}
