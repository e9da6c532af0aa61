//! Which pairs are carried: a path promises all of it, or nothing of it leaves the publisher's node.
//!
//! A pair that asks for a contract is reserved along its whole path before its first sample
//! ([`paceline_admit::reserve`]): the publisher's node asks, every node of the path tests and holds its own
//! outgoing link, the subscription's node agrees, and on the way back each node installs its part, so that
//! who is further from the publisher is ready first. What is installed is carried, by the path and in the
//! form that were asked for; the registry only says what is to be asked for. A change is asked for beside
//! what is installed. What is refused is told with the node, the link and the number, and is asked for again
//! when what it was made of has changed, and now and then.
//!
//! Pairs without a contract, and those whose path has no link with a capacity, are carried as the registry
//! has them.

mod answers;
mod turns;

use super::booking::{Booking, request};
use super::graph::Tree;
use super::links::Links;
use super::refusal::{Offer, Refusal, RefusalReason};
use super::registry::{Change, PairKey, Registry};
use super::routes::Pair;
use super::spec::{HopInfo, PublisherSpec, SubscriptionSpec};
use crate::form::Size;
use crate::ids::NodeId;
use paceline_admit::reserve::{Key, Node, Reason, Request, RequestError, Reservations, Timing};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use turns::{TURN, Turns};

/// What time does to reservations is done together, in steps of this.
const STEP_NANOS: u64 = 50_000_000;

/// Hops repeat what is lost by themselves, and a hop that is gone is told of; messages and refreshes
/// repeated here are for what no one tells of.
const TIMING: Timing = Timing {
    refresh: Duration::from_secs(5),
    losses: 3,
    tentative: Duration::from_secs(4),
    retry: Duration::from_secs(1),
    retries: 2,
    memory: Duration::from_secs(2),
    backoff: Duration::ZERO,
    backoff_max: Duration::ZERO,
};

/// What a request or a refusal was made on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Basis {
    spec: Arc<PublisherSpec>,
    pub(super) request: SubscriptionSpec,
    pub(super) path: Vec<NodeId>,
    hops: Vec<HopInfo>,
}

impl Basis {
    fn of(pair: &Pair<'_>, registry: &Registry, tree: &Tree) -> Option<Self> {
        let path = tree.path(pair.subscription.node)?;
        let hop = |(from, to): (&NodeId, &NodeId)| {
            registry.record(*from).and_then(|record| record.neighbours.get(to)).cloned()
        };
        let hops = path.iter().zip(path.iter().skip(1)).filter_map(hop).collect();
        Some(Self { spec: Arc::clone(pair.spec), request: pair.request.clone(), path, hops })
    }
}

/// How far a pair has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Standing {
    /// Its path was asked and has not answered.
    Pending,
    /// Its path holds it.
    Granted,
    /// It was refused, and the nodes of the path are asked what they would promise.
    Surveyed,
}

/// What this node has asked for a pair.
#[derive(Debug)]
struct Asked {
    key: Option<Key>,
    basis: Basis,
    request: Request,
    standing: Standing,
    /// What its path holds, and what that was asked for on.
    granted: Option<(Request, Basis)>,
    /// Before this instant another path is not asked for again.
    retry_at: Instant,
}

impl Asked {
    /// True if a refusal of the last request leaves in force what an earlier one was granted.
    fn keeps_granted(&self) -> bool {
        self.keeps_granted_from(&self.basis)
    }

    /// The same of a refusal of what is asked for on `basis`: it is another request of the subscription, and not one
    /// that would rather have nothing than what was there before.
    fn keeps_granted_from(&self, basis: &Basis) -> bool {
        let before = self.granted.as_ref().map(|(_, before)| before.request.revision);
        before.is_some_and(|before| before != basis.request.revision) && !basis.request.or_stop
    }
}

/// What was asked for a pair and is not granted: it is not carried now, or only as an earlier request was granted.
#[derive(Clone, Debug)]
struct Hold {
    /// What was told; nothing as long as the path only does not answer.
    refusal: Option<Refusal>,
    /// Before this instant it is not asked for again unless it asks for something else.
    until: Instant,
    /// When it is asked for again in any case.
    again: Instant,
    tries: u32,
    basis: Basis,
}

/// All that is promised here, and what became of what was asked for.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(super) reservations: Reservations,
    pub(super) links: Links,
    bookings: BTreeMap<Key, Booking>,
    asks: BTreeMap<PairKey, Asked>,
    keys: BTreeMap<Key, PairKey>,
    holds: BTreeMap<PairKey, Hold>,
    /// How many of them have a refusal.
    pub(super) refused: usize,
    /// Changes of this node's refusals that were not announced yet.
    changes: Vec<Change>,
    /// Refusals that there is no room for in this node's record, and that were not told yet.
    untold: Vec<Refusal>,
    denials: Vec<(PairKey, NodeId, Reason)>,
    silent: Vec<(PairKey, NodeId)>,
    wake: Instant,
    rounds: u64,
    turns: Turns,
}

/// A refusal of which the nodes of the path are to say what they would promise.
pub(super) struct Survey {
    pub(super) pair: PairKey,
    pub(super) path: Vec<NodeId>,
    /// What was refused; the subscription may ask for something else by now.
    pub(super) request: SubscriptionSpec,
    /// Who refused.
    pub(super) node: NodeId,
    /// What there was too little of there.
    pub(super) lack: paceline_admit::Refusal,
    /// What was asked for, in bits per second.
    pub(super) rate: u64,
}

/// Where a round of decisions stands.
pub(super) struct Round<'r> {
    pub(super) me: NodeId,
    pub(super) registry: &'r Registry,
    /// From this node.
    pub(super) tree: &'r Tree,
    /// Something is other than in the round before, and may have made room.
    pub(super) news: bool,
}

impl Admission {
    pub(super) fn new(me: NodeId) -> Self {
        Self {
            reservations: Reservations::new(Node(me.0), 1, TIMING, me.0),
            links: Links::default(),
            bookings: BTreeMap::new(),
            asks: BTreeMap::new(),
            keys: BTreeMap::new(),
            holds: BTreeMap::new(),
            refused: 0,
            changes: Vec::new(),
            untold: Vec::new(),
            denials: Vec::new(),
            silent: Vec::new(),
            wake: Instant::FAR,
            rounds: 0,
            turns: Turns::new(),
        }
    }

    /// True if request `revision` of a pair is not carried for a reason that was told.
    pub(super) fn refuses(&self, key: PairKey, revision: u64) -> bool {
        self.holds.get(&key).is_some_and(|hold| hold.basis.request.revision == revision)
    }

    pub(super) fn wake_at(&self) -> Instant {
        self.wake
    }

    /// When time does something to reservations.
    pub(super) fn reservations_at(&self) -> Instant {
        match self.reservations.next_wake() {
            Instant::FAR => Instant::FAR,
            at => {
                Instant::from_nanos(at.as_nanos().div_ceil(STEP_NANOS).saturating_mul(STEP_NANOS))
            }
        }
    }

    /// What is to be announced of this node's refusals.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        core::mem::take(&mut self.changes)
    }

    /// Refusals that are to be told to those who asked alone.
    pub(super) fn take_untold(&mut self) -> Vec<Refusal> {
        core::mem::take(&mut self.untold)
    }

    /// What is installed on this node, one for each pair.
    pub(super) fn bookings(&self) -> impl Iterator<Item = &Booking> {
        let newest: BTreeMap<PairKey, &Booking> =
            self.bookings.values().map(|booking| (booking.pair, booking)).collect();
        newest.into_values()
    }

    /// What the pair holds on this node, if anything.
    pub(super) fn booking_of(&self, pair: PairKey) -> Option<&Booking> {
        self.bookings.values().rev().find(|booking| booking.pair == pair)
    }

    /// Asks for what the pairs of this node's publishers need and do not have, and gives back what nobody
    /// needs any more. `pairs` come in the order of their keys.
    pub(super) fn decide(&mut self, now: Instant, round: &Round<'_>, pairs: &[Pair<'_>]) {
        self.rounds += 1;
        self.wake = Instant::FAR;
        let own = |pair: &&Pair<'_>| pair.publisher.node == round.me;
        let acts = |pair: &&Pair<'_>| too_large(pair).is_some() || pair.is_reserved();
        let acts: Vec<&Pair<'_>> = pairs.iter().filter(own).filter(acts).collect();
        self.give_back(now, &acts);
        let pending = |asked: &&Asked| asked.standing == Standing::Pending;
        self.turns.count(self.asks.values().filter(pending).count());
        for pair in acts {
            let Some(basis) = Basis::of(pair, round.registry, round.tree) else { continue };
            if let Some((asked, source)) = too_large(pair) {
                if self.holds.get(&pair.key()).is_none_or(|hold| hold.basis != basis) {
                    let reason = RefusalReason::SizeAboveSource { asked, source };
                    let refusal = blank(pair.key(), round.me, round.registry, reason);
                    self.refuse(now, pair.key(), refusal, basis);
                }
            } else {
                self.need(now, round, pair, basis);
            }
        }
        self.follow_reservations();
    }

    /// Ends what none of the pairs that are acted for needs, before anything is asked for: there may be room
    /// only then.
    fn give_back(&mut self, now: Instant, acts: &[&Pair<'_>]) {
        let stays: BTreeSet<PairKey> = acts.iter().map(|pair| pair.key()).collect();
        let gone: Vec<PairKey> =
            self.asks.keys().filter(|key| !stays.contains(key)).copied().collect();
        for key in gone {
            self.forget(now, key);
        }
        let over: Vec<PairKey> =
            self.holds.keys().filter(|key| !stays.contains(key)).copied().collect();
        for key in over {
            self.release(key);
        }
    }

    /// Sees what reservations are installed here now.
    fn follow_reservations(&mut self) {
        let mut before = core::mem::take(&mut self.bookings);
        for held in self.reservations.standing_here() {
            let known = before.remove(&held.name.key).filter(|it| it.name == held.name);
            if let Some(booking) = known.or_else(|| Booking::of(&held)) {
                self.bookings.insert(held.name.key, booking);
            }
        }
    }

    /// A pair needs its path's promise.
    fn need(&mut self, now: Instant, round: &Round<'_>, pair: &Pair<'_>, basis: Basis) {
        let (me, key) = (round.me, pair.key());
        if self.asks.contains_key(&key) {
            return self.need_other(now, round, pair, basis);
        }
        if self.waits(now, key, &basis, round.news) {
            return;
        }
        let Some(wanted) = request(pair, &basis.path, pair.split()) else { return };
        if !self.turns.take(self.holds.contains_key(&key)) {
            self.wake = self.wake.min(now + TURN);
            return;
        }
        let asked = self.reservations.request(now, &wanted);
        let (standing, granted, retry_at) = (Standing::Pending, None, Instant::ZERO);
        let entry = Asked { key: None, basis, request: wanted, standing, granted, retry_at };
        self.asks.insert(key, entry);
        self.pend(me, key, asked);
    }

    /// A pair that was asked for already: if its path holds something else than it needs, that is asked for.
    fn need_other(&mut self, now: Instant, round: &Round<'_>, pair: &Pair<'_>, basis: Basis) {
        let key = pair.key();
        let Some(asked) = self.asks.get_mut(&key) else { return };
        if asked.standing != Standing::Granted {
            return;
        }
        if asked.basis == basis {
            // A change that was refused is not asked for any more.
            return self.release(key);
        }
        let Some(wanted) = request(pair, &basis.path, pair.split()) else { return };
        if asked.request == wanted {
            asked.basis = basis;
            self.release(key);
        } else if asked.request.label == wanted.label && now < asked.retry_at {
            self.wake = self.wake.min(asked.retry_at);
        } else if !self.waits(now, key, &basis, round.news) {
            self.change(now, round.me, key, wanted, basis);
        }
    }

    /// True if just this was refused, and it is too soon to ask again.
    fn waits(&mut self, now: Instant, key: PairKey, basis: &Basis, news: bool) -> bool {
        let Some(hold) = self.holds.get_mut(&key) else { return false };
        if hold.basis != *basis || now >= hold.until {
            return false;
        }
        if news {
            hold.again = hold.until;
        }
        self.wake = self.wake.min(hold.again);
        true
    }

    /// What is granted and what is needed differ.
    fn change(&mut self, now: Instant, me: NodeId, key: PairKey, wanted: Request, basis: Basis) {
        let Some(asked) = self.asks.get_mut(&key) else { return };
        let Some(number) = asked.key else { return };
        let result = self.reservations.change(now, number, &wanted).map(|()| number);
        (asked.request, asked.basis, asked.standing) = (wanted, basis, Standing::Pending);
        self.pend(me, key, result);
    }

    /// A request is on its way, or this node itself says no.
    fn pend(&mut self, me: NodeId, key: PairKey, result: Result<Key, RequestError>) {
        match result {
            Ok(number) => {
                if let Some(asked) = self.asks.get_mut(&key) {
                    asked.key = Some(number);
                }
                self.keys.insert(number, key);
            }
            Err(error) => {
                let reason = match error {
                    RequestError::Denied(reason) => reason,
                    RequestError::Path { .. }
                    | RequestError::Nothing
                    | RequestError::OneTrunk
                    | RequestError::Label { .. }
                    | RequestError::NoTime
                    | RequestError::UnknownKey
                    | RequestError::Pending
                    | _ => Reason::Impossible,
                };
                self.denials.push((key, me, reason));
            }
        }
    }

    /// What was denied here at once.
    pub(super) fn take_denials(&mut self) -> Vec<(PairKey, NodeId, Reason)> {
        core::mem::take(&mut self.denials)
    }

    /// The pair that asked for a reservation.
    pub(super) fn pair_of(&self, key: Key) -> Option<PairKey> {
        self.keys.get(&key).copied()
    }
}

/// The size asked for and the publisher's, if pictures would have to be made larger.
pub(super) fn too_large(pair: &Pair<'_>) -> Option<(Size, Size)> {
    let (asked, source) = (pair.asked.size?, pair.spec.size?);
    (!asked.fits_in(source)).then_some((asked, source))
}

/// A refusal of `node` without numbers.
pub(super) fn blank(
    (subscription, publisher): PairKey,
    node: NodeId,
    registry: &Registry,
    reason: RefusalReason,
) -> Refusal {
    let node_name = registry.record(node).map(|record| record.name.clone()).unwrap_or_default();
    Refusal {
        subscription,
        publisher,
        revision: 0,
        node,
        node_name,
        link: String::new(),
        needed_bytes_per_s: 0,
        available_bytes_per_s: 0,
        reason,
        offer: Offer::default(),
    }
}
