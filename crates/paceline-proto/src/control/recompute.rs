//! Computes this node's streams from the registry, and outputs their changes.

mod plan;
mod report;

use crate::control::Control;
use crate::control::contracts::admission::{Admission, Round, impossible};
use crate::control::contracts::pair::Pair;
use crate::control::contracts::streams::{self, Installed};
use crate::control::contracts::tie::Ties;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::{ANY, Refusal, RefusalReason};
use crate::control::data::spec::SubscriptionSpec;
use crate::control::membership::Membership;
use crate::control::membership::access::{Access, Blocked};
use crate::control::membership::claims::Claims;
use crate::control::membership::graph::Tree;
use crate::control::membership::registry::{Change, Registry};
use crate::control::routing::auto;
use crate::control::routing::spare::PathFinder;
use crate::control::routing::wanted::{drop_excess, wanted};
use crate::form::Form;
use crate::ids::{NodeId, PublisherId};
use crate::plan::{OutputPlan, SourceKey, Target};
use paceline_admit::reserve::Key;
use paceline_sched::Instant;
use plan::{NewStreams, Planned, View, limit_entries, plan};
use std::collections::{BTreeMap, BTreeSet};

/// The pairs of this node that the rights of all nodes allow.
struct Permitted<'a> {
    pairs: Vec<Pair<'a>>,
    /// The other ones, with the reasons.
    blocked: BTreeMap<PairKey, Blocked>,
    /// The refusals for missing rights, also of whole subscriptions and publishers.
    refusals: BTreeMap<PairKey, Refusal>,
}

/// The results of the decisions on requests.
struct Decided {
    /// False if the decisions must be continued after their first outputs.
    is_complete: bool,
    /// The changed marks and places of pairs.
    marks: Vec<Change>,
}

/// Returns the pairs of this node, and those that are not among them because a leaf has too many.
fn bounded<'a>(
    (registry, tree): (&'a Registry, &'a Tree),
    access: &mut Access,
    admission: &Admission,
) -> (Vec<Pair<'a>>, BTreeMap<PairKey, Blocked>) {
    let contracts = admission.bookings().map(|booking| booking.pair).collect();
    let allowance = access.allowance(registry, tree, contracts);
    let mut wanted = wanted(registry, (tree, &allowance), registry.me());
    let too_many = drop_excess(&mut wanted, &allowance).into_iter();
    access.note_over(&allowance);
    let pairs = wanted.into_iter().map(Pair::from).collect();
    (pairs, too_many.map(|(key, (of, lack))| (key, Blocked::Rights(of, lack))).collect())
}

/// Returns the names of the reservations of blocked pairs on this node.
fn reserved(admission: &Admission, blocked: &BTreeMap<PairKey, Blocked>) -> Vec<Key> {
    let booked = admission.bookings().filter(|booking| blocked.contains_key(&booking.pair));
    booked.map(|booking| booking.name.key).collect()
}

/// Requests and releases the reservations of this node's pairs, except the pairs that another node has `denied`, and closes
/// the `forbidden` ones.
fn decide(
    (admission, places): (&mut Admission, &mut auto::State),
    now: Instant,
    round: &Round<'_>,
    pairs: &[Pair<'_>],
    (denied, forbidden): (&BTreeMap<PairKey, u64>, &[Key]),
) -> Decided {
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
    let mut marks = admission.marks(round, &asking);
    let is_refused = |key| admission.is_refused(key);
    marks.extend(places.plan(round.registry, round.tree, is_refused, pairs));
    forbidden.iter().for_each(|key| admission.reservations.forbid(now, *key));
    Decided { is_complete, marks }
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

/// Returns the pairs of this node that all nodes allow.
fn permitted<'a>(
    view: (&'a Registry, &'a Tree),
    access: &mut Access,
    admission: &Admission,
    hops: impl Iterator<Item = NodeId>,
) -> Permitted<'a> {
    let (registry, _) = view;
    let (mut pairs, too_many) = bounded(view, access, admission);
    let booked = streams::booked(registry, admission.bookings(), registry.me());
    let mut blocked = access.blocked(registry, pairs.iter().chain(&booked));
    blocked.extend(too_many);
    let refusals = access.refusals(registry, hops, &blocked);
    pairs.retain(|pair| !blocked.contains_key(&pair.key()));
    Permitted { pairs, blocked, refusals }
}

impl Control {
    /// Recomputes all streams and outputs the differences.
    pub(super) fn recompute(&mut self) {
        self.end_idle_marks();
        self.forget_scaling();
        let tree = Tree::new(&self.membership.registry, self.me);
        self.membership.registry.mark(self.now, |node| tree.reaches(node));
        self.follow_media();
        let Membership { ref registry, ref mut access, ref hops, .. } = self.membership;
        let admission = &self.contracts.admission;
        let Permitted { pairs, blocked, refusals } =
            permitted((registry, &tree), access, admission, hops.keys().copied());
        let (ties, claims) = (Ties::new(registry, &tree), Claims::new(registry, &tree));
        let denied = blocked_elsewhere(&claims, self.me);
        let barred = denied.keys().chain(blocked.keys()).copied().collect();
        let paths = PathFinder { registry, tree: &tree, known: &self.routing.second_paths };
        let round = Round {
            me: self.me,
            registry,
            tree: &tree,
            paths: &paths,
            news: self.news,
            ties: &ties,
            blocked: &barred,
        };
        let forbidden = reserved(&self.contracts.admission, &blocked);
        let decided = decide(
            (&mut self.contracts.admission, &mut self.routing.places),
            self.now,
            &round,
            &pairs,
            (&denied, &forbidden),
        );
        let view = View { me: self.me, registry, claims: &claims, ties: &ties };
        let mut planned =
            plan(self.now, &view, &mut self.contracts, (pairs, &blocked), &self.streams.installed);
        limit_entries(&self.membership.access, registry, &mut planned.streams.installed);
        let incomplete = ties.incomplete;
        self.announce_decisions(decided, refusals);
        self.report(&tree, planned, &incomplete);
        self.follow_media();
    }

    /// Announces the changes of refusals, marks and places, and schedules the next round.
    fn announce_decisions(
        &mut self,
        Decided { is_complete, marks }: Decided,
        refusals: BTreeMap<PairKey, Refusal>,
    ) {
        let news = self.news;
        // These announcements are already included in the streams.
        self.dirty = false;
        let marked = !marks.is_empty();
        for change in self.contracts.admission.take_changes().into_iter().chain(marks) {
            self.announce(change, None);
        }
        self.announce_rights(refusals);
        self.send_refusal_overflow();
        // Otherwise the next round begins at the next timeout, after the outputs of this one.
        self.dirty = marked && is_complete;
        self.news = marked || news && !is_complete;
    }

    /// Reports the streams and the answers of a round, if they have changed. The `incomplete` pairs are not in force.
    fn report(&mut self, tree: &Tree, planned: Planned, incomplete: &BTreeSet<PairKey>) {
        let Planned { streams, announced, unanswered, best_effort } = planned;
        let NewStreams { installed, matching, awaited, heard } = streams;
        self.contracts.announced = announced;
        self.streams.awaited = awaited;
        self.report_installs(installed);
        self.report_matching(matching);
        self.report_heard(heard);
        let mut refusals = self.refusals_here(tree);
        self.relax_refused(&mut refusals);
        self.relieve(tree);
        let refused = self.refused_changes(&refusals);
        let answers = self.answers(refusals, &refused, best_effort, incomplete);
        self.report_answers(answers);
        self.follow_changes(refused, unanswered);
        self.follow_reservations();
    }

    /// Returns true if samples of a publisher leave this node to the neighbour `hop`, in any form.
    #[must_use]
    pub fn sends_to(&self, publisher: PublisherId, hop: NodeId) -> bool {
        self.outputs_of(publisher).any(|output| output.target == Target::Hop(hop))
    }

    /// Returns the streams of a publisher's samples in any form.
    fn outputs_of(&self, publisher: PublisherId) -> impl Iterator<Item = &OutputPlan> {
        let first = SourceKey { publisher, form: Form::FULL };
        let its = self.streams.installed.range(first..);
        let its = its.take_while(move |(source, _)| source.publisher == publisher);
        its.flat_map(|(_, installed)| &installed.outputs)
    }

    /// Returns true if a removed stream to the neighbour `hop` must send its queue under its contract, because its samples
    /// are those of subscriptions whose contracts another stream satisfies from now on. At least one of the two is shared.
    ///
    /// Valid until the stream is sent again.
    #[must_use]
    pub fn hands_over(&self, source: SourceKey, hop: NodeId, form: Form) -> bool {
        self.streams.handed.contains(&(source, hop, form))
    }

    /// Returns the streams of `before` that other streams replace ([`Self::hands_over`]).
    fn handed_over(
        &self,
        before: &BTreeMap<SourceKey, Installed>,
    ) -> BTreeSet<(SourceKey, NodeId, Form)> {
        let mut handed = BTreeSet::new();
        let changed = |(source, old): &(&SourceKey, &Installed)| {
            self.streams.installed.get(source) != Some(*old)
        };
        for (source, old) in before.iter().filter(changed) {
            let now = self.streams.installed.get(source).map_or(&[][..], |now| &now.outputs);
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
        let mine = self.membership.registry.record(self.me);
        let claims = Claims::new(&self.membership.registry, tree);
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
