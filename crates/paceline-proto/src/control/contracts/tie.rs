//! Contracts in both directions: two pairs of which both are granted, or neither.
//!
//! A subscription names the tag of an opposite stream ([`SubscriptionSpec::with`]). Its pair *leads*, and the
//! opposite pair *follows*. Each publisher's node reserves its own pair and marks the state in its record:
//!
//! 1. The lead is reserved on its path and marked [`Mark::Reserved`].
//! 2. The follower's node sees that mark, reserves the follower and marks it `Reserved`. Now both are in force.
//! 3. If the follower is refused, it is marked [`Mark::Refused`]. The lead's node releases the lead with a refusal
//!    that names the other half, and asks again after a pause.
//!
//! A follower without a reserved lead reserves nothing, so losing either half ends both. Samples of a pair whose
//! other half is not reserved are not sent.

use crate::control::data::ids::PairKey;
use crate::control::data::spec::SubscriptionSpec;
use crate::control::membership::graph::Tree;
use crate::control::membership::registry::{Mark, Registry};
use crate::ids::NodeId;
use crate::tag::Tag;
use std::collections::{BTreeMap, BTreeSet};

/// The tied pairs of a network. Nodes with equal registries compute equal ties.
#[derive(Debug, Default)]
pub(in crate::control) struct Ties {
    /// The leading pairs, each with its follower, if there is one.
    pub(in crate::control) leads: BTreeMap<PairKey, Option<PairKey>>,
    /// The following pairs, each with its leads.
    pub(in crate::control) follows: BTreeMap<PairKey, Vec<PairKey>>,
    /// The tied pairs that are not in force: one of the halves is not reserved.
    pub(in crate::control) incomplete: BTreeSet<PairKey>,
    /// The followers of which no lead is reserved.
    alone: BTreeSet<PairKey>,
}

/// Returns true if both nodes say that the other one is a process of the same host.
fn joined(registry: &Registry, one: NodeId, other: NodeId) -> bool {
    registry.claims(one, other) && registry.claims(other, one)
}

/// Returns true if both nodes are on one host: the same node, or joined by at most one other process.
fn on_one_host(registry: &Registry, one: NodeId, other: NodeId) -> bool {
    let through = || {
        let near = registry.record(one).into_iter().flat_map(|record| record.neighbours.keys());
        near.copied().any(|host| joined(registry, one, host) && joined(registry, host, other))
    };
    one == other || joined(registry, one, other) || through()
}

/// Returns the pair that `key` leads, for samples of `tag`; its request may not be announced yet. Returns `None` if it is
/// not tied, and an inner `None` if there is no contract to tie it to.
pub(in crate::control) fn tie_of(
    registry: &Registry,
    tree: &Tree,
    key: PairKey,
    (tag, request): (&Tag, &SubscriptionSpec),
) -> Option<Option<PairKey>> {
    let with = request.with.as_ref().filter(|_| request.wants_contract())?;
    let apart = !on_one_host(registry, key.1.node, key.0.node);
    apart.then(|| opposite(registry, tree, key, (tag, with)))
}

impl Ties {
    pub(in crate::control) fn new(registry: &Registry, tree: &Tree) -> Self {
        let mut leads = BTreeMap::new();
        let all = || tree.records(registry).flat_map(|(_, record)| &record.subscriptions);
        for (&subscription, spec) in all() {
            if spec.with.is_none() {
                continue;
            }
            for (&publisher, of) in tree.records(registry).flat_map(|(_, it)| &it.publishers) {
                let key = (subscription, publisher);
                if spec.pattern.matches(&of.tag)
                    && let Some(other) = tie_of(registry, tree, key, (&of.tag, spec))
                {
                    leads.insert(key, other);
                }
            }
        }
        // Of two pairs that name each other, the first one leads.
        let back = |(one, other): (&PairKey, &Option<PairKey>)| {
            let other = other.as_ref()?;
            (leads.get(other) == Some(&Some(*one)) && other < one).then_some(*one)
        };
        let second: Vec<PairKey> = leads.iter().filter_map(back).collect();
        leads.retain(|key, _| !second.contains(key));
        let mut follows: BTreeMap<PairKey, Vec<PairKey>> = BTreeMap::new();
        for (&lead, follower) in &leads {
            follower.iter().for_each(|it| follows.entry(*it).or_default().push(lead));
        }
        let (incomplete, alone) = (BTreeSet::new(), BTreeSet::new());
        let mut ties = Self { leads, follows, incomplete, alone };
        ties.incomplete = ties.find_incomplete(registry);
        let reserved = |key: &PairKey| registry.any_mark_of(*key) == Some(Mark::Reserved);
        let alone = ties.follows.iter().filter(|(_, leads)| !leads.iter().any(reserved));
        ties.alone = alone.map(|(key, _)| *key).collect();
        ties
    }

    pub(in crate::control) fn contains(&self, key: PairKey) -> bool {
        self.leads.contains_key(&key) || self.follows.contains_key(&key)
    }

    /// Returns true if the subscriber's end of a tied pair does not carry it yet.
    pub(in crate::control) fn waits_for_lead(&self, key: PairKey) -> bool {
        match self.leads.contains_key(&key) {
            true => self.incomplete.contains(&key),
            false => self.alone.contains(&key),
        }
    }

    fn find_incomplete(&self, registry: &Registry) -> BTreeSet<PairKey> {
        let reserved = |key: &PairKey| registry.any_mark_of(*key) == Some(Mark::Reserved);
        let leads = self
            .leads
            .iter()
            .filter(|(key, other)| !(reserved(key) && other.as_ref().is_some_and(&reserved)));
        let follows = self
            .follows
            .iter()
            .filter(|(key, leads)| !(reserved(key) && leads.iter().any(&reserved)));
        leads.map(|(key, _)| *key).chain(follows.map(|(key, _)| *key)).collect()
    }
}

/// Returns the follower of a pair: the publisher of `with` on the subscription's host, and a subscription with a
/// contract on the publisher's host. The first one counts if there are several.
fn opposite(
    registry: &Registry,
    tree: &Tree,
    (subscription, publisher): PairKey,
    (tag, with): (&Tag, &Tag),
) -> Option<PairKey> {
    let host =
        |node| tree.records(registry).filter(move |(it, _)| on_one_host(registry, *it, node));
    let asks = |spec: &SubscriptionSpec| {
        let free = spec.with.as_ref().is_none_or(|back| back == tag);
        spec.pattern.matches(with)
            && spec.wants_contract()
            && spec.idle.is_none()
            && !spec.spare
            && !spec.local
            && free
    };
    let mut asking = host(publisher.node).flat_map(|(_, record)| &record.subscriptions);
    let (asking, _) = asking.find(|(_, spec)| asks(spec))?;
    let mut sending = host(subscription.node).flat_map(|(_, record)| &record.publishers);
    let (sending, _) = sending.find(|(_, spec)| spec.tag == *with)?;
    Some((*asking, *sending))
}
