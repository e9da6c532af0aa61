//! Admission of pairs of a subscription and a publisher: a path promises the whole stream, or no sample
//! leaves the publisher's node.
//!
//! A pair that requests a contract is reserved along its whole path before its first sample
//! ([`paceline_admit::reserve`]). The publisher's node sends the request. Every node of the path tests and
//! reserves its own outgoing link, and the subscription's node accepts. On the return path each node installs
//! its part, so nodes further from the publisher are ready first. Installed streams keep the path and form of
//! their request; the registry only determines the next request. During a change, the new reservation is
//! requested in addition to the installed one. A refusal names the node, the link and the figure. The request
//! is repeated when its basis changes, and from time to time.
//!
//! Pairs without a contract, and those whose path has no link with a capacity, follow the registry directly.

mod answers;
mod idle;
mod spare;
mod tie;
mod turns;

use super::booking::{Booking, request};
use super::links::{DELIVERY, Links};
use super::pair::Pair;
use super::pairs::{Basis, OwnPair, Pairs};
use super::tie::Ties;
use crate::control::cut;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::{Refusal, RefusalReason};
use crate::control::data::route::Detour;
use crate::control::data::second::{PathPair, SecondPaths};
use crate::control::data::spec::{PublisherSpec, SubscriptionSpec};
use crate::control::data::split::Split;
use crate::control::membership::blank::blank;
use crate::control::membership::graph::Tree;
use crate::control::membership::registry::{Change, MARKS_MAX, Registry};
use crate::form::{Form, Proxy, ScaledForm, Size, Unscalable};
use crate::ids::{NodeId, PublisherId};
pub(in crate::control) use answers::{Denial, Silence, Survey};
use paceline_admit::reserve::{
    Key, LinkId, NodeIndex, Reason, Request, RequestError, Reservations, Timing,
};
use paceline_sched::{Duration, Instant};
pub(in crate::control) use spare::{Paths, no_second_path};
use std::collections::{BTreeMap, BTreeSet};
use tie::Step;
use turns::{TURN, Turns};

/// The shortest side of video that is coded, and its longest sides.
const VIDEO_SIDES: (u32, u32, u32) = (16, 3_840, 2_160);
/// The granularity of reservation timers, which share one wake-up per step.
const STEP_NANOS: u64 = 50_000_000;

/// Hops retransmit lost messages and report when they go down. The refreshes and retries here cover failures
/// that nothing reports.
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

/// The reservations of this node, and the state of its requests.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(in crate::control) reservations: Reservations,
    pub(in crate::control) links: Links,
    bookings: BTreeMap<Key, Booking>,
    pub(in crate::control) pairs: Pairs,
    /// True if a pair has taken its second path since the last round.
    took_over: bool,
    /// Changes of this node's refusals that are not announced yet.
    changes: Vec<Change>,
    /// Refusals beyond the limit of this node's record that are not sent yet.
    refusal_overflow: Vec<Refusal>,
    denials: Vec<Denial>,
    silent: Vec<Silence>,
    wake: Instant,
    rounds: u64,
    /// The number of surveys so far.
    surveys: u64,
    turns: Turns,
    /// The next nodes on the paths of requests that wait for the answers of repeated ones, in this round.
    put_off: BTreeSet<NodeIndex>,
    /// What this node measured of forms of other nodes' publishers that it scales.
    pub(in crate::control) scaling: BTreeMap<PublisherId, Vec<ScaledForm>>,
    /// The most marks of this node's record.
    pub(in crate::control) marks_max: usize,
}

/// The inputs of a round of decisions.
pub(in crate::control) struct Round<'r> {
    pub(in crate::control) me: NodeId,
    pub(in crate::control) registry: &'r Registry,
    /// The shortest paths from this node.
    pub(in crate::control) tree: &'r Tree,
    /// The second paths from this node.
    pub(in crate::control) paths: &'r dyn SecondPaths,
    /// True if a change since the previous round may have released capacity.
    pub(in crate::control) news: bool,
    /// The pairs of which both are granted, or neither.
    pub(in crate::control) ties: &'r Ties,
    /// The pairs that a node does not allow.
    pub(in crate::control) blocked: &'r BTreeSet<PairKey>,
}

impl Admission {
    pub(in crate::control) fn new(me: NodeId) -> Self {
        let mut reservations = Reservations::new(NodeIndex(me.0), 1, TIMING, me.0);
        reservations.set_delivery(DELIVERY);
        Self {
            reservations,
            links: Links::default(),
            bookings: BTreeMap::new(),
            pairs: Pairs::default(),
            took_over: false,
            changes: Vec::new(),
            refusal_overflow: Vec::new(),
            denials: Vec::new(),
            silent: Vec::new(),
            wake: Instant::FAR,
            rounds: 0,
            surveys: 0,
            turns: Turns::new(),
            put_off: BTreeSet::new(),
            scaling: BTreeMap::new(),
            marks_max: MARKS_MAX,
        }
    }

    /// Returns true if request `revision` of a pair is not carried and the reason was reported.
    pub(in crate::control) fn refuses(&self, key: PairKey, revision: u64) -> bool {
        self.pairs.pause(key).is_some_and(|hold| hold.basis.request.revision == revision)
    }

    /// Returns true if the path refused the contract of request `revision` of a pair, and would carry it without one.
    pub(in crate::control) fn declines(&self, key: PairKey, revision: u64) -> bool {
        self.pairs.pause(key).is_some_and(|hold| {
            hold.basis.request.revision == revision
                && hold.refusal.as_ref().is_some_and(Refusal::is_of_contract)
        })
    }

    pub(in crate::control) fn wake_at(&self) -> Instant {
        self.wake
    }

    /// Returns the next wake-up of the reservations' timers.
    pub(in crate::control) fn reservations_at(&self) -> Instant {
        match self.reservations.next_wake() {
            Instant::FAR => Instant::FAR,
            at => {
                Instant::from_nanos(at.as_nanos().div_ceil(STEP_NANOS).saturating_mul(STEP_NANOS))
            }
        }
    }

    /// Takes the changes of this node's refusals to announce.
    pub(in crate::control) fn take_changes(&mut self) -> Vec<Change> {
        core::mem::take(&mut self.changes)
    }

    /// Takes the refusals to send only to the subscription's node.
    pub(in crate::control) fn take_refusal_overflow(&mut self) -> Vec<Refusal> {
        core::mem::take(&mut self.refusal_overflow)
    }

    /// Returns the reservations installed on this node.
    pub(in crate::control) fn bookings(&self) -> impl Iterator<Item = &Booking> {
        self.bookings.values()
    }

    /// Returns the newest reservation of a pair on this node, if any.
    pub(in crate::control) fn booking_of(&self, pair: PairKey) -> Option<&Booking> {
        self.bookings.values().rev().find(|booking| booking.pair == pair)
    }

    /// Requests the reservations that the pairs of this node's publishers need and lack, and releases those
    /// that are no longer needed. `pairs` must be ordered by key.
    ///
    /// Returns false if pairs have only taken their second paths, and the rest must wait until that is output: for the next
    /// round, at [`Self::wake_at`].
    pub(in crate::control) fn decide(
        &mut self,
        now: Instant,
        round: &Round<'_>,
        pairs: &[Pair<'_>],
    ) -> bool {
        self.rounds += 1;
        self.pairs.begin_round(round.me, &round.ties.incomplete);
        self.wake = Instant::FAR;
        let acts = |pair: &&Pair<'_>| impossible(pair).is_some() || pair.is_reserved();
        let mut acts: Vec<&Pair<'_>> = pairs.iter().filter(acts).collect();
        self.give_back(now, &acts);
        // New requests are first, and repeated ones take turns: one holds room until a later hop refuses it, so that those
        // after it find none.
        let repeats = |key| self.pairs.pauses(key).then(|| self.hold_time(key));
        acts.sort_by_cached_key(|pair| repeats(pair.key()));
        self.put_off.clear();
        let pending = |(_, pair): &(PairKey, &OwnPair)| pair.state.is_asking();
        let unanswered = self.pairs.iter().filter(pending).count() + self.pending_spares();
        self.turns.count(unanswered);
        for pair in &acts {
            self.leave_broken_path(now, round.registry, pair.key());
        }
        if core::mem::take(&mut self.took_over) {
            // The search of new second paths must not delay the takeovers.
            self.wake = now;
            self.follow_reservations();
            return false;
        }
        for pair in acts {
            let Some((moved, basis)) = Self::basis_of(round, pair) else { continue };
            let pair = moved.as_ref().unwrap_or(pair);
            if let Some(reason) = impossible(pair) {
                if !self.knows(pair.key(), &basis, |before| *before == reason) {
                    let blank = blank(pair.key(), round.me, round.registry, reason);
                    let refusal = Refusal { link: proxy_name(pair), ..blank };
                    self.refuse(now, pair.key(), refusal, basis);
                }
            } else if !self.refuses_without_path(now, round, pair.key(), &basis)
                && !self.refuses_without_mark(now, round, pair.key(), &basis)
            {
                self.take_step(now, round, pair, basis);
            }
        }
        self.follow_reservations();
        true
    }

    /// Returns the inputs of a pair's next request, and the pair on its first path if that is chosen together with its spare's.
    fn basis_of<'a>(round: &Round<'_>, pair: &Pair<'a>) -> Option<(Option<Pair<'a>>, Basis)> {
        let (registry, request) = (round.registry, pair.request);
        let path = match &pair.detour {
            Some(Detour::Path(path)) => path.to_vec(),
            Some(Detour::Obstacle(_)) | None => round.tree.path(pair.subscription.node)?,
        };
        if !request.wants_spare() {
            return Some((None, Basis::on(pair, registry, path, None)));
        }
        let (PathPair { first, second }, met) =
            round.paths.both(pair.key(), request.encrypted, path);
        let pair = pair.on(registry, &first)?;
        let basis = Basis { met, ..Basis::on(&pair, registry, first, second) };
        Some((Some(pair), basis))
    }

    /// Returns true if a pair was refused on `basis` for a reason that `is_same`.
    fn knows(&self, key: PairKey, basis: &Basis, is_same: impl Fn(&RefusalReason) -> bool) -> bool {
        self.pairs.pause(key).is_some_and(|hold| {
            let before = hold.refusal.as_ref().map(|refusal| refusal.reason);
            hold.basis == *basis && before.is_some_and(|before| is_same(&before))
        })
    }

    /// Requests the reservation of a pair, unless the opposite contract prevents that.
    fn take_step(&mut self, now: Instant, round: &Round<'_>, pair: &Pair<'_>, basis: Basis) {
        let key = pair.key();
        match self.step(round, key) {
            Step::Ask => {
                let concerns = pair.request.wants_spare() || self.pairs.spare(key).is_some();
                let of_spare = concerns.then(|| basis.clone());
                self.need(now, round, pair, basis);
                if let Some(basis) = of_spare {
                    self.need_spare(now, round, pair, &basis);
                }
            }
            Step::Wait => self.forget(now, key),
            Step::Refuse(refusal) => {
                self.forget(now, key);
                self.refuse(now, key, *refusal, basis);
            }
        }
    }

    /// Releases everything that none of the pairs `acts` needs. This runs before any request, because it may
    /// free capacity for it.
    fn give_back(&mut self, now: Instant, acts: &[&Pair<'_>]) {
        let stays: BTreeSet<PairKey> = acts.iter().map(|pair| pair.key()).collect();
        let gone = || self.pairs.iter().filter(|(key, _)| !stays.contains(key));
        let asked = gone().filter(|(_, pair)| pair.asked().is_some());
        let alone = gone().filter(|(_, pair)| pair.asked().is_none() && pair.spare.is_some());
        let gone: Vec<PairKey> = asked.chain(alone).map(|(key, _)| key).collect();
        for key in gone {
            self.forget(now, key);
        }
        let over =
            self.pairs.iter().filter(|(key, pair)| pair.pause().is_some() && !stays.contains(key));
        let over: Vec<PairKey> = over.map(|(key, _)| key).collect();
        for key in over {
            self.release(key);
        }
    }

    /// Updates the bookings from the reservations installed here.
    fn follow_reservations(&mut self) {
        let mut before = core::mem::take(&mut self.bookings);
        for held in self.reservations.standing_here() {
            let known = before.remove(&held.name.key).filter(|it| it.name == held.name);
            if let Some(booking) = known.or_else(|| Booking::of(&held)) {
                self.bookings.insert(held.name.key, booking);
            }
        }
    }

    /// Requests the reservation of a pair, or a change of it.
    fn need(&mut self, now: Instant, round: &Round<'_>, pair: &Pair<'_>, basis: Basis) {
        let (me, key) = (round.me, pair.key());
        if self.pairs.asked(key).is_some() {
            return self.need_other(now, round, pair, basis);
        }
        if self.surveys_spare(key) || self.waits(now, key, &basis, round.news) {
            return;
        }
        let link = self.link_on(round, pair, &basis.path);
        let Some(wanted) = request(pair, &basis.path, pair.split(), link) else { return };
        if self.is_after(now, key, &wanted) || !self.takes_turn(now, key) {
            return;
        }
        let asked = self.reservations.request(now, &wanted);
        if self.puts_off(now, key, &wanted, &asked) {
            return self.turns.give_back();
        }
        self.pairs.entry(key).state.ask(wanted, basis);
        self.pend(me, key, asked);
    }

    /// Returns true if a repeated request must wait until a new one to the same next node is answered.
    fn is_after(&mut self, now: Instant, key: PairKey, wanted: &Request) -> bool {
        let next = wanted.path.get(1);
        let is_after = self.pairs.pauses(key) && next.is_some_and(|it| self.put_off.contains(it));
        if is_after {
            self.wake = self.wake.min(now + TURN);
        }
        is_after
    }

    /// Returns true if this node refuses a new request while a repeated one to the same next node holds room. It will be
    /// requested again when that is answered; no other one is repeated until then.
    fn puts_off<T>(
        &mut self,
        now: Instant,
        key: PairKey,
        wanted: &Request,
        asked: &Result<T, RequestError>,
    ) -> bool {
        let refused = matches!(asked, Err(RequestError::Denied(Reason::Refused { .. })));
        let Some(next) = wanted.path.get(1).filter(|_| refused) else { return false };
        let holds = |(_, other): (PairKey, &OwnPair)| {
            other.state.is_asking()
                && other.pause().is_some()
                && other.asked().is_some_and(|asked| asked.request.path.get(1) == Some(next))
        };
        let puts_off = !self.pairs.pauses(key) && self.pairs.iter().any(holds);
        if puts_off {
            self.put_off.insert(*next);
            self.wake = self.wake.min(now + TURN);
        }
        puts_off
    }

    /// Takes one of the requests that may be unanswered at a time; if none is left, schedules another attempt.
    fn takes_turn(&mut self, now: Instant, key: PairKey) -> bool {
        let may = self.turns.take(self.pairs.pauses(key));
        if !may {
            self.wake = self.wake.min(now + TURN);
        }
        may
    }

    /// Handles a pair with an earlier request, and requests a change if the pair needs another reservation.
    fn need_other(&mut self, now: Instant, round: &Round<'_>, pair: &Pair<'_>, basis: Basis) {
        let key = pair.key();
        let link = self.link_on(round, pair, &basis.path);
        let Some(asked) = self.pairs.get(key).and_then(|pair| pair.state.granted()) else {
            return;
        };
        if asked.basis == basis {
            // The refused change is no longer requested.
            return self.settle(key);
        }
        let Some(wanted) = request(pair, &basis.path, pair.split(), link) else { return };
        let (same, retry_at) = (asked.basis.request == basis.request, asked.retry_at);
        if asked.request == wanted {
            if let Some(asked) = self.pairs.asked_mut(key) {
                asked.basis = basis;
            }
            self.settle(key);
        } else if self.is_after(now, key, &wanted) {
            // Its turn is later.
        } else if same && now < retry_at {
            self.wake = self.wake.min(retry_at);
        } else if !self.waits(now, key, &basis, round.news) {
            self.change(now, round.me, key, wanted, basis);
        }
    }

    /// Returns this node's link or class for the stream of a pair on `path`.
    fn link_on(&self, round: &Round<'_>, pair: &Pair<'_>, path: &[NodeId]) -> Option<LinkId> {
        let next = *path.get(1)?;
        Some(self.links.seat(round.registry, round.me, (pair.publisher, next))?.link)
    }

    /// Returns true if the same request was refused and it is too early to repeat it.
    fn waits(&mut self, now: Instant, key: PairKey, basis: &Basis, news: bool) -> bool {
        let Some(hold) = self.pairs.pause_mut(key) else { return false };
        if hold.basis != *basis || now >= hold.until {
            return false;
        }
        if news {
            hold.again = hold.until;
        }
        self.wake = self.wake.min(hold.again);
        true
    }

    /// Requests a change from the granted reservation to the needed one.
    fn change(&mut self, now: Instant, me: NodeId, key: PairKey, wanted: Request, basis: Basis) {
        if basis.request.wants_spare() {
            self.begin_spare(key);
        }
        let Some(number) = self.pairs.asked(key).and_then(|asked| asked.key) else { return };
        let result = self.reservations.change(now, number, &wanted).map(|()| number);
        if !basis.request.wants_spare() && self.puts_off(now, key, &wanted, &result) {
            return;
        }
        self.pairs.entry(key).state.ask(wanted, basis);
        self.pend(me, key, result);
    }

    /// Records a request in transit, or its immediate denial by this node.
    fn pend(&mut self, me: NodeId, key: PairKey, result: Result<Key, RequestError>) {
        match result {
            Ok(number) => {
                if let Some(asked) = self.pairs.asked_mut(key) {
                    asked.key = Some(number);
                }
                self.pairs.add_key(number, key);
            }
            Err(error) => {
                let reason = reason_of(error);
                self.denials.push(Denial { pair: key, is_spare: false, node: me, reason });
            }
        }
    }

    /// Takes the requests that this node denied immediately.
    pub(in crate::control) fn take_denials(&mut self) -> Vec<Denial> {
        core::mem::take(&mut self.denials)
    }

    /// Returns the pair of a reservation.
    pub(in crate::control) fn pair_of(&self, key: Key) -> Option<PairKey> {
        self.pairs.pair_of(key)
    }
}

/// Returns the reason for a denial by this node.
const fn reason_of(error: RequestError) -> Reason {
    match error {
        RequestError::Denied(reason) => reason,
        RequestError::Path { .. }
        | RequestError::Nothing
        | RequestError::OneTrunk
        | RequestError::Label { .. }
        | RequestError::NoTime
        | RequestError::UnknownKey
        | RequestError::Pending
        | _ => Reason::Impossible,
    }
}

/// Returns the name of the requested proxy if no path leads through it.
fn proxy_name(pair: &Pair<'_>) -> String {
    match &pair.request.proxy {
        Proxy::Node(name) if pair.obstacle().is_some() => cut(name),
        Proxy::Node(_) | Proxy::Publisher | Proxy::Subscriber | Proxy::Auto => String::new(),
    }
}

/// Returns the reason if no path could deliver the requested size, or lead through the requested proxy.
pub(in crate::control) fn impossible(pair: &Pair<'_>) -> Option<RefusalReason> {
    if let Some(obstacle) = pair.obstacle() {
        return Some(obstacle);
    }
    form_obstacle(pair.spec, pair.asked)
        .or_else(|| bitrate_obstacle(pair.spec, pair.request, pair.split()))
}

/// Returns the reason if a publisher cannot deliver the form `asked`.
pub(in crate::control) fn form_obstacle(
    spec: &PublisherSpec,
    asked: Form,
) -> Option<RefusalReason> {
    size_obstacle(spec, asked).or_else(|| rate_obstacle(spec, asked))
}

/// Returns the reason if a video that cannot be decoded has too many references for the rate of the form `asked`.
fn rate_obstacle(spec: &PublisherSpec, asked: Form) -> Option<RefusalReason> {
    let (why, structure) = spec.unscalable.zip(spec.structure)?;
    let thins = spec.kind.is_video() && !structure.allows(asked.rate, spec.period);
    let references = structure.references;
    let keys = structure.keys_millihertz(spec.period);
    thins.then_some(RefusalReason::Unthinnable { why, references, keys })
}

/// Returns the reason if a publisher cannot deliver the size of the form `asked`.
fn size_obstacle(spec: &PublisherSpec, asked: Form) -> Option<RefusalReason> {
    let recodes = asked.bitrate.is_some() && spec.kind.is_video();
    let asked = asked.size.or(spec.size.filter(|_| recodes))?;
    if let Some(source) = spec.size
        && !asked.fits_in(source)
    {
        return Some(RefusalReason::SizeAboveSource { asked, source });
    }
    let sides = (spec.kind.is_video() && !is_coded_at(asked)).then_some(Unscalable::Sides);
    spec.unscalable.or(sides).map(|why| RefusalReason::Unscalable { asked, why })
}

/// Returns true if the encoder of video codes pictures of `size`.
fn is_coded_at(size: Size) -> bool {
    let (long, short) = (size.width.max(size.height), size.width.min(size.height));
    let is_even = size.width.is_multiple_of(2) && size.height.is_multiple_of(2);
    is_even && short >= VIDEO_SIDES.0 && long <= VIDEO_SIDES.1 && short <= VIDEO_SIDES.2
}

/// Returns the reason if a contract of a coded form cannot be kept at the requested bit rate.
pub(in crate::control) fn bitrate_obstacle(
    spec: &PublisherSpec,
    request: &SubscriptionSpec,
    split: Split,
) -> Option<RefusalReason> {
    let form = spec.form_of(request.form);
    let asked = u64::from(form.bitrate?.get());
    let promised = split.is_limited() && spec.tolerance_for(request).is_some();
    let least = spec.least_bitrate(form).filter(|_| promised)?;
    (asked < least).then_some(RefusalReason::BitRate { asked, least })
}
