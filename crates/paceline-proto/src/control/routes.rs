//! Routing: the pairs on whose path this node is, and the streams that result.

use super::allowance::{Allowance, Asked, NAMED_MAX, PairOf};
use super::best_effort::BestEffort;
use super::booking::Booking;
use super::contract::{demand, level, promise};
use super::detour::{Route, Router};
use super::graph::Tree;
use super::pair::{Detour, Pair, Place};
use super::refusal::RefusalReason;
use super::registry::{Mark, PairKey, Registry};
use super::request::Ask;
use super::spec::{PublisherSpec, SubscriptionSpec};
use super::split::Split;
use crate::entry::EntryLimit;
use crate::form::{Form, Proxy};
use crate::ids::NodeId;
use crate::plan::{OutputPlan, SourceKey, Target};
use crate::rights::Lack;
use crate::tag::{Pattern, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn place(registry: &Registry, tree: &Tree, to: NodeId, me: NodeId) -> Option<Place> {
    let path = tree.path(to)?;
    Place::on(&path, Split::of(registry, &path), me)
}

/// Returns the pair `key` on its path through the proxy `route`, or on the direct path if there is none.
fn detoured<'a>(
    registry: &Registry,
    (key, spec, request): (PairKey, &'a Arc<PublisherSpec>, &'a SubscriptionSpec),
    route: Result<Route, RefusalReason>,
    (direct, me): (Option<&Place>, NodeId),
) -> Option<Pair<'a>> {
    let Route { path, proxy } = match route {
        Ok(route) => route,
        Err(reason) => {
            let detour = Some(Detour::Obstacle(reason));
            return Some(Pair { detour, ..Pair::at(key, spec, request, *direct?) });
        }
    };
    let split = Split::of(registry, &path).with_proxy(proxy);
    let place = Place::on(&path, split, me)?;
    let detour = (key.1.node == me).then_some(Detour::Path(path));
    Some(Pair { detour, ..Pair::at(key, spec, request, place) })
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
        let place = Place::on(&booking.path, booking.split, me)?;
        Some(Pair::at(booking.pair, spec, &booking.request, place))
    };
    bookings.filter_map(of).collect()
}

fn same_node(one: &Asked<'_>, other: &Asked<'_>) -> bool {
    one.0.node == other.0.node
}

/// The pairs of a node that are refused because of their number.
pub(super) type TooMany = BTreeMap<PairKey, (NodeId, Lack)>;

/// An index of subscriptions by tag. Only patterns with wildcards must be matched one by one.
#[derive(Default)]
struct Index<'a> {
    by_tag: BTreeMap<&'a str, Vec<Asked<'a>>>,
    by_pattern: Vec<Asked<'a>>,
    nodes: BTreeSet<NodeId>,
    /// True if a path may lead through a proxy between its ends.
    detours: bool,
}

impl<'a> Index<'a> {
    fn new(registry: &'a Registry, reached: &'a Tree) -> Self {
        let mut index = Self::default();
        for (node, record) in reached.records(registry) {
            for (&id, spec) in &record.subscriptions {
                index.nodes.insert(node);
                index.detours |= matches!(spec.proxy, Proxy::Node(_) | Proxy::Auto);
                if spec.pattern.is_tag() {
                    index.by_tag.entry(spec.pattern.as_str()).or_default().push((id, spec));
                } else {
                    index.by_pattern.push((id, spec));
                }
            }
        }
        index
    }

    /// Returns the subscriptions that match the tag.
    fn matching<'b>(&'b self, tag: &'b Tag) -> impl Iterator<Item = Asked<'a>> + use<'a, 'b> {
        let exact = self.by_tag.get(tag.as_str()).into_iter().flatten();
        let wild = self.by_pattern.iter().filter(|(_, asked)| asked.pattern.matches(tag));
        exact.chain(wild).copied()
    }

    /// Returns the subscriptions that may match the tag, by node. Those with wildcards must still be matched.
    fn by_node<'b>(&'b self, tag: &Tag) -> impl Iterator<Item = &'b [Asked<'a>]> + use<'a, 'b> {
        let exact = self.by_tag.get(tag.as_str()).map_or(&[][..], Vec::as_slice);
        exact.chunk_by(same_node).chain(self.by_pattern.chunk_by(same_node))
    }
}

/// Returns every pair whose path includes `me`, ordered by key, without those that are too many.
pub(crate) fn pairs<'a>(
    registry: &'a Registry,
    (reached, allowance): (&'a Tree, &Allowance),
    me: NodeId,
) -> Vec<Pair<'a>> {
    let index = Index::new(registry, reached);
    let mut router = Router::new(registry);
    let mut pairs = Vec::new();
    for (node, record) in reached.records(registry) {
        if record.publishers.is_empty() {
            continue;
        }
        let tree = Tree::new(registry, node);
        let mine = |&to: &NodeId| Some((to, place(registry, &tree, to, me)?));
        let places: BTreeMap<NodeId, Place> = index.nodes.iter().filter_map(mine).collect();
        if places.is_empty() && !index.detours {
            continue;
        }
        for (&publisher, spec) in &record.publishers {
            let mut add = |(subscription, request): Asked<'a>| {
                if request.local && subscription.node != node {
                    return false;
                }
                let key = (subscription, publisher);
                let direct = places.get(&subscription.node);
                let at_end = |place: &Place| {
                    let proxy = PublisherSpec::proxy_at_end(request, place.split.hops());
                    let place = Place { split: place.split.with_proxy(proxy), ..*place };
                    Pair::at(key, spec, request, place)
                };
                let pair = match router.route(&tree, key, &request.proxy) {
                    None => direct.map(at_end),
                    Some(route) => detoured(registry, (key, spec, request), route, (direct, me)),
                };
                let Some(pair) = pair else { return false };
                let idle = registry.mark_of(key, request.revision) == Some(Mark::Idle);
                let without = idle.then_some(BestEffort::Idle);
                pairs.push(Pair { without, ..pair });
                true
            };
            if allowance.is_unlimited() {
                index.matching(&spec.tag).for_each(|it| _ = add(it));
                continue;
            }
            let matches = |it: &Pattern| it.is_tag() || it.matches(&spec.tag);
            let mut add = |it: Asked<'a>| matches(&it.1.pattern) && add(it);
            for asked in index.by_node(&spec.tag) {
                allowance.take((publisher, &spec.tag), asked, &mut add);
            }
        }
    }
    pairs.sort_unstable_by_key(Pair::key);
    pairs
}

/// Removes the pairs that are too many, and returns some of them with the reasons.
pub(super) fn drop_excess(pairs: &mut Vec<Pair<'_>>, allowance: &Allowance) -> TooMany {
    let mut too_many = TooMany::new();
    if allowance.is_exceeded() {
        pairs.retain(|pair| {
            let Some(missing) = allowance.drops(pair.key(), &PairOf::of(pair)) else { return true };
            if too_many.len() < NAMED_MAX {
                too_many.insert(pair.key(), missing);
            }
            false
        });
    }
    too_many
}

/// The complete set of streams that leave a source.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Installed {
    pub(crate) publisher: Arc<PublisherSpec>,
    /// The neighbours from which its samples arrive, in order; none on the publisher's node.
    pub(crate) from: BTreeSet<NodeId>,
    /// The limits of the samples that arrive.
    pub(crate) entry: Vec<EntryLimit>,
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
        let from = streams.values().flatten().filter_map(|pair| pair.place.before).collect();
        let outputs = streams
            .iter()
            .map(|(&(target, form), behind)| {
                let scale = if form == source.form { Form::FULL } else { form.without_via() };
                output(OutputPlan { scale, ..blank(&publisher, target, form) }, behind)
            })
            .collect();
        installed.insert(source, Installed { publisher, from, entry: Vec::new(), outputs });
    }
    installed
}

fn blank(publisher: &PublisherSpec, target: Target, form: Form) -> OutputPlan {
    let (late, kind, background) = (publisher.late, publisher.kind, publisher.tag.is_private());
    OutputPlan { late, kind, background, ..OutputPlan::new(target, form) }
}

/// Fills in the fields that depend on the subscriptions of an output.
fn output(mut plan: OutputPlan, behind: &[&Pair<'_>]) -> OutputPlan {
    plan.aligned = behind.iter().any(|pair| pair.ask().is_some());
    plan.subscriptions = behind.iter().map(|pair| pair.subscription).collect();
    let mends = behind.iter().map(|pair| pair.request.retransmit);
    plan.retransmit = mends.max().unwrap_or_default();
    let bounded = behind.iter().filter_map(|pair| Some((pair.bound()?, pair)));
    let strictest = bounded.min_by_key(|(bound, _)| *bound);
    plan.within = strictest.map(|(bound, _)| bound);
    match plan.target {
        Target::Local => {
            // After the last hop the delay bound is used up, unless there was no hop.
            let hops = strictest.map_or(0, |(_, pair)| pair.split().hops());
            plan.upstream = plan.within.filter(|_| hops > 0).unwrap_or_default();
        }
        Target::Hop(_) => {
            let asks: Vec<Ask> = behind.iter().filter_map(|pair| pair.ask()).collect();
            let spec = behind.first().map(|pair| pair.spec);
            let promise = spec.and_then(|spec| Some((spec, promise(spec, plan.form, &asks)?)));
            if let Some((spec, promise)) = promise {
                plan.contract = Some(promise.contract);
                plan.demand = Some(demand(spec, plan.form, &promise.contract, &asks));
                plan.level = level(spec, plan.form, &asks);
                (plan.upstream, plan.slack) = (promise.upstream, promise.slack);
            } else {
                plan.max_wait = spec.and_then(|spec| spec.max_wait());
            }
        }
    }
    plan
}
