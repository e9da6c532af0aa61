//! Computes this node's streams from the registry, and outputs their changes.

mod report;

use super::Control;
use super::access::{Access, Blocked};
use super::admission::{Admission, Round, impossible};
use super::best_effort::BestEffort;
use super::claims::Claims;
use super::graph::Tree;
use super::linger::Carried;
use super::pair::Pair;
use super::refusal::{ANY, Refusal, RefusalReason};
use super::registry::{Change, PairKey, Registry};
use super::routes::{self, Installed};
use super::shares::share;
use super::spec::SubscriptionSpec;
use super::tie::Ties;
use crate::form::Form;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::plan::{OutputPlan, SourceKey, Target};
use paceline_admit::reserve::Key;
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// This node's streams and the resulting notifications.
struct Streams {
    installed: BTreeMap<SourceKey, Installed>,
    matching: BTreeSet<PublisherId>,
    heard: Vec<PairKey>,
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

/// Returns the publishers of a subscription among pairs that are ordered by subscription.
pub(super) fn publishers_of(
    heard: &[PairKey],
    subscription: SubscriptionId,
) -> impl Iterator<Item = PublisherId> {
    let from = heard.partition_point(|pair| pair.0 < subscription);
    heard.iter().skip(from).take_while(move |pair| pair.0 == subscription).map(|pair| pair.1)
}

/// Returns the pairs of this node, and those that are not among them because a leaf has too many.
fn bounded<'a>(
    (registry, tree): (&'a Registry, &'a Tree),
    access: &mut Access,
    admission: &Admission,
) -> (Vec<Pair<'a>>, BTreeMap<PairKey, Blocked>) {
    let contracts = admission.bookings().map(|booking| booking.pair).collect();
    let allowance = access.allowance(registry, tree, contracts);
    let mut pairs = routes::pairs(registry, (tree, &allowance), registry.me());
    let too_many = routes::drop_excess(&mut pairs, &allowance).into_iter();
    access.note_over(&allowance);
    (pairs, too_many.map(|(key, (of, lack))| (key, Blocked::Rights(of, lack))).collect())
}

/// Returns the pairs that are not blocked.
fn allowed<'a>(mut pairs: Vec<Pair<'a>>, blocked: &BTreeMap<PairKey, Blocked>) -> Vec<Pair<'a>> {
    pairs.retain(|pair| !blocked.contains_key(&pair.key()));
    pairs
}

/// Returns the names of the reservations of blocked pairs on this node.
fn reserved(admission: &Admission, blocked: &BTreeMap<PairKey, Blocked>) -> Vec<Key> {
    let booked = admission.bookings().filter(|booking| blocked.contains_key(&booking.pair));
    booked.map(|booking| booking.name.key).collect()
}

/// Returns the pairs that end at `me` as best effort, with the reasons.
fn best_effort_here(pairs: &[Pair<'_>], me: NodeId) -> BTreeMap<PairKey, BestEffort> {
    let here = pairs.iter().filter(|pair| pair.subscription.node == me);
    here.filter_map(|pair| Some((pair.key(), pair.best_effort()?))).collect()
}

/// Requests and releases the reservations of this node's pairs, except those that another node blocks. Returns the
/// new marks of pairs.
fn decide(
    admission: &mut Admission,
    now: Instant,
    round: &Round<'_>,
    pairs: &[Pair<'_>],
    denied: &BTreeMap<PairKey, u64>,
) -> (bool, Vec<Change>) {
    let asking = |pair: &&Pair<'_>| denied.get(&pair.key()) != Some(&pair.request.revision);
    let own = pairs.iter().filter(|pair| pair.publisher.node == round.me).filter(asking);
    // Most pairs are best effort, and not copied.
    let acts = |pair: &Pair<'_>| {
        let tied = round.ties.contains(pair.key());
        tied || impossible(pair).is_some() || pair.is_reserved()
    };
    let asking: Vec<Pair<'_>> =
        own.map(|pair| admission.awoken(pair.clone())).filter(acts).collect();
    let is_complete = admission.decide(now, round, &asking);
    (is_complete, admission.marks(round, &asking))
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

/// Returns the pairs that other nodes block, with the revisions of their requests.
fn blocked_elsewhere(claims: &Claims<'_>, me: NodeId) -> BTreeMap<PairKey, u64> {
    let refusals = claims.refusals().filter(|(node, ..)| *node != me);
    let blocks = |refusal: &Refusal| {
        matches!(refusal.reason, RefusalReason::Rights { .. } | RefusalReason::Unencrypted)
    };
    refusals
        .filter(|(_, _, refusal)| blocks(refusal))
        .map(|(_, &key, refusal)| (key, refusal.revision))
        .collect()
}

/// Accepts the samples of a pair with a spare from both paths: after a takeover they may arrive before its announcement.
fn accept_by_spares(
    admission: &Admission,
    registry: &Registry,
    installed: &mut BTreeMap<SourceKey, Installed>,
) {
    for pair in routes::booked(registry, admission.standby(registry), registry.me()) {
        if let Some(stream) = installed.get_mut(&pair.source()) {
            stream.from.extend(pair.place.before);
        }
    }
}

impl Control {
    /// Recomputes all streams and outputs the differences.
    pub(super) fn recompute(&mut self) {
        self.end_idle_marks();
        self.forget_scaling();
        let tree = Tree::new(&self.registry, self.me);
        self.registry.mark(self.now, |node| tree.reaches(node));
        let (pairs, too_many) = bounded((&self.registry, &tree), &mut self.access, &self.admission);
        let booked = routes::booked(&self.registry, self.admission.bookings(), self.me);
        let mut blocked = self.access.blocked(&self.registry, pairs.iter().chain(&booked));
        blocked.extend(too_many);
        let forbidden = reserved(&self.admission, &blocked);
        let rights = self.access.refusals(&self.registry, self.hops.keys().copied(), &blocked);
        let pairs = allowed(pairs, &blocked);
        let (me, registry, news) = (self.me, &self.registry, self.news);
        let ties = Ties::new(registry, &tree);
        let claims = Claims::new(registry, &tree);
        let denied = blocked_elsewhere(&claims, me);
        let barred = denied.keys().chain(blocked.keys()).copied().collect();
        let round = Round { me, registry, tree: &tree, news, ties: &ties, blocked: &barred };
        let (is_complete, mut marks) =
            decide(&mut self.admission, self.now, &round, &pairs, &denied);
        marks.extend(self.places.plan(registry, &tree, &self.admission, &pairs));
        forbidden.into_iter().for_each(|key| self.admission.reservations.forbid(self.now, key));
        let carrying = self.admission.carrying(&self.registry);
        let booked = routes::booked(&self.registry, carrying, self.me);
        let booked = complete(allowed(booked, &blocked), &ties, me);
        let (booked, announced) = lasting(booked, &self.registry, &self.announced);
        let pairs = self.with_declined(&claims, pairs);
        let Sorted { mut live, waiting, unanswered } = self.sort(&claims, &pairs, &booked);
        live.extend(booked.iter().map(|pair| (pair.key(), pair)));
        let shared = share(live.values().copied());
        live.extend(shared.iter().map(|pair| (pair.key(), pair)));
        let mut installed = routes::plan(live.values().copied());
        accept_by_spares(&self.admission, registry, &mut installed);
        let carried = Carried { me, live: &live, waiting: &waiting };
        let before = &self.installed;
        let booked: BTreeSet<PairKey> = booked.iter().map(Pair::key).collect();
        let early: BTreeSet<PairKey> = booked.intersection(&ties.incomplete).copied().collect();
        let only = self.lingering.carry_on(self.now, &carried, booked, before, &mut installed);
        let awaited =
            |key: &&PairKey| key.1.node == me && !live.contains_key(*key) && !only.contains(*key);
        let awaited = waiting.keys().filter(awaited).map(|(_, publisher)| *publisher).collect();
        let mut keys: Vec<PairKey> = live.keys().copied().chain(only).collect();
        keys.sort_unstable();
        let best_effort = best_effort_here(&pairs, me);
        let matching = keys.iter().map(|(_, publisher)| *publisher).collect();
        keys.retain(|key| !early.contains(key));
        self.access.limit_entries(registry, &mut installed);
        let streams = Streams { installed, matching, heard: self.hear(&keys) };
        // These announcements are already included in the streams.
        self.dirty = false;
        let marked = !marks.is_empty();
        for change in self.admission.take_changes().into_iter().chain(marks) {
            self.announce(change, None);
        }
        (self.incomplete, self.announced) = (ties.incomplete, announced);
        self.announce_rights(rights);
        self.send_refusal_overflow();
        // Otherwise the next round begins at the next timeout, after the outputs of this one.
        self.dirty = marked && is_complete;
        (self.news, self.awaited) = (marked || news && !is_complete, awaited);
        self.report_installs(streams.installed);
        self.report_matching(streams.matching);
        self.report_heard(streams.heard);
        let answers = self.refusals_here(&tree);
        let refused = self.refused_changes(&answers);
        self.report_promises(answers, &refused);
        self.report_best_effort(best_effort);
        self.follow_changes(refused, unanswered);
        self.follow_reservations();
    }

    /// Marks the pairs whose contract only the publisher requests, and their path refuses: they are carried as best
    /// effort.
    fn with_declined<'a>(&self, claims: &Claims<'_>, mut pairs: Vec<Pair<'a>>) -> Vec<Pair<'a>> {
        let of_contracts = claims.refusals().filter(|(_, _, refusal)| refusal.is_of_contract());
        let refused: BTreeSet<(PairKey, u64)> =
            of_contracts.map(|(_, &key, refusal)| (key, refusal.revision)).collect();
        for pair in pairs.iter_mut().filter(|pair| pair.is_asked_by_publisher()) {
            let (key, revision) = (pair.key(), pair.request.revision);
            let now = refused.contains(&(key, revision)) || self.admission.declines(key, revision);
            if now && self.admission.booking_of(key).is_none() {
                pair.without = Some(BestEffort::Refused);
            }
        }
        pairs
    }

    /// Sorts the pairs of this node by the state of their current requests.
    fn sort<'p, 'a>(
        &self,
        claims: &Claims<'_>,
        pairs: &'p [Pair<'a>],
        booked: &[Pair<'_>],
    ) -> Sorted<'p, 'a> {
        let others = claims.refusals().filter(|(node, ..)| *node != self.me);
        let foreign: BTreeMap<PairKey, u64> =
            others.map(|(_, key, refusal)| (*key, refusal.revision)).collect();
        let granted: BTreeMap<PairKey, u64> =
            booked.iter().map(|pair| (pair.key(), pair.request.revision)).collect();
        let mut sorted = Sorted::default();
        for pair in pairs {
            let (key, revision) = (pair.key(), pair.request.revision);
            let declined = pair.without == Some(BestEffort::Refused);
            let refused = !declined
                && (foreign.get(&key) == Some(&revision) || self.admission.refuses(key, revision));
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
            if asks && !answered && pair.subscription.node == self.me {
                sorted.unanswered.insert(pair.subscription);
            }
        }
        sorted
    }

    /// Returns the carried pairs of local subscriptions, ordered by subscription.
    fn hear(&self, carried: &[PairKey]) -> Vec<PairKey> {
        let here = carried.iter().filter(|pair| pair.0.node == self.me);
        let mut heard: Vec<PairKey> = here.copied().collect();
        heard.sort_by_key(|pair| pair.0);
        heard
    }

    /// Returns true if samples of a publisher leave this node to the neighbour `hop`, in any form.
    #[must_use]
    pub fn sends_to(&self, publisher: PublisherId, hop: NodeId) -> bool {
        self.outputs_of(publisher).any(|output| output.target == Target::Hop(hop))
    }

    /// Returns the streams of a publisher's samples in any form.
    fn outputs_of(&self, publisher: PublisherId) -> impl Iterator<Item = &OutputPlan> {
        let first = SourceKey { publisher, form: Form::FULL };
        let its = self.installed.range(first..);
        let its = its.take_while(move |(source, _)| source.publisher == publisher);
        its.flat_map(|(_, installed)| &installed.outputs)
    }

    /// Returns true if a removed stream to the neighbour `hop` must send its queue under its contract, because its samples
    /// are those of subscriptions whose contracts another stream satisfies from now on. At least one of the two is shared.
    ///
    /// Valid until the stream is sent again.
    #[must_use]
    pub fn hands_over(&self, source: SourceKey, hop: NodeId, form: Form) -> bool {
        self.handed.contains(&(source, hop, form))
    }

    /// Returns the streams of `before` that other streams replace ([`Self::hands_over`]).
    fn handed_over(
        &self,
        before: &BTreeMap<SourceKey, Installed>,
    ) -> BTreeSet<(SourceKey, NodeId, Form)> {
        let mut handed = BTreeSet::new();
        let changed =
            |(source, old): &(&SourceKey, &Installed)| self.installed.get(source) != Some(*old);
        for (source, old) in before.iter().filter(changed) {
            let now = self.installed.get(source).map_or(&[][..], |now| &now.outputs);
            for output in old.outputs.iter().filter(|output| output.contract.is_some()) {
                let Target::Hop(hop) = output.target else { continue };
                let stays =
                    now.iter().any(|it| (it.target, it.form) == (output.target, output.form));
                let follows = |it: &OutputPlan| {
                    let both =
                        || it.subscriptions.iter().any(|id| output.subscriptions.contains(id));
                    let shared = it.subscriptions.len() > 1 || output.subscriptions.len() > 1;
                    it.target == output.target && it.contract.is_some() && shared && both()
                };
                if !stays && self.outputs_of(source.publisher).any(follows) {
                    handed.insert((*source, hop, output.form));
                }
            }
        }
        handed
    }

    /// Returns the refusals of the current requests of local subscriptions and publishers. Refusals of older
    /// requests no longer apply. If several nodes refuse the same pair, the first node's refusal counts.
    fn refusals_here(&self, tree: &Tree) -> BTreeMap<PairKey, Refusal> {
        let mut refused: BTreeMap<PairKey, Refusal> = BTreeMap::new();
        let mine = self.registry.record(self.me);
        let claims = Claims::new(&self.registry, tree);
        for (_, key, refusal) in claims.refusals() {
            // The other end cannot help that a right is missing.
            let [sends, receives] = refusal.concerned_ends();
            let concerns = mine.is_some_and(|mine| {
                // Of a contract that only the publisher requests, the subscription learns that it has none.
                let asks =
                    |spec: &SubscriptionSpec| spec.wants_contract() || !refusal.is_of_contract();
                receives && mine.subscriptions.get(&key.0).is_some_and(asks)
                    || sends && mine.publishers.contains_key(&key.1)
            });
            let current = || self.subscription(key.0).map(|spec| spec.revision);
            let current = key.0.index == ANY || current() == Some(refusal.revision);
            if concerns && !refused.contains_key(key) && current {
                refused.insert(*key, refusal.clone());
            }
        }
        refused
    }
}
