//! Surveys: ask all nodes of a path at once for the contract that they would currently grant.
//!
//! Each node answers from the current reservations of its link, without a reservation. The question has the
//! topic [`Topic::Room`](crate::control::Topic::Room). Every node answers for its own link of the path, so an offer was tested
//! on every hop. A request that is tied to an opposite stream also asks the nodes of that stream's path, which test it
//! together with the first one.

mod conclusion;
mod medium;
mod offer;
mod prospect;
mod query;
mod room;
mod trials;
mod variant;

use super::admission::Survey;
use super::booking::{Booking, trunk};
use super::links::Seat;
use super::pair::Pair;
use super::request::Ask;
use super::shares::stays_apart;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::{Offer, Refusal, RefusalReason};
use crate::control::data::route::Place;
use crate::control::data::spec::{HopInfo, PublisherSpec, SubscriptionSpec};
use crate::control::data::split::Split;
use crate::control::data::trial::TrafficTrial;
use crate::control::membership::blank::blank;
use crate::control::{Control, ControlOutput};
use crate::form::Form;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::tag::Pattern;
use crate::wire::WireError;
use bytes::Bytes;
use conclusion::Conclusion;
use offer::{NOBODY, name_lack};
use paceline_admit::reserve::{NodeIndex, Reservations};
use paceline_admit::{Admission, StreamDemand, Trunk};
use paceline_sched::{Duration, Instant};
use prospect::{Hoped, Prospect};
use query::{Half, Obstacles, Query};
use room::{Leg, Room};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use variant::{Trial, Variants};

/// The time for the nodes of a path to answer.
const WAIT: Duration = Duration::from_millis(500);
/// The largest number of open surveys.
const OPEN_MAX: usize = 1_024;

/// A predicted delay ([`Control::estimate`]).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Estimate {
    /// The number of hops, on each of which a sample may wait for one period.
    pub hops: u64,
    /// The time between two samples on the hops behind the proxy.
    pub period: Duration,
    /// The sum of the periods of all hops.
    delay: Duration,
}

impl Estimate {
    /// Returns the predicted delay.
    #[must_use]
    pub const fn delay(&self) -> Duration {
        self.delay
    }
}

/// The reason for a survey.
#[derive(Debug)]
enum Cause {
    /// A request for a reservation of a pair of a publisher here was refused: the number by which [`super::admission`]
    /// knows the survey, and the original refusal.
    Refused(u64, Box<Refusal>),
    /// A local caller requested it.
    Curious(Box<Hoped>),
}

#[derive(Debug)]
struct Open {
    cause: Cause,
    query: Query,
    /// The trials that every node that has answered would grant, one bit each.
    fits: u64,
    waiting: BTreeSet<u64>,
    found: Vec<Refusal>,
    /// The obstacles of the opposite pair.
    opposed: Vec<Refusal>,
    until: Instant,
    /// The answer without offers and the variants of the request, which are the trials, once the obstacles are known.
    offers: Option<Box<(Conclusion, Variants)>>,
}

impl Open {
    /// Adds the answer of a node.
    fn hear(&mut self, Obstacles { first, opposite, fits }: Obstacles) {
        self.found.extend(first);
        self.opposed.extend(opposite);
        self.fits &= fits;
    }
}

/// The open surveys.
#[derive(Debug, Default)]
pub(in crate::control) struct State {
    open: BTreeMap<u64, Open>,
    /// The survey of each question.
    questions: BTreeMap<u64, u64>,
    next: u64,
}

impl State {
    const fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns true if the question belongs to a survey.
    pub(in crate::control) fn has_question(&self, question: u64) -> bool {
        self.questions.contains_key(&question)
    }

    pub(in crate::control) fn wake_at(&self) -> Instant {
        self.open.values().map(|open| open.until).min().unwrap_or(Instant::FAR)
    }
}

impl Control {
    /// Asks whether the path from `publisher` to this node would currently grant `request`. Nothing is
    /// reserved. A request that is tied to an opposite stream is granted if both paths would grant both.
    ///
    /// Returns the number of the survey. [`ControlOutput::Surveyed`] with that number carries the answer,
    /// after 500 ms at most, and 500 ms more to test the offers of a refusal. Returns `None` if the publisher, or a path from it to this node, is unknown.
    pub fn survey(
        &mut self,
        now: Instant,
        publisher: PublisherId,
        request: SubscriptionSpec,
    ) -> Option<u64> {
        self.survey_trials(now, publisher, request, Vec::new())
    }

    /// As [`Self::survey`], and asks for each of `trials` whether the path would grant it instead; those beyond
    /// [`TrafficTrial::TRIALS_MAX`] are ignored.
    pub fn survey_trials(
        &mut self,
        now: Instant,
        publisher: PublisherId,
        request: SubscriptionSpec,
        trials: Vec<TrafficTrial>,
    ) -> Option<u64> {
        let trials = trials.into_iter().take(TrafficTrial::TRIALS_MAX);
        let trials = trials.map(Trial::Traffic).collect();
        let subscription = SubscriptionId { node: self.me, index: u32::MAX };
        self.survey_pair(now, (subscription, publisher), request, trials)
    }

    /// As [`Self::survey`], for a change of a subscription of any known node to `request`. Its present reservation is no
    /// obstacle.
    pub fn survey_change(
        &mut self,
        now: Instant,
        subscription: SubscriptionId,
        publisher: PublisherId,
        request: SubscriptionSpec,
    ) -> Option<u64> {
        self.survey_pair(now, (subscription, publisher), request, Vec::new())
    }

    fn survey_pair(
        &mut self,
        now: Instant,
        pair: PairKey,
        request: SubscriptionSpec,
        trials: Vec<Trial>,
    ) -> Option<u64> {
        self.advance(now);
        let prospect = self.prospect(pair, request)?;
        Some(match prospect {
            Prospect::Open(query, hoped) => {
                self.send_queries(Query { trials, ..*query }, Cause::Curious(hoped))
            }
            Prospect::Refused(refusal, opposite) => {
                let survey = self.contracts.surveys.next_number();
                let (complete, grant, refusal) = (true, None, Some(*refusal));
                self.outputs.push_back(ControlOutput::Surveyed {
                    survey,
                    complete,
                    grant,
                    refusal,
                    opposite,
                    fits: 0,
                });
                survey
            }
        })
    }

    /// Predicts the longest delay of the samples from `publisher` to a subscription on the node `to` by the model of Juvva (1999): each hop
    /// may take one period of the samples that it carries.
    ///
    /// That is an estimate and no promise. Returns `None` if the period of the publisher or a path from it is unknown.
    #[must_use]
    pub fn estimate(
        &self,
        to: NodeId,
        publisher: PublisherId,
        request: &SubscriptionSpec,
    ) -> Option<Estimate> {
        let spec = self.membership.registry.record(publisher.node)?.publishers.get(&publisher)?;
        let pair = (SubscriptionId { node: to, index: u32::MAX }, publisher);
        let path = self.way(pair, spec, request)?;
        let hops = u64::try_from(path.nodes.len().checked_sub(1)?).ok()?;
        let before = path.nodes.iter().position(|node| *node == path.proxy)?;
        let (before, full) = (u64::try_from(before).ok()?, spec.period);
        let period = if before < hops { path.last } else { Form::FULL }.rate.period(full)?;
        let source = full.filter(|_| before > 0).unwrap_or_default();
        let delay = source.mul_div(before, 1).saturating_add(period.mul_div(hops - before, 1));
        Some(Estimate { hops, period, delay })
    }

    /// Surveys the path of a refused pair of a local publisher.
    pub(in crate::control) fn begin_survey(&mut self, survey: Option<Survey>) {
        let Some(survey) = survey else { return };
        let Survey { number, pair, replaced, path, proxy, request, node, lack, rate } = survey;
        let mut refusal = blank(pair, node, &self.membership.registry, RefusalReason::Capacity);
        refusal.link = self.link_name(node, &path);
        refusal.class = self.class_name(node, &path, pair.1);
        name_lack(&mut refusal, &lack, rate);
        if self.contracts.surveys.open.len() < OPEN_MAX {
            let split = Split::of(&self.membership.registry, &path).with_proxy(proxy);
            let first = Half { pair, replaced, request, path, split };
            let query = Query::new(first, None, false);
            self.send_queries(query, Cause::Refused(number, Box::new(refusal)));
        } else {
            self.contracts.admission.surveyed(
                self.now,
                (pair, number),
                Some(refusal.clone()),
                refusal,
            );
        }
    }

    /// Returns the class of a publisher's stream on the link of the path after `node`; empty if the link has no
    /// classes or belongs to another node.
    fn class_name(&self, node: NodeId, path: &[NodeId], publisher: PublisherId) -> String {
        let at = path.iter().position(|it| *it == node).filter(|_| node == self.me);
        let next = at.and_then(|at| path.get(at + 1)).copied();
        let seat = next.and_then(|next| {
            self.contracts.admission.links.seat(
                &self.membership.registry,
                self.me,
                (publisher, next),
            )
        });
        seat.map(|seat| seat.class).unwrap_or_default()
    }

    /// Returns the name of the link on the path after `node`.
    pub(in crate::control) fn link_name(&self, node: NodeId, path: &[NodeId]) -> String {
        let at = path.iter().position(|it| *it == node);
        let next = at.and_then(|at| path.get(at + 1));
        let hop = next.and_then(|next| self.membership.registry.record(node)?.neighbours.get(next));
        hop.map(|hop| hop.link_name.clone()).unwrap_or_default()
    }

    fn send_queries(&mut self, query: Query, cause: Cause) -> u64 {
        let number = self.contracts.surveys.next_number();
        let open = Open {
            cause,
            fits: u64::MAX,
            waiting: BTreeSet::new(),
            found: Vec::new(),
            opposed: Vec::new(),
            until: self.now + WAIT,
            query,
            offers: None,
        };
        self.ask_nodes(number, open);
        self.end_surveys();
        number
    }

    fn ask_nodes(&mut self, number: u64, mut open: Open) {
        let Query { first, opposite, .. } = &open.query;
        let nodes = first.path.iter().chain(opposite.iter().flat_map(|half| &half.path));
        for node in nodes.copied().collect::<BTreeSet<NodeId>>() {
            if node == self.me {
                open.hear(self.obstacles(&open.query));
            } else {
                let question = self.ask(self.now, node, open.query.encode());
                self.contracts.surveys.questions.insert(question, number);
                open.waiting.insert(question);
            }
        }
        self.contracts.surveys.open.insert(number, open);
    }

    /// Returns the obstacles at this node: of the first pair, and of the opposite one while it keeps the first.
    fn obstacles(&self, query: &Query) -> Obstacles {
        let Query { first, opposite, .. } = query;
        let other = |opposite: &Half| self.obstacle(opposite, Some(first));
        Obstacles {
            first: self.obstacle(first, None),
            opposite: opposite.as_ref().and_then(other),
            fits: self.grants_trials(query).unwrap_or(0),
        }
    }

    /// Returns the obstacle at this node, if any: a missing right or mark, or its link of the path. The pair `other` counts as
    /// reserved.
    fn obstacle(&self, half: &Half, other: Option<&Half>) -> Option<Refusal> {
        let Half { pair, request, path, split, .. } = half;
        let spec = self.membership.registry.record(pair.1.node)?.publishers.get(&pair.1)?;
        let place = Place::on(path, *split, self.me)?;
        let seen = Pair::at(*pair, spec, request, place);
        // The first path is refused before anything is reserved.
        let lacks_mark = pair.1.node == self.me
            && request.wants_spare()
            && self.contracts.admission.lacks_mark(&self.membership.registry, *pair);
        let mark = || {
            let reason = RefusalReason::TooManySpares;
            lacks_mark.then(|| blank(*pair, self.me, &self.membership.registry, reason))
        };
        let room = || {
            let leg = self.leg(half, (spec, request))?;
            let room = self.room(half, &leg, other)?;
            let mut refusal =
                blank(*pair, self.me, &self.membership.registry, RefusalReason::Capacity);
            refusal.link = leg.hop.map(|hop| hop.link_name.clone()).unwrap_or_default();
            refusal.class.clone_from(&leg.seat.class);
            let refusal = room.of(&leg).explain(refusal)?;
            let mut refusal = self.refusal_of_medium((half, &leg, other), refusal);
            if let (RefusalReason::NoGuarantee { .. }, Some(why)) =
                (refusal.reason, leg.seat.unguaranteed)
            {
                refusal.reason = RefusalReason::NoGuarantee { why };
            }
            Some(refusal)
        };
        self.membership
            .access
            .prospect(&self.membership.registry, &seen)
            .or_else(mark)
            .or_else(room)
    }

    /// Returns the stream of a pair on this node's link of its path, if that limits anything. At the end of the path, its
    /// link is the one to the subscribers.
    fn leg<'a>(
        &'a self,
        half: &Half,
        (spec, request): (&'a PublisherSpec, &SubscriptionSpec),
    ) -> Option<Leg<'a>> {
        let Half { pair, path, split, .. } = half;
        let at = path.iter().position(|node| *node == self.me)?;
        let next = path.get(at + 1).copied();
        let counted = self.contracts.admission.links.processor.is_some();
        let limits = |hop: &&HopInfo| hop.capacity.is_some() || counted;
        let hop = next.map(|next| self.membership.hops.get(&next).filter(limits));
        let hop = if let Some(hop) = hop { Some(hop?) } else { None };
        // Without a link that limits the path, nothing is reserved.
        if hop.is_none() && !split.is_limited() {
            return None;
        }
        let behind = spec.form_behind(request, path, *split);
        let form = if split.is_scaled(at) { behind } else { Form::FULL };
        let ask = Ask::new(request, spec, at, *split)?;
        let seat = match next {
            Some(next) => self.contracts.admission.links.seat(
                &self.membership.registry,
                self.me,
                (pair.1, next),
            )?,
            None => Seat::of_subscribers(),
        };
        let next = next.unwrap_or(self.me);
        let trunk = trunk(pair.1, stays_apart(spec, request), form);
        let trunk = Reservations::trunk_to(trunk, NodeIndex(next.0));
        Some(Leg { spec, hop, seat, trunk, form, ask, next })
    }

    /// Returns this node's link of a pair's path, with the reservation of the pair `other`; `None` if the link has no limit.
    fn room_now(&self, half: &Half, leg: &Leg<'_>, other: Option<&Half>) -> Option<Room<'_>> {
        let reservations = &self.contracts.admission.reservations;
        let held = other.and_then(|half| {
            let leg = self.leg(half, (self.publisher(half.pair.1)?, &half.request))?;
            Some(((leg.seat.link, leg.trunk, NOBODY), leg.demand()?))
        });
        let link = match held {
            Some((at, demand)) => Cow::Owned(reservations.link_with(leg.seat.link, at, &demand)?),
            None => Cow::Borrowed(reservations.link(leg.seat.link)?),
        };
        Some(match self.left_for(half, leg.next, &link, leg.trunk) {
            Some((link, before)) => Room { link: Cow::Owned(link), before: Some(before) },
            None => Room { link, before: None },
        })
    }

    /// Returns the link without the reservation that a pair's request replaces, and that reservation's demand.
    ///
    /// The replaced reservation is no obstacle. Returns `None` if there is none on the link that the change would release.
    fn left_for(
        &self,
        half: &Half,
        next: NodeId,
        link: &Admission,
        trunk: Trunk,
    ) -> Option<(Admission, StreamDemand)> {
        let leads = |path: &[NodeId]| path.windows(2).any(|hop| *hop == [self.me, next]);
        let replaced = |it: &&Booking| half.replaced.is(it.name.key.number);
        let its =
            self.contracts.admission.bookings().filter(|it| it.pair == half.pair).filter(replaced);
        let its = its.filter(|it| leads(&it.path) || it.path.last() == Some(&next));
        let booking = its.last()?;
        let old = Reservations::trunk_to(booking.at(self.me).trunk, NodeIndex(next.0));
        link.without(trunk, Reservations::holder(booking.name), old)
    }

    /// Answers a question about this node's link. Malformed questions get no answer.
    pub(in crate::control) fn answer_room(&mut self, request: u64, from: NodeId, body: Bytes) {
        let Ok(query) = Query::decode(body) else {
            self.rejected += 1;
            return;
        };
        let answer = self.obstacles(&query).encode();
        self.answer(self.now, request, from, answer);
    }

    /// Handles the answer of a node.
    pub(in crate::control) fn hear_room(&mut self, question: u64, body: Bytes) {
        let Some(number) = self.contracts.surveys.questions.remove(&question) else { return };
        if let Some(open) = self.contracts.surveys.open.get_mut(&number) {
            open.waiting.remove(&question);
            match Obstacles::decode(body) {
                Ok(obstacles) => open.hear(obstacles),
                Err(_) => self.rejected += 1,
            }
        }
        self.end_surveys();
    }

    /// Ends the surveys that are complete or have timed out.
    pub(in crate::control) fn end_surveys(&mut self) {
        let now = self.now;
        let over: Vec<u64> = self
            .contracts
            .surveys
            .open
            .iter()
            .filter(|(_, open)| open.waiting.is_empty() || open.until <= now)
            .map(|(number, _)| *number)
            .collect();
        for number in over {
            let Some(open) = self.contracts.surveys.open.remove(&number) else { continue };
            self.contracts.surveys.questions.retain(|_, of| *of != number);
            self.end_survey(number, open);
        }
    }

    /// Ends a survey, or asks the nodes again for offers.
    fn end_survey(&mut self, number: u64, mut open: Open) {
        let complete = open.waiting.is_empty();
        if let Some(offers) = open.offers.take() {
            let (mut conclusion, variants) = *offers;
            // A node that did not answer has tested no variant.
            let offer = variants.offer(if complete { open.fits } else { 0 });
            conclusion.refusal.iter_mut().for_each(|refusal| refusal.offer = offer);
            return self.conclude(number, (open.cause, open.query), conclusion);
        }
        let mut conclusion = self.conclusion(&mut open);
        let Some(variants) = self.variants(&open.query, &conclusion) else {
            // Nothing is offered that the path has not tested.
            let untested = conclusion.refusal.iter_mut().filter(|refusal| refusal.lacks_room());
            untested.for_each(|refusal| refusal.offer = Offer::default());
            return self.conclude(number, (open.cause, open.query), conclusion);
        };
        open.query.trials = variants.trials();
        open.until = self.now + WAIT;
        (open.fits, open.offers) = (u64::MAX, Some(Box::new((conclusion, variants))));
        self.ask_nodes(number, open);
    }

    fn conclude(&mut self, number: u64, (cause, query): (Cause, Query), conclusion: Conclusion) {
        let Conclusion { complete, fits, refusal, back } = conclusion;
        match cause {
            Cause::Refused(of, known) => {
                self.contracts.admission.surveyed(
                    self.now,
                    (query.first.pair, of),
                    refusal,
                    *known,
                );
                self.dirty = true;
            }
            Cause::Curious(hoped) => {
                let Hoped { grant, mut opposite } = *hoped;
                opposite.iter_mut().for_each(|stream| stream.refusal.clone_from(&back));
                let survey = number;
                if self.hear_room_again(survey, complete, refusal.as_ref()) {
                    return;
                }
                self.outputs.push_back(ControlOutput::Surveyed {
                    survey,
                    complete,
                    grant,
                    refusal,
                    opposite,
                    fits,
                });
            }
        }
    }
}

/// Returns the publishers in the body of a question for capacity, with the pattern of each request.
pub(in crate::control) fn pairs_of_room(
    body: Bytes,
) -> Result<Vec<(PublisherId, Pattern)>, WireError> {
    Query::decode(body).map(Query::pairs)
}
