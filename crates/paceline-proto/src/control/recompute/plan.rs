//! Plans the streams of a round from the pairs and their reservations.

use crate::control::contracts::Contracts;
use crate::control::contracts::admission::{Admission, impossible};
use crate::control::contracts::linger::Carried;
use crate::control::contracts::pair::Pair;
use crate::control::contracts::shares::share;
use crate::control::contracts::streams::{self, Installed};
use crate::control::contracts::tie::Ties;
use crate::control::data::best_effort::BestEffort;
use crate::control::data::ids::PairKey;
use crate::control::membership::access::{Access, Blocked};
use crate::control::membership::claims::Claims;
use crate::control::membership::registry::Registry;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::plan::SourceKey;
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// The network in a round.
pub(super) struct View<'r> {
    pub(super) me: NodeId,
    pub(super) registry: &'r Registry,
    /// The refusals that count.
    pub(super) claims: &'r Claims<'r>,
    pub(super) ties: &'r Ties,
}

/// The streams of a round, and the pairs that they carry.
pub(super) struct Planned {
    pub(super) streams: NewStreams,
    /// The pairs with a reservation here whose subscription was in the registry.
    pub(super) announced: BTreeSet<PairKey>,
    /// The subscriptions of this node whose current request is unanswered.
    pub(super) unanswered: BTreeSet<SubscriptionId>,
    /// The pairs that end at this node as best effort.
    pub(super) best_effort: BTreeMap<PairKey, BestEffort>,
}

/// The streams of a round, to be compared with the streams before.
pub(super) struct NewStreams {
    pub(super) installed: BTreeMap<SourceKey, Installed>,
    pub(super) matching: BTreeSet<PublisherId>,
    pub(super) awaited: BTreeSet<PublisherId>,
    pub(super) heard: Vec<PairKey>,
}

/// The pairs of this node.
#[derive(Default)]
struct Sorted<'p, 'a> {
    /// The best-effort pairs, which follow the registry directly.
    live: BTreeMap<PairKey, &'p Pair<'a>>,
    /// The pairs without an answer yet, or whose refused change is not rolled back yet.
    waiting: BTreeMap<PairKey, &'p Pair<'a>>,
    /// The subscriptions of this node whose current request is unanswered.
    unanswered: BTreeSet<SubscriptionId>,
}

/// Returns the streams of `pairs` and of the reservations here, without the `blocked` ones. `before` are the streams of the
/// previous round.
pub(super) fn plan(
    now: Instant,
    view: &View<'_>,
    contracts: &mut Contracts,
    (pairs, blocked): (Vec<Pair<'_>>, &BTreeMap<PairKey, Blocked>),
    before: &BTreeMap<SourceKey, Installed>,
) -> Planned {
    let Contracts { admission, lingering, announced, .. } = contracts;
    let &View { me, registry, claims, ties } = view;
    let booked = streams::booked(registry, admission.carrying(registry), me);
    let booked = complete(allowed(booked, blocked), ties, me);
    let (booked, announced) = lasting(booked, registry, announced);
    let pairs = with_declined(admission, claims, pairs);
    let Sorted { mut live, waiting, unanswered } = sort(admission, me, claims, &pairs, &booked);
    live.extend(booked.iter().map(|pair| (pair.key(), pair)));
    let shared = share(live.values().copied());
    live.extend(shared.iter().map(|pair| (pair.key(), pair)));
    let mut installed = streams::plan(live.values().copied());
    accept_by_spares(admission, registry, &mut installed);
    let booked: BTreeSet<PairKey> = booked.iter().map(Pair::key).collect();
    let early: BTreeSet<PairKey> = booked.intersection(&ties.incomplete).copied().collect();
    let carried = Carried { me, live: &live, waiting: &waiting };
    let only = lingering.carry_on(now, &carried, booked, before, &mut installed);
    let awaited =
        |key: &&PairKey| key.1.node == me && !live.contains_key(*key) && !only.contains(*key);
    let awaited = waiting.keys().filter(awaited).map(|(_, publisher)| *publisher).collect();
    let mut keys: Vec<PairKey> = live.keys().copied().chain(only).collect();
    keys.sort_unstable();
    let matching = keys.iter().map(|(_, publisher)| *publisher).collect();
    keys.retain(|key| !early.contains(key));
    let streams = NewStreams { installed, matching, awaited, heard: hear(&keys, me) };
    Planned { streams, announced, unanswered, best_effort: best_effort_here(&pairs, me) }
}

/// Returns the carried pairs of local subscriptions, ordered by subscription.
fn hear(carried: &[PairKey], me: NodeId) -> Vec<PairKey> {
    let here = carried.iter().filter(|pair| pair.0.node == me);
    let mut heard: Vec<PairKey> = here.copied().collect();
    heard.sort_by_key(|pair| pair.0);
    heard
}

/// Returns the pairs that are not blocked.
fn allowed<'a>(mut pairs: Vec<Pair<'a>>, blocked: &BTreeMap<PairKey, Blocked>) -> Vec<Pair<'a>> {
    pairs.retain(|pair| !blocked.contains_key(&pair.key()));
    pairs
}

/// Returns the pairs that end at `me` as best effort, with the reasons.
fn best_effort_here(pairs: &[Pair<'_>], me: NodeId) -> BTreeMap<PairKey, BestEffort> {
    let here = pairs.iter().filter(|pair| pair.subscription.node == me);
    here.filter_map(|pair| Some((pair.key(), pair.best_effort()?))).collect()
}

/// Returns the pairs without those that end at `me` and wait for the opposite contract.
///
/// The subscriber's end of a follower waits for the lead only: the first samples may arrive before the follower's mark.
fn complete<'a>(mut pairs: Vec<Pair<'a>>, ties: &Ties, me: NodeId) -> Vec<Pair<'a>> {
    let waits = |pair: &Pair<'_>| {
        let key = pair.key();
        let begins = pair.publisher.node == me && ties.incomplete.contains(&key);
        begins || pair.subscription.node == me && ties.waits_for_lead(key)
    };
    pairs.retain(|pair| !waits(pair));
    pairs
}

/// Returns the pairs without those whose subscription has left the registry, and those whose subscription is in it.
///
/// A node learns that before the publisher's node, which ends the reservation then. So it accepts the streams that the
/// others of a shared stream will have before they begin.
fn lasting<'a>(
    mut booked: Vec<Pair<'a>>,
    registry: &Registry,
    before: &BTreeSet<PairKey>,
) -> (Vec<Pair<'a>>, BTreeSet<PairKey>) {
    let is_there = |pair: &Pair<'_>| {
        let record = registry.record(pair.subscription.node);
        record.is_some_and(|record| record.subscriptions.contains_key(&pair.subscription))
    };
    let mut announced = BTreeSet::new();
    booked.retain(|pair| {
        let (there, key) = (is_there(pair), pair.key());
        if there || before.contains(&key) {
            announced.insert(key);
        }
        // The publisher's node ends its reservation itself.
        there || !before.contains(&key) || pair.publisher.node == registry.me()
    });
    (booked, announced)
}

/// Accepts the samples of a pair with a spare from both paths: after a takeover they may arrive before its announcement.
fn accept_by_spares(
    admission: &Admission,
    registry: &Registry,
    installed: &mut BTreeMap<SourceKey, Installed>,
) {
    for pair in streams::booked(registry, admission.standby(registry), registry.me()) {
        if let Some(stream) = installed.get_mut(&pair.source()) {
            stream.from.extend(pair.place.before);
        }
    }
}

/// Sets the limits of the samples that arrive for each stream.
pub(super) fn limit_entries(
    access: &Access,
    registry: &Registry,
    installed: &mut BTreeMap<SourceKey, Installed>,
) {
    for (source, stream) in installed {
        let published = (source.publisher.node, &stream.publisher.tag);
        let contracted = stream.outputs.iter().any(|output| output.contract.is_some());
        stream.entry = access.entry_limits(registry, published, (&stream.from, contracted));
    }
}

/// Marks the pairs whose contract only the publisher requests, and their path refuses: they are carried as best
/// effort.
fn with_declined<'a>(
    admission: &Admission,
    claims: &Claims<'_>,
    mut pairs: Vec<Pair<'a>>,
) -> Vec<Pair<'a>> {
    let of_contracts = claims.refusals().filter(|(_, _, refusal)| refusal.is_of_contract());
    let refused: BTreeSet<(PairKey, u64)> =
        of_contracts.map(|(_, &key, refusal)| (key, refusal.revision)).collect();
    for pair in pairs.iter_mut().filter(|pair| pair.is_asked_by_publisher()) {
        let (key, revision) = (pair.key(), pair.request.revision);
        let now = refused.contains(&(key, revision)) || admission.declines(key, revision);
        if now && admission.booking_of(key).is_none() {
            pair.without = Some(BestEffort::Refused);
        }
    }
    pairs
}

/// Sorts the pairs of this node by the state of their current requests.
fn sort<'p, 'a>(
    admission: &Admission,
    me: NodeId,
    claims: &Claims<'_>,
    pairs: &'p [Pair<'a>],
    booked: &[Pair<'_>],
) -> Sorted<'p, 'a> {
    let others = claims.refusals().filter(|(node, ..)| *node != me);
    let foreign: BTreeMap<PairKey, u64> =
        others.map(|(_, key, refusal)| (*key, refusal.revision)).collect();
    let granted: BTreeMap<PairKey, u64> =
        booked.iter().map(|pair| (pair.key(), pair.request.revision)).collect();
    let mut sorted = Sorted::default();
    for pair in pairs {
        let (key, revision) = (pair.key(), pair.request.revision);
        let declined = pair.without == Some(BestEffort::Refused);
        let refused =
            !declined && (foreign.get(&key) == Some(&revision) || admission.refuses(key, revision));
        // The subscription's node will roll back a refused change. The previous stream continues until
        // then.
        let changed = revision > 0 && !pair.request.or_stop;
        let waits = pair.is_reserved() || pair.obstacle().is_some();
        if refused && changed || !refused && waits {
            sorted.waiting.insert(key, pair);
        } else if !refused {
            sorted.live.insert(key, pair);
        }
        let asks = pair.is_reserved() || impossible(pair).is_some();
        let answered = refused || granted.get(&key) == Some(&revision);
        if asks && !answered && pair.subscription.node == me {
            sorted.unanswered.insert(pair.subscription);
        }
    }
    sorted
}
