//! The second reservations of pairs that request a spare ([`crate::control::routing::spare`]).

use super::{Admission, Basis, Booking, Denial, Round, Survey, reason_of};
use crate::control::contracts::booking::request;
use crate::control::contracts::pair::Pair;
use crate::control::contracts::pairs::{Asked, OwnPair, PairState};
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::{Refusal, RefusalReason};
use crate::control::data::route::{Detour, Place};
use crate::control::data::second::{PathPair, SecondPaths};
use crate::control::data::spec::PublisherSpec;
use crate::control::data::split::Split;
use crate::control::membership::blank::blank;
use crate::control::membership::graph::is_whole;
use crate::control::membership::registry::{Mark, Record, Registry};
use crate::ids::{NodeId, SubscriptionId};
use paceline_admit::reserve::{Key, Reason};
use paceline_sched::Instant;
use std::collections::BTreeMap;

const fn is_no_path(reason: &RefusalReason) -> bool {
    matches!(reason, RefusalReason::NoSecondPath { .. } | RefusalReason::SpareMeets { .. })
}

/// Returns the refusal of a pair whose first path, `path`, has no second one; with `encrypted`, of encrypted hops. `met` is
/// the subscription that prevents two longer paths, if there is one.
pub(in crate::control) fn no_second_path(
    registry: &Registry,
    paths: &dyn SecondPaths,
    key: PairKey,
    (path, encrypted): (&[NodeId], bool),
    met: Option<SubscriptionId>,
) -> Refusal {
    if let Some(other) = met {
        let reason = RefusalReason::SpareMeets { other };
        return Refusal { spare: true, ..blank(key, other.node, registry, reason) };
    }
    let shared = paths.shared_link(path, encrypted);
    let reason = RefusalReason::NoSecondPath { shared: shared.is_some() };
    let (node, link) = shared.unwrap_or((key.1.node, String::new()));
    Refusal { link, spare: true, ..blank(key, node, registry, reason) }
}

impl Round<'_> {
    fn no_second_path(&self, key: PairKey, basis: &Basis) -> Refusal {
        no_second_path(self.registry, self.paths, key, basis.first(), basis.met)
    }
}

/// The reservations of a pair on one node.
#[derive(Default)]
pub(in crate::control) struct Paths<'b> {
    /// The one that carries its samples.
    pub(in crate::control) carried: Option<&'b Booking>,
    /// The newest other one.
    pub(in crate::control) other: Option<&'b Booking>,
}

impl<'b> Paths<'b> {
    /// Adds a reservation that is newer than those before; `carries` as [`Admission::carries`] returns it.
    fn add(&mut self, booking: &'b Booking, carries: Option<bool>) {
        if carries.unwrap_or(self.carried.is_none()) {
            // One that a newer one replaces is left over.
            (self.carried, self.other) = (Some(booking), None);
        } else {
            self.other = Some(booking);
        }
    }
}

impl<'a> Pair<'a> {
    /// Returns the pair as the publisher's node would send it on `path`.
    pub(super) fn on(&self, registry: &Registry, path: &[NodeId]) -> Option<Self> {
        let split = Split::of(registry, path);
        let split = split.with_proxy(PublisherSpec::proxy_at_end(self.request, split.hops()));
        let place = Place::on(path, split, self.place.me)?;
        let detour = Some(Detour::Path(path.into()));
        Some(Pair { detour, ..Pair::at(self.key(), self.spec, self.request, place) })
    }
}

impl Admission {
    /// Returns the reservations of each pair on this node.
    pub(in crate::control) fn paths(&self, registry: &Registry) -> BTreeMap<PairKey, Paths<'_>> {
        let mut all: BTreeMap<PairKey, Paths<'_>> = BTreeMap::new();
        for booking in self.bookings.values() {
            all.entry(booking.pair).or_default().add(booking, self.carries(registry, booking));
        }
        all
    }

    /// Returns true if a reservation carries the samples of its pair, and `None` if it does once the one before it is lost.
    fn carries(&self, registry: &Registry, booking: &Booking) -> Option<bool> {
        if !booking.request.wants_spare() {
            return Some(true);
        }
        let (pair, number, me) = (booking.pair, booking.name.key.number, registry.me());
        let carrier =
            if pair.1.node == me { self.carrier_of(pair) } else { registry.carrier_of(pair) };
        // The subscription's node may lose the first reservation before it learns of the takeover.
        let follows = pair.0.node == me && carrier.is_some_and(|carrier| carrier < number);
        (!follows).then_some(carrier == Some(number))
    }

    /// Returns the reservations that carry samples on this node, one of each pair.
    pub(in crate::control) fn carrying(
        &self,
        registry: &Registry,
    ) -> impl Iterator<Item = &Booking> {
        self.paths(registry).into_values().filter_map(|paths| paths.carried)
    }

    /// Returns the reservations that carry samples on this node once those of the same pairs are lost.
    pub(in crate::control) fn standby(
        &self,
        registry: &Registry,
    ) -> impl Iterator<Item = &Booking> {
        self.paths(registry).into_values().filter_map(|paths| paths.other)
    }

    /// Returns the reservation that carries a pair's samples on this node, if any.
    pub(in crate::control) fn carrying_of(
        &self,
        registry: &Registry,
        pair: PairKey,
    ) -> Option<&Booking> {
        let mut paths = Paths::default();
        for booking in self.bookings.values().filter(|booking| booking.pair == pair) {
            paths.add(booking, self.carries(registry, booking));
        }
        paths.carried
    }

    /// Returns the number of the reservation that carries a pair of a publisher of this node, once it is in force.
    fn carrier_of(&self, key: PairKey) -> Option<u64> {
        let in_force = self.pairs.spare(key).is_some_and(|spare| spare.in_force);
        let asked = self.pairs.asked(key).filter(|asked| in_force && asked.granted.is_some())?;
        asked.key.map(|key| key.number)
    }

    /// Returns the marks of the pairs of this node's publishers that have or had a spare.
    pub(super) fn carried_marks(&self) -> impl Iterator<Item = (PairKey, (u64, Mark))> {
        let marked = |key: PairKey| Some((key, (self.carrier_of(key)?, Mark::Carried)));
        let spares = self.pairs.iter().filter(|(_, pair)| pair.spare.is_some());
        spares.filter_map(move |(key, _)| marked(key))
    }

    /// Returns true if a pair requests a spare and has none.
    pub(in crate::control) fn lacks_spare(&self, key: PairKey) -> bool {
        let asks = self.pairs.asked(key).is_some_and(|asked| asked.basis.request.wants_spare());
        let spare = self.pairs.spare_asked(key);
        asks && spare.is_none_or(|asked| asked.granted.is_none())
    }

    /// Returns true if a pair with a spare is in force: only its spare is refused, if anything.
    pub(super) fn is_in_force(&self, key: PairKey) -> bool {
        self.carrier_of(key).is_some()
    }

    /// Returns the number of requests for spares without an answer.
    pub(super) fn pending_spares(&self) -> usize {
        let spares = self.pairs.iter().filter_map(|(_, pair)| pair.spare.as_ref());
        spares.filter(|spare| spare.state.is_asking()).count()
    }

    /// Returns true while the nodes of a refused second path are surveyed. Nothing else is reserved for the pair then,
    /// unless it is in force.
    pub(super) fn surveys_spare(&self, key: PairKey) -> bool {
        self.pairs.spare(key).is_some_and(|spare| spare.state.survey().is_some())
    }

    /// A running contract keeps its reservation while it requests a spare in addition.
    pub(super) fn begin_spare(&mut self, key: PairKey) {
        let asked = self.pairs.asked(key).and_then(|asked| asked.granted.as_ref());
        if asked.is_some_and(|(_, basis)| !basis.request.wants_spare()) {
            self.pairs.spare_entry(key).in_force = true;
        }
    }

    /// Requests the spare that a pair lacks, or a change of it, and releases one that is no longer requested. The first
    /// path must have granted the pair's request.
    pub(super) fn need_spare(
        &mut self,
        now: Instant,
        round: &Round<'_>,
        pair: &Pair<'_>,
        basis: &Basis,
    ) {
        let key = pair.key();
        let Some(asked) = self.pairs.get(key).and_then(|pair| pair.state.granted()) else {
            return;
        };
        if asked.basis.request != *pair.request {
            return;
        }
        if !pair.request.wants_spare() {
            return self.drop_spare(now, key);
        }
        // The first path differs from the shortest one while that refuses.
        let path: Vec<NodeId> = asked.request.path.iter().map(|node| NodeId(node.0)).collect();
        let basis = if basis.path == path {
            basis.clone()
        } else {
            let PathPair { first, second } = round.paths.next_to(path, pair.request.encrypted);
            let Some(pair) = pair.on(round.registry, &first) else { return };
            Basis::on(&pair, round.registry, first, second)
        };
        match basis.spare {
            Some(_) => self.request_spare(now, round, pair, basis),
            None => self.go_without_path(now, round, key, basis),
        }
    }

    /// Releases the spare of a pair whose first path has no second one any more, and the pair unless it is in force.
    fn go_without_path(&mut self, now: Instant, round: &Round<'_>, key: PairKey, basis: Basis) {
        self.release_spare(now, key);
        if !self.is_in_force(key) {
            // Both or neither, also if the refusal is known from an earlier attempt.
            self.forget(now, key);
        }
        if !self.knows(key, &basis, is_no_path) {
            let refusal = round.no_second_path(key, &basis);
            self.refuse_spare(now, key, refusal, basis);
        }
    }

    /// Requests the spare of a pair on the second path of `basis`, or a change of it, unless it has been requested.
    fn request_spare(&mut self, now: Instant, round: &Round<'_>, pair: &Pair<'_>, basis: Basis) {
        let key = pair.key();
        let path = basis.spare.as_deref().unwrap_or_default();
        let Some(second) = pair.on(round.registry, path) else { return };
        let link = self.link_on(round, &second, path);
        let Some(wanted) = request(&second, path, second.split(), link) else { return };
        let before = self.pairs.spare(key).map(|spare| &spare.state);
        let is_same = before.is_some_and(|state| match state.granted() {
            Some(granted) => granted.request == wanted,
            None => state.asked().is_some(),
        });
        if is_same || self.waits(now, key, &basis, round.news) || !self.takes_turn(now, key) {
            return;
        }
        let spare = self.pairs.spare_entry(key);
        let known = spare.state.asked().and_then(|asked| asked.key);
        if known.is_none() {
            spare.state.take_asked();
        }
        spare.state.ask(wanted.clone(), basis);
        let result = match known {
            Some(number) => self.reservations.change(now, number, &wanted).map(|()| number),
            None => self.reservations.request(now, &wanted),
        };
        match result {
            Ok(number) => {
                self.pairs.add_key(number, key);
                if let Some(asked) = self.spare_asked(key) {
                    asked.key = Some(number);
                }
            }
            Err(error) => {
                let reason = reason_of(error);
                self.denials.push(Denial { pair: key, is_spare: true, node: round.me, reason });
            }
        }
    }

    fn spare_asked(&mut self, key: PairKey) -> Option<&mut Asked> {
        self.pairs.spare_mut(key)?.state.asked_mut()
    }

    /// Returns true if a reservation is the spare of its pair.
    pub(in crate::control) fn is_spare(&self, pair: PairKey, number: Key) -> bool {
        let asked = self.pairs.spare_asked(pair);
        asked.is_some_and(|asked| asked.key == Some(number))
    }

    /// Records the grant of a spare. From now on the pair is in force.
    pub(in crate::control) fn spare_granted(&mut self, key: PairKey) {
        self.turns.answered();
        if let Some(spare) = self.pairs.spare_mut(key)
            && spare.state.grant()
        {
            spare.in_force = true;
            self.settle(key);
        }
    }

    /// Handles the refusal of a spare. Nothing of it stays reserved, and nothing of the pair unless it is in force.
    pub(in crate::control) fn spare_denied(
        &mut self,
        now: Instant,
        key: PairKey,
        node: NodeId,
        reason: Reason,
    ) -> Option<Survey> {
        self.count_answer(now, reason);
        let mut asked = self.spare_asked(key)?.clone();
        self.release_spare(now, key);
        if !self.is_in_force(key) {
            // Both or neither.
            self.forget(now, key);
        }
        let survey = self.survey(key, &asked, node, reason);
        (asked.key, asked.granted) = (None, None);
        if let Some(survey) = &survey {
            let state = PairState::Refused(Some((asked, survey.number)));
            self.pairs.spare_entry(key).state = state;
        } else {
            self.wait(now, key, (node, true), asked.basis);
        }
        survey
    }

    /// Handles the result of a survey of a pair if it is the one `of` its second path; else returns false.
    pub(super) fn spare_surveyed(
        &mut self,
        now: Instant,
        (key, number): (PairKey, u64),
        refusal: Option<Refusal>,
        known: &Refusal,
    ) -> bool {
        let spare = self.pairs.spare_mut(key);
        let spare = spare.filter(|spare| spare.state.survey() == Some(number));
        let asked = spare.and_then(|spare| spare.state.take_asked());
        let Some(Asked { basis, .. }) = asked else { return false };
        if !self.is_in_force(key)
            && let Some(pair) = self.pairs.get_mut(key)
        {
            pair.spare = None;
        }
        match self.surveyed_refusal(key, refusal, known) {
            Some(refusal) => self.refuse_spare(now, key, refusal, basis),
            // The obstacle was only a tentative reservation.
            None => self.wait(now, key, (known.node, true), basis),
        }
        true
    }

    /// Refuses the spare of a pair, and the pair itself unless it is in force.
    fn refuse_spare(&mut self, now: Instant, key: PairKey, refusal: Refusal, basis: Basis) {
        let refusal = Refusal { spare: true, ..refusal };
        if self.is_in_force(key) {
            self.report(now, key, refusal, basis);
        } else {
            self.refuse(now, key, refusal, basis);
        }
    }

    /// Refuses a pair that is not in force and has no second path. Returns false if it has one, or is in force.
    pub(super) fn refuses_without_path(
        &mut self,
        now: Instant,
        round: &Round<'_>,
        key: PairKey,
        basis: &Basis,
    ) -> bool {
        let asks = basis.request.wants_spare() && basis.spare.is_none();
        // A running contract is not refused.
        let runs = self.pairs.asked(key).is_some_and(|asked| asked.granted.is_some());
        if !asks || runs {
            return false;
        }
        if self.knows(key, basis, is_no_path) {
            // The second path may have been there for a moment, and the first one may be requested since.
            self.forget(now, key);
        } else {
            let refusal = round.no_second_path(key, basis);
            self.refuse(now, key, refusal, basis.clone());
        }
        true
    }

    /// Returns the number of marks that this node may announce in addition to those that its requests for spares will need.
    pub(in crate::control) fn free_marks(&self, mine: &Record) -> usize {
        let awaits = |(key, pair): &(PairKey, &OwnPair)| {
            pair.asked().is_some_and(|asked| asked.basis.request.wants_spare())
                && !mine.marks.contains_key(key)
        };
        let awaited = self.pairs.iter().filter(awaits).count();
        self.marks_max.saturating_sub(mine.marks.len() + awaited)
    }

    /// Returns true if a request for a spare would need a mark of this node and none is left.
    pub(in crate::control) fn lacks_mark(&self, registry: &Registry, key: PairKey) -> bool {
        let has_one = self.pairs.asked(key).is_some_and(|asked| asked.basis.request.wants_spare());
        let mine = registry.record(registry.me()).filter(|mine| !mine.marks.contains_key(&key));
        !has_one && mine.is_some_and(|mine| self.free_marks(mine) == 0)
    }

    /// Refuses a request for a spare if no mark is left for it: the other nodes would not learn which path carries the
    /// samples. Returns false if there is one.
    pub(super) fn refuses_without_mark(
        &mut self,
        now: Instant,
        round: &Round<'_>,
        key: PairKey,
        basis: &Basis,
    ) -> bool {
        if !basis.request.wants_spare() || !self.lacks_mark(round.registry, key) {
            return false;
        }
        if !self.waits(now, key, basis, round.news) {
            let refusal = blank(key, round.me, round.registry, RefusalReason::TooManySpares);
            self.refuse(now, key, refusal, basis.clone());
        }
        true
    }

    /// Sends the samples of a pair on its second path if a node of the first one has announced the loss of a hop.
    pub(super) fn leave_broken_path(&mut self, now: Instant, registry: &Registry, key: PairKey) {
        if self.pairs.spare(key).is_none() {
            return;
        }
        let granted = self.pairs.asked(key).and_then(|asked| asked.granted.as_ref());
        let path = granted.map(|(request, _)| request.path.iter().map(|node| NodeId(node.0)));
        if path.is_some_and(|path| !is_whole(registry, &path.collect::<Vec<_>>())) {
            self.take_over(now, key);
        }
    }

    /// Makes the spare of a pair its first reservation, without a request. Returns false if it has none.
    fn take_over(&mut self, now: Instant, key: PairKey) -> bool {
        let Some(lost) = self.pairs.get_mut(key).and_then(OwnPair::take_over) else {
            return false;
        };
        if let Some(number) = lost.asked().and_then(|lost| lost.key) {
            self.pairs.remove_key(number);
            self.reservations.close(now, number);
        }
        self.took_over = true;
        true
    }

    /// Handles the loss of a reservation of a pair, or its final failure.
    pub(in crate::control) fn ended(
        &mut self,
        now: Instant,
        key: PairKey,
        number: Key,
        (node, reason): (NodeId, Reason),
    ) -> Option<Survey> {
        if self.is_spare(key, number) {
            self.release_spare(now, key);
            return None;
        }
        if self.take_over(now, key) {
            return None;
        }
        self.over(now, key, node, reason)
    }

    /// Releases the second reservation of a pair; the first one stays.
    fn release_spare(&mut self, now: Instant, key: PairKey) {
        let asked = self.pairs.spare_mut(key).and_then(|spare| spare.state.take_asked());
        if let Some(number) = asked.and_then(|asked| asked.key) {
            self.pairs.remove_key(number);
            self.reservations.close(now, number);
        }
    }

    /// Releases the second reservation of a pair that has ended, or no longer requests one.
    pub(super) fn drop_spare(&mut self, now: Instant, key: PairKey) {
        self.release_spare(now, key);
        if let Some(pair) = self.pairs.get_mut(key) {
            pair.spare = None;
        }
    }
}
