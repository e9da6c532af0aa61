//! Routing: the pairs on whose path this node is, and the streams that result.

use super::booking::{Booking, is_promised};
use super::contract::{Ask, demand, promise};
use super::graph::Tree;
use super::registry::{PairKey, Registry};
use super::spec::{OutputPlan, PublisherSpec, SourceKey, SubscriptionSpec, Target};
use super::split::Split;
use crate::form::{Form, Proxy};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::retransmit::Retransmit;
use paceline_sched::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// This node's position on the path from a publisher to a subscription.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The number of hops before this node; 0 on the publisher's node.
    index: usize,
    /// The division of the delay bound among the hops of the path.
    split: Split,
    /// The next node; `None` on the subscription's node.
    next: Option<NodeId>,
}

/// A publisher and a matching subscription whose path includes this node.
#[derive(Clone, Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) publisher: PublisherId,
    pub(crate) subscription: SubscriptionId,
    pub(crate) spec: &'a Arc<PublisherSpec>,
    pub(crate) request: &'a SubscriptionSpec,
    /// The requested form, limited to this publisher's samples.
    pub(crate) asked: Form,
    place: Place,
}

impl Pair<'_> {
    pub(crate) fn key(&self) -> PairKey {
        (self.subscription, self.publisher)
    }

    /// Returns the source of the stream: scaled samples if the proxy is an earlier node.
    pub(crate) fn source(&self) -> SourceKey {
        let scaled = self.place.index > 0 && self.request.proxy == Proxy::Publisher;
        let form = if scaled { self.asked } else { Form::FULL };
        SourceKey { publisher: self.publisher, form }
    }

    /// Returns the form of the samples on links.
    pub(super) fn travelling(&self) -> Form {
        self.spec.travelling(self.request)
    }

    /// Returns true if the path must grant a reservation first: the pair requests a contract, its demand is
    /// known, and a link of the path has a capacity.
    pub(super) fn is_reserved(&self) -> bool {
        let promised = |ask: &Ask| is_promised(self.spec, self.travelling(), ask);
        self.place.split.is_limited() && self.ask().is_some_and(|ask| promised(&ask))
    }

    /// Returns the division of the delay bound among the hops of the path.
    pub(super) fn split(&self) -> Split {
        self.place.split
    }

    pub(crate) fn is_background(&self) -> bool {
        self.spec.tag.is_private()
    }

    pub(crate) fn target(&self) -> Target {
        self.place.next.map_or(Target::Local, Target::Hop)
    }

    /// Returns the outgoing form: scaled if the proxy is this node or an earlier one.
    pub(crate) fn leaving(&self) -> Form {
        match self.request.proxy {
            Proxy::Publisher => self.asked,
            Proxy::Subscriber if self.place.next.is_none() => self.asked,
            Proxy::Subscriber => Form::FULL,
        }
    }

    /// Returns the contract request to this node's link; `None` for background streams, which get no promise.
    pub(super) fn ask(&self) -> Option<Ask> {
        if self.is_background() {
            return None;
        }
        Ask::new(self.request, self.spec, self.place.index, self.place.split)
    }
}

fn place(registry: &Registry, tree: &Tree, to: NodeId, me: NodeId) -> Option<Place> {
    let path = tree.path(to)?;
    place_on(&path, Split::of(registry, &path), me)
}

fn place_on(path: &[NodeId], split: Split, me: NodeId) -> Option<Place> {
    let index = path.iter().position(|&node| node == me)?;
    let next = path.get(index + 1).copied();
    Some(Place { index, split, next })
}

/// Returns the pairs with a reservation installed here, each with its reserved path. Pairs whose local
/// subscription has ended are left out.
pub(crate) fn booked<'a>(
    registry: &'a Registry,
    bookings: impl Iterator<Item = &'a Booking>,
    me: NodeId,
) -> Vec<Pair<'a>> {
    let of = |booking: &'a Booking| {
        let (subscription, publisher) = booking.pair;
        let spec = registry.record(publisher.node)?.publishers.get(&publisher)?;
        let here = || registry.record(me).map(|record| &record.subscriptions);
        if subscription.node == me && !here()?.contains_key(&subscription) {
            return None;
        }
        let place = place_on(&booking.path, booking.split, me)?;
        let (request, asked) = (&booking.request, spec.form_of(booking.request.form));
        Some(Pair { publisher, subscription, spec, request, asked, place })
    };
    bookings.filter_map(of).collect()
}

/// An index of subscriptions by tag. Only patterns with wildcards must be matched one by one.
#[derive(Default)]
struct Index<'a> {
    by_tag: BTreeMap<&'a str, Vec<(SubscriptionId, &'a SubscriptionSpec)>>,
    by_pattern: Vec<(SubscriptionId, &'a SubscriptionSpec)>,
    nodes: BTreeSet<NodeId>,
}

impl<'a> Index<'a> {
    fn new(registry: &'a Registry, reached: &'a Tree) -> Self {
        let mut index = Self::default();
        for (node, record) in registry.reached(reached) {
            for (&id, spec) in &record.subscriptions {
                index.nodes.insert(node);
                if spec.pattern.is_tag() {
                    index.by_tag.entry(spec.pattern.as_str()).or_default().push((id, spec));
                } else {
                    index.by_pattern.push((id, spec));
                }
            }
        }
        index
    }

    fn matching<'b>(
        &'b self,
        spec: &'b PublisherSpec,
    ) -> impl Iterator<Item = (SubscriptionId, &'a SubscriptionSpec)> + use<'a, 'b> {
        let exact = self.by_tag.get(spec.tag.as_str()).into_iter().flatten();
        let wild = self.by_pattern.iter().filter(|(_, asked)| asked.pattern.matches(&spec.tag));
        exact.chain(wild).copied()
    }
}

/// Returns every pair whose path includes `me`, ordered by key.
pub(crate) fn pairs<'a>(registry: &'a Registry, reached: &'a Tree, me: NodeId) -> Vec<Pair<'a>> {
    let index = Index::new(registry, reached);
    let mut pairs = Vec::new();
    for (node, record) in registry.reached(reached) {
        if record.publishers.is_empty() {
            continue;
        }
        let tree = Tree::new(registry, node);
        let mine = |&to: &NodeId| Some((to, place(registry, &tree, to, me)?));
        let places: BTreeMap<NodeId, Place> = index.nodes.iter().filter_map(mine).collect();
        if places.is_empty() {
            continue;
        }
        for (&publisher, spec) in &record.publishers {
            for (subscription, request) in index.matching(spec) {
                if request.local && subscription.node != node {
                    continue;
                }
                let Some(&place) = places.get(&subscription.node) else { continue };
                let asked = spec.form_of(request.form);
                pairs.push(Pair { publisher, subscription, spec, request, asked, place });
            }
        }
    }
    pairs.sort_unstable_by_key(Pair::key);
    pairs
}

/// The complete set of streams that leave a source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Installed {
    pub(crate) publisher: Arc<PublisherSpec>,
    pub(crate) outputs: Vec<OutputPlan>,
}

/// Returns the streams for `pairs`, which must be ordered by key.
pub(crate) fn plan<'p, 'a: 'p>(
    pairs: impl Iterator<Item = &'p Pair<'a>>,
) -> BTreeMap<SourceKey, Installed> {
    let mut groups: BTreeMap<_, BTreeMap<_, Vec<&Pair<'_>>>> = BTreeMap::new();
    for pair in pairs {
        let streams = groups.entry(pair.source()).or_default();
        streams.entry((pair.target(), pair.leaving())).or_default().push(pair);
    }
    let mut installed = BTreeMap::new();
    for (source, streams) in groups {
        let Some(first) = streams.values().flatten().next() else { continue };
        let publisher = Arc::clone(first.spec);
        let outputs = streams
            .iter()
            .map(|(&(target, form), behind)| {
                let scale = if form == source.form { Form::FULL } else { form };
                output(OutputPlan { scale, ..blank(&publisher, target, form) }, behind)
            })
            .collect();
        installed.insert(source, Installed { publisher, outputs });
    }
    installed
}

fn blank(publisher: &PublisherSpec, target: Target, form: Form) -> OutputPlan {
    OutputPlan {
        target,
        form,
        scale: Form::FULL,
        contract: None,
        demand: None,
        upstream: Duration::ZERO,
        slack: Duration::ZERO,
        within: None,
        late: publisher.late,
        kind: publisher.kind,
        background: publisher.tag.is_private(),
        max_wait: None,
        retransmit: Retransmit::None,
        subscriptions: Vec::new(),
    }
}

/// Fills in the fields that depend on the subscriptions of an output.
fn output(mut plan: OutputPlan, behind: &[&Pair<'_>]) -> OutputPlan {
    plan.subscriptions = behind.iter().map(|pair| pair.subscription).collect();
    let mends = behind.iter().map(|pair| pair.request.retransmit);
    plan.retransmit = mends.max().unwrap_or_default();
    let strictest = behind.iter().filter(|pair| pair.request.within.is_some());
    let strictest = strictest.min_by_key(|pair| pair.request.within);
    plan.within = strictest.and_then(|pair| pair.request.within);
    match plan.target {
        Target::Local => {
            // After the last hop the delay bound is used up, unless there was no hop.
            let hops = strictest.map_or(0, |pair| pair.place.split.hops());
            plan.upstream = plan.within.filter(|_| hops > 0).unwrap_or_default();
        }
        Target::Hop(_) => {
            let asks: Vec<Ask> = behind.iter().filter_map(|pair| pair.ask()).collect();
            let spec = behind.first().map(|pair| pair.spec);
            let promise = spec.and_then(|spec| Some((spec, promise(spec, plan.form, &asks)?)));
            if let Some((spec, promise)) = promise {
                plan.contract = Some(promise.contract);
                plan.demand = Some(demand(spec, plan.form, promise.contract.period));
                (plan.upstream, plan.slack) = (promise.upstream, promise.slack);
            } else {
                plan.max_wait = spec.and_then(|spec| spec.max_wait());
            }
        }
    }
    plan
}
