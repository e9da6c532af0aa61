//! The places of proxies that subscriptions leave to the publisher's node.
//!
//! A publisher's node knows all subscriptions of its publishers and all links, and announces the places in its record
//! ([`Change::Place`]), so all nodes of a path follow the same choice. A place is a node of the shortest path; the
//! publisher's own node has no entry. The objective is the sum of the bytes per second on all links between hosts, where
//! each form of a publisher crosses a link once, as it does in operation ([`crate::control::data::forms`]). Hops of one link whose
//! neighbours receive its multicast groups count a form once together ([`HopInfo::multicast`](crate::control::data::spec::HopInfo::multicast)).
//!
//! A new subscription gets the cheapest place while all existing places stay. An existing place changes only if that
//! reduces the traffic by at least [`GAIN_PERCENT`], so that small changes do not move streams.

use crate::control::data::forms::{Forms, carriers};
use crate::control::data::ids::PairKey;
use crate::control::data::route::{Detour, RoutedStream};
use crate::control::data::spec::PublisherSpec;
use crate::control::membership::graph::Tree;
use crate::control::membership::registry::{Change, EntryKey, PLACES_MAX, Record, Registry};
use crate::form::{Form, Proxy};
use crate::ids::{NodeId, PublisherId};
use std::collections::{BTreeMap, BTreeSet};

/// Streams move if that saves at least this part of the traffic.
const GAIN_PERCENT: u64 = 10;
/// The largest number of subscriptions of a publisher whose places are improved further. With more, all of them behind
/// one node get the same place.
const SINGLE_MAX: usize = 32;

/// The previous decisions of this node.
#[derive(Debug, Default)]
pub(in crate::control) struct State {
    /// The subscriptions that have a place, which may be the publisher's node.
    known: BTreeSet<PairKey>,
    /// The places at which a contract was refused.
    failed: BTreeSet<(PairKey, NodeId)>,
    /// The inputs of the last search for each publisher.
    inputs: BTreeMap<PublisherId, Vec<Item>>,
}

/// The ends of a hop.
type HopEnds = (NodeId, NodeId);

/// A subscription of a publisher.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    key: PairKey,
    form: Form,
    promised: bool,
    /// The nodes of its path, and for each hop the one that stands for all that share its copies; `None` for a hop within
    /// a host, which costs nothing.
    path: Vec<NodeId>,
    media: Vec<Option<HopEnds>>,
    /// The index of its proxy on the path.
    place: usize,
    /// True if this node chooses the place.
    is_free: bool,
    /// The places that it may not have.
    failed: Vec<NodeId>,
}

impl Item {
    fn form_on(&self, hop: usize, place: usize) -> Form {
        if hop < place {
            return Form::FULL;
        }
        let between = place > 0 && place + 1 < self.path.len();
        let via = self.path.get(place).copied().filter(|_| between);
        Form { via, ..self.form }
    }

    /// Returns the possible places, the publisher's node first.
    fn places(&self) -> impl Iterator<Item = usize> + '_ {
        let may = |place: &usize| {
            let node = self.path.get(*place);
            *place == 0 || node.is_some_and(|node| !self.failed.contains(node))
        };
        (0..self.path.len()).filter(may)
    }
}

/// Returns the bytes per second of a form; at least 1, so that unknown sizes count as streams.
fn rate(spec: &PublisherSpec, form: Form) -> u64 {
    spec.bytes_per_s(form).unwrap_or(1).max(1)
}

/// Returns the bytes per second on all links if each item has its place.
fn cost(items: &[Item], places: &[usize], rates: &BTreeMap<Form, u64>) -> u64 {
    let mut hops: BTreeMap<HopEnds, (HopEnds, Forms)> = BTreeMap::new();
    for (item, &place) in items.iter().zip(places) {
        let ends = item.path.iter().copied().zip(item.path.iter().copied().skip(1));
        for (hop, (ends, medium)) in ends.zip(&item.media).enumerate() {
            if let Some(medium) = medium {
                let (_, forms) = hops.entry(ends).or_insert_with(|| (*medium, Forms::new()));
                forms
                    .entry(item.form_on(hop, place))
                    .or_default()
                    .add(item.promised, item.promised);
            }
        }
    }
    let on = |(medium, forms): &(HopEnds, Forms)| {
        let medium = *medium;
        carriers(forms).into_values().map(move |form| (medium, form))
    };
    let sent: BTreeSet<(HopEnds, Form)> = hops.values().flat_map(on).collect();
    let of = |(_, form): &(_, Form)| rates.get(&form.without_via()).copied().unwrap_or(1);
    sent.iter().map(of).fold(0, u64::saturating_add)
}

/// Returns the sets of items that move together: each one alone, those of a form to a node, those of a form, and those to a
/// node. Streams that are shared are cheaper elsewhere only if all of them move.
fn sets(items: &[Item], moves: impl Fn(&Item) -> bool) -> BTreeSet<Vec<usize>> {
    let may: Vec<(usize, &Item)> =
        items.iter().enumerate().filter(|(_, item)| item.is_free && moves(item)).collect();
    let alike = |same: &dyn Fn(&Item) -> bool| -> Vec<usize> {
        may.iter().filter(|(_, item)| same(item)).map(|(number, _)| *number).collect()
    };
    let of = |(number, one): &(usize, &Item)| {
        let to = |item: &Item| item.key.0.node == one.key.0.node;
        let form = |item: &Item| item.form == one.form;
        [vec![*number], alike(&|it| to(it) && form(it)), alike(&form), alike(&to)]
    };
    may.iter().flat_map(of).collect()
}

/// Moves sets of items to better places until none improves the cost. `moves` selects the items that may move.
fn improve(
    items: &[Item],
    mut places: Vec<usize>,
    rates: &BTreeMap<Form, u64>,
    moves: impl Fn(&Item) -> bool,
) -> (u64, Vec<usize>) {
    let mut best = cost(items, &places, rates);
    let sets = sets(items, moves);
    // Each round is strictly better; a few are enough in practice.
    for _ in 0..8 {
        let before = best;
        for set in &sets {
            let one = set.first().and_then(|first| items.get(*first));
            for node in one.into_iter().flat_map(|item| &item.path) {
                let mut other = places.clone();
                for &number in set {
                    let item = items.get(number);
                    let at = item.and_then(|item| {
                        item.places().find(|place| item.path.get(*place) == Some(node))
                    });
                    if let (Some(place), Some(one)) = (at, other.get_mut(number)) {
                        *one = place;
                    }
                }
                let now = cost(items, &other, rates);
                if now < best {
                    (best, places) = (now, other);
                }
            }
        }
        if best == before {
            break;
        }
    }
    (best, places)
}

/// Returns the places with the lowest cost that the search finds.
fn search(items: &[Item], rates: &BTreeMap<Form, u64>) -> (u64, Vec<usize>) {
    let free = || items.iter().filter(|item| item.is_free);
    let nodes: BTreeSet<NodeId> = free().flat_map(|item| item.path.iter().copied()).collect();
    let all_at = |node: Option<NodeId>| -> Vec<usize> {
        let place = |item: &Item| {
            let at = item.path.iter().position(|it| Some(*it) == node).unwrap_or_default();
            if item.places().any(|place| place == at) { at } else { 0 }
        };
        items.iter().map(|item| if item.is_free { place(item) } else { item.place }).collect()
    };
    let single = free().count() <= SINGLE_MAX;
    let starts = core::iter::once(all_at(None)).chain(nodes.into_iter().map(|it| all_at(Some(it))));
    let found = starts.map(|start| match single {
        true => improve(items, start, rates, |_| true),
        false => (cost(items, &start, rates), start),
    });
    found.min_by_key(|(cost, _)| *cost).unwrap_or_default()
}

/// Returns the place of each item, given the subscriptions without a place so far.
fn decide(items: &[Item], spec: &PublisherSpec, fresh: impl Fn(&Item) -> bool) -> Vec<usize> {
    let forms = items.iter().flat_map(|item| [Form::FULL, item.form]);
    let rates: BTreeMap<Form, u64> = forms.map(|form| (form, rate(spec, form))).collect();
    let now: Vec<usize> = items.iter().map(|item| item.place).collect();
    let (cost, kept) = improve(items, now, &rates, fresh);
    let (best, places) = search(items, &rates);
    let gains = u128::from(best) * 100 < u128::from(cost) * u128::from(100 - GAIN_PERCENT);
    if gains { places } else { kept }
}

/// Returns true if a publisher of node `me` sends the stream to another node.
fn is_own(stream: &impl RoutedStream, me: NodeId) -> bool {
    let (subscription, publisher) = stream.key();
    publisher.node == me && subscription.node != me && !stream.spec().tag.is_private()
}

/// Returns true if the publisher's node chooses the proxy of the stream.
fn is_free(stream: &impl RoutedStream) -> bool {
    stream.request().proxy == Proxy::Auto
}

impl State {
    /// Returns the changes of this node's places for `streams`, which are ordered by key. `tree` has the shortest paths from
    /// this node, and `is_refused` says whether a path has refused the contract of a pair.
    pub(in crate::control) fn plan(
        &mut self,
        registry: &Registry,
        tree: &Tree,
        is_refused: impl Fn(PairKey) -> bool,
        streams: &[impl RoutedStream],
    ) -> Vec<Change> {
        let Some(mine) = registry.record(registry.me()) else { return Vec::new() };
        let me = registry.me();
        let (own, free) = (|stream: &_| is_own(stream, me), is_free);
        if !streams.iter().any(|stream| own(stream) && free(stream)) {
            *self = Self::default();
            let end = |key: &PairKey| Change::Remove(EntryKey::Place(*key));
            return mine.places.keys().map(end).collect();
        }
        let mut groups: BTreeMap<PublisherId, (&PublisherSpec, Vec<Item>)> = BTreeMap::new();
        for stream in streams.iter().filter(|stream| own(*stream)) {
            let key = stream.key();
            if let (true, Some(place)) = (free(stream), mine.places.get(&key))
                && is_refused(key)
            {
                self.failed.insert((key, *place));
            }
            let Some(item) = self.item(registry, tree, stream) else { continue };
            let group = groups.entry(key.1).or_insert((stream.spec(), Vec::new()));
            group.1.push(item);
        }
        groups.retain(|_, (_, items)| items.iter().any(|item| item.is_free));
        self.forget(&groups);
        let mut wanted = BTreeMap::new();
        for (publisher, (spec, items)) in groups {
            let places = match self.inputs.get(&publisher) {
                Some(before) if *before == items => items.iter().map(|item| item.place).collect(),
                Some(_) | None => decide(&items, spec, |item| !self.known.contains(&item.key)),
            };
            for (item, &place) in items.iter().zip(&places).filter(|(item, _)| item.is_free) {
                let node = item.path.get(place).filter(|_| place > 0);
                wanted.extend(node.map(|node| (item.key, *node)));
                self.known.insert(item.key);
            }
            let chosen = items.into_iter().zip(places);
            let items = chosen.map(|(item, place)| Item { place, ..item }).collect();
            self.inputs.insert(publisher, items);
        }
        changes(mine, wanted)
    }

    fn item(&self, registry: &Registry, tree: &Tree, stream: &impl RoutedStream) -> Option<Item> {
        let (is_free, key) = (is_free(stream), stream.key());
        let path = match stream.detour() {
            Some(Detour::Path(path)) if !is_free => path.to_vec(),
            Some(Detour::Obstacle(_)) => return None,
            Some(Detour::Path(_)) | None => tree.path(key.0.node)?,
        };
        let place = match registry.place_of(key).filter(|_| is_free) {
            Some(node) => path.iter().position(|it| *it == node).unwrap_or_default(),
            None if is_free => 0,
            None => stream.place().split.proxy(),
        };
        let failed = self.failed.range((key, NodeId(0))..=(key, NodeId(u64::MAX)));
        let failed: Vec<NodeId> = failed.map(|(_, node)| *node).collect();
        let place = path.get(place).filter(|node| !failed.contains(node)).map_or(0, |_| place);
        let hop = |(&from, &to): (&NodeId, &NodeId)| {
            let counts = !registry.is_own(from, to) && !registry.is_own(to, from);
            counts.then(|| (from, registry.first_on_segment(from, to)))
        };
        let media = path.iter().zip(path.iter().skip(1)).map(hop).collect();
        let (form, promised) = (stream.requested(), stream.wants_contract());
        Some(Item { key, form, promised, path, media, place, is_free, failed })
    }

    /// Forgets the decisions on subscriptions that are gone.
    fn forget(&mut self, groups: &BTreeMap<PublisherId, (&PublisherSpec, Vec<Item>)>) {
        let items = groups.values().flat_map(|(_, items)| items);
        let keys: BTreeSet<PairKey> =
            items.filter(|item| item.is_free).map(|item| item.key).collect();
        self.known.retain(|key| keys.contains(key));
        self.failed.retain(|(key, _)| keys.contains(key));
        self.inputs.retain(|publisher, _| groups.contains_key(publisher));
    }
}

/// Returns the changes that lead from the announced places to the wanted ones.
fn changes(mine: &Record, wanted: BTreeMap<PairKey, NodeId>) -> Vec<Change> {
    let gone = mine.places.keys().filter(|key| !wanted.contains_key(key));
    let mut changes: Vec<Change> = gone.map(|key| Change::Remove(EntryKey::Place(*key))).collect();
    let room = (PLACES_MAX + changes.len()).saturating_sub(mine.places.len());
    let new = |(key, _): &(PairKey, NodeId)| !mine.places.contains_key(key);
    let other = |(key, node): &(PairKey, NodeId)| mine.places.get(key).is_some_and(|it| it != node);
    let moved = wanted.iter().map(|(key, node)| (*key, *node)).filter(other);
    let added = wanted.iter().map(|(key, node)| (*key, *node)).filter(new).take(room);
    changes.extend(moved.chain(added).map(|(key, node)| Change::Place(key, node)));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::{Rate, Size};
    use crate::ids::SubscriptionId;
    use crate::sample::{Encoding, Kind};
    use crate::tag::Tag;
    use core::num::NonZeroU32;
    use paceline_sched::Duration;
    use proptest::prelude::*;

    fn camera() -> PublisherSpec {
        PublisherSpec {
            kind: Kind::Picture,
            encoding: Encoding::Jpeg,
            period: Some(Duration::from_millis(40)),
            size: Some(Size { width: 640, height: 480 }),
            bytes_max: Some(10_000),
            ..PublisherSpec::new(Tag::new("camera").unwrap())
        }
    }

    /// Returns a subscription at a leaf of the tree 0 - 1 - 2 - (3, 4), 1 - 5.
    fn item(number: u32, leaf: u64, n: u32, small: bool) -> Item {
        let path: &[u64] = if leaf == 5 { &[0, 1, 5] } else { &[0, 1, 2, leaf] };
        let path: Vec<NodeId> = path.iter().copied().map(NodeId).collect();
        let key = (
            SubscriptionId { node: NodeId(leaf), index: number },
            PublisherId { node: NodeId(0), index: 0 },
        );
        let rate = NonZeroU32::new(n).filter(|n| n.get() > 1).map_or(Rate::ALL, Rate::every);
        let size = small.then_some(Size { width: 320, height: 240 });
        let form = Form { rate, size, ..Form::FULL };
        let media = path.windows(2).map(|ends| Some((ends[0], ends[1]))).collect();
        let (place, is_free, failed, promised) = (0, true, Vec::new(), false);
        Item { key, form, promised, path, media, place, is_free, failed }
    }

    fn rates(items: &[Item]) -> BTreeMap<Form, u64> {
        let forms = items.iter().flat_map(|item| [Form::FULL, item.form]);
        forms.map(|form| (form, rate(&camera(), form))).collect()
    }

    fn lowest(items: &[Item], rates: &BTreeMap<Form, u64>) -> u64 {
        let mut all = vec![Vec::new()];
        for item in items {
            let longer = |head: &Vec<usize>| {
                item.places().map(|place| [&head[..], &[place]].concat()).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all.iter().map(|places| cost(items, places, rates)).min().unwrap()
    }

    #[test]
    fn one_subscription_is_scaled_at_the_publisher_and_many_forms_behind_the_shared_link() {
        let alone = [item(0, 3, 3, true)];
        assert_eq!(decide(&alone, &camera(), |_| true), [0]);
        // Together the small pictures and the full ones exceed the full ones alone.
        let many = [item(0, 3, 1, false), item(1, 4, 1, true), item(2, 5, 2, true)];
        let places = decide(&many, &camera(), |_| true);
        let nodes: Vec<NodeId> =
            many.iter().zip(&places).map(|(item, place)| item.path[*place]).collect();
        assert_eq!(nodes[1..], [2, 1].map(NodeId));
    }

    #[test]
    fn on_a_segment_the_full_stream_once_is_cheaper_than_several_forms() {
        let on = |shared: bool| -> Vec<Item> {
            let one = |(number, n): (u32, u32)| {
                let one = item(number, u64::from(number) + 3, n, false);
                let path = vec![NodeId(0), one.key.0.node];
                let first = if shared { NodeId(3) } else { one.key.0.node };
                Item { media: vec![Some((NodeId(0), first))], path, ..one }
            };
            [(0, 1), (1, 2), (2, 3)].map(one).to_vec()
        };
        assert_eq!(decide(&on(false), &camera(), |_| true)[1..], [0, 0]);
        assert_eq!(decide(&on(true), &camera(), |_| true)[1..], [1, 1]);
        // The segment loses multicast: streams at the subscribers move back.
        let moved = on(false).into_iter().map(|item| Item { place: 1, ..item });
        assert_eq!(decide(&moved.collect::<Vec<_>>(), &camera(), |_| false)[1..], [0, 0]);
    }

    #[test]
    fn existing_places_move_only_for_a_large_gain() {
        let mut items = vec![item(0, 3, 4, true), item(1, 3, 5, true)];
        items[0].place = 3;
        // The whole stream crosses three links for a quarter of small pictures.
        assert_eq!(decide(&items, &camera(), |_| false), [0, 0]);
        // A new subscription takes its best place without any threshold.
        let full = Item { is_free: false, ..item(0, 3, 1, false) };
        let mut items = vec![full, item(1, 3, 25, true)];
        assert_eq!(decide(&items, &camera(), |_| true)[1], 3);
        assert_eq!(decide(&items, &camera(), |_| false)[1], 0, "it saves less than a tenth");
        items[1].failed = vec![NodeId(3)];
        assert_eq!(decide(&items, &camera(), |_| true)[1], 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn the_search_is_within_five_percent_of_all_combinations(
            asked in prop::collection::vec((3..6_u64, 1..7_u32, any::<bool>()), 1..5),
        ) {
            let items: Vec<Item> = (0..).zip(asked)
                .map(|(number, (leaf, n, small))| item(number, leaf, n, small)).collect();
            let rates = rates(&items);
            let ((found, places), lowest) = (search(&items, &rates), lowest(&items, &rates));
            prop_assert_eq!(found, cost(&items, &places, &rates));
            prop_assert!(found * 100 <= lowest * 105, "{} of {}: {:?}", found, lowest, items);
        }
    }
}
