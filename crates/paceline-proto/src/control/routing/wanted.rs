//! The streams that subscriptions request from publishers and whose path includes this node.

use super::detour::Router;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::RefusalReason;
use crate::control::data::route::{Detour, Place, Route, WantedStream};
use crate::control::data::spec::PublisherSpec;
use crate::control::data::split::Split;
use crate::control::membership::allowance::{Allowance, Asked, NAMED_MAX, PairOf};
use crate::control::membership::graph::Tree;
use crate::control::membership::registry::{Mark, Registry};
use crate::form::Proxy;
use crate::ids::NodeId;
use crate::rights::Lack;
use crate::tag::{Pattern, Tag};
use std::collections::{BTreeMap, BTreeSet};

fn place(registry: &Registry, tree: &Tree, to: NodeId, me: NodeId) -> Option<Place> {
    let path = tree.path(to)?;
    Place::on(&path, Split::of(registry, &path), me)
}

/// Returns the position of `me` on a path through the proxy `route`, or on the direct path if there is none.
fn detoured(
    registry: &Registry,
    route: Result<Route, RefusalReason>,
    (direct, own): (Option<&Place>, bool),
    me: NodeId,
) -> Option<(Place, Option<Detour>)> {
    let Route { path, proxy } = match route {
        Ok(route) => route,
        Err(reason) => return Some((*direct?, Some(Detour::Obstacle(reason)))),
    };
    let split = Split::of(registry, &path).with_proxy(proxy);
    let place = Place::on(&path, split, me)?;
    Some((place, own.then_some(Detour::Path(path))))
}

fn same_node(one: &Asked<'_>, other: &Asked<'_>) -> bool {
    one.0.node == other.0.node
}

/// The pairs of a node that are refused because of their number.
pub(in crate::control) type TooMany = BTreeMap<PairKey, (NodeId, Lack)>;

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

/// Returns every wanted stream whose path includes `me`, ordered by key, without the streams that are too many.
pub(in crate::control) fn wanted<'a>(
    registry: &'a Registry,
    (reached, allowance): (&'a Tree, &Allowance),
    me: NodeId,
) -> Vec<WantedStream<'a>> {
    let index = Index::new(registry, reached);
    let mut router = Router::new(registry);
    let mut streams = Vec::new();
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
                    (place, None)
                };
                let placed = match router.route(&tree, key, &request.proxy) {
                    None => direct.map(at_end),
                    Some(route) => detoured(registry, route, (direct, node == me), me),
                };
                let Some((place, detour)) = placed else { return false };
                let is_idle = registry.mark_of(key, request.revision) == Some(Mark::Idle);
                streams.push(WantedStream { key, spec, request, place, detour, is_idle });
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
    streams.sort_unstable_by_key(|stream| stream.key);
    streams
}

/// Removes the streams that are too many, and returns some of them with the reasons.
pub(in crate::control) fn drop_excess(
    streams: &mut Vec<WantedStream<'_>>,
    allowance: &Allowance,
) -> TooMany {
    let mut too_many = TooMany::new();
    if allowance.is_exceeded() {
        streams.retain(|stream| {
            let Some(missing) = allowance.drops(stream.key, &PairOf::of(stream)) else {
                return true;
            };
            if too_many.len() < NAMED_MAX {
                too_many.insert(stream.key, missing);
            }
            false
        });
    }
    too_many
}
