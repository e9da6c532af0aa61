//! Surveys: ask all nodes of a path at once for the contract that they would currently grant.
//!
//! Each node answers from the current reservations of its link, without a reservation. The question has the
//! topic [`Topic::Room`]. Every node answers for its own link of the path, so an offer was tested on every
//! hop.

use super::admission::{Survey, blank};
use super::ask::Topic;
use super::booking::{trunk, wanted};
use super::codec::{
    put_pair, put_refusal, put_subscription, read_pair, read_refusal, read_subscription,
};
use super::detour::StreamPath;
use super::grant::Grant;
use super::graph::HOPS_MAX;
use super::offer::{Tried, both, name_lack};
use super::pair::{Pair, Place};
use super::refusal::{Refusal, RefusalReason};
use super::registry::PairKey;
use super::request::Ask;
use super::shares::stays_apart;
use super::spec::{PublisherSpec, SubscriptionSpec};
use super::split::Split;
use super::trial::TrafficTrial;
use super::{Control, ControlOutput};
use crate::classes::Unguaranteed;
use crate::form::Form;
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_admit::reserve::{NodeIndex, Reservations};
use paceline_admit::{Admission, StreamDemand, Trunk};
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
    /// A pair of a publisher here was refused; contains the original refusal.
    Refused(Refusal),
    /// A local caller requested it; contains the contract that would be granted, if any.
    Curious(Option<Grant>),
}

#[derive(Debug)]
struct Open {
    cause: Cause,
    pair: PairKey,
    path: Vec<NodeId>,
    /// The trials that every node that has answered would grant, one bit each.
    fits: u64,
    waiting: BTreeSet<u64>,
    found: Vec<Refusal>,
    until: Instant,
}

/// The open surveys.
#[derive(Debug, Default)]
pub(super) struct State {
    open: BTreeMap<u64, Open>,
    /// The survey of each question.
    questions: BTreeMap<u64, u64>,
    next: u64,
}

impl State {
    /// Returns true if the question belongs to a survey.
    pub(super) fn asked(&self, question: u64) -> bool {
        self.questions.contains_key(&question)
    }

    pub(super) fn wake_at(&self) -> Instant {
        self.open.values().map(|open| open.until).min().unwrap_or(Instant::FAR)
    }
}

/// The question to each node of a path.
#[derive(Clone, Debug)]
struct Query {
    pair: PairKey,
    request: SubscriptionSpec,
    path: Vec<NodeId>,
    split: Split,
    /// At most [`TrafficTrial::TRIALS_MAX`].
    trials: Vec<TrafficTrial>,
}

impl Query {
    fn encode(&self) -> Bytes {
        let mut out = vec![Topic::Room.code()];
        put_pair(&mut out, self.pair.0, self.pair.1);
        put_subscription(&mut out, &self.request);
        out.put_varint(self.path.len() as u64);
        for node in &self.path {
            out.put_u64(node.0);
        }
        out.put_varint(self.split.code().into());
        out.put_varint(self.trials.len() as u64);
        self.trials.iter().for_each(|trial| trial.write(&mut out));
        out.into()
    }

    /// Decodes the body after the topic.
    fn decode(body: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let pair = read_pair(&mut reader)?;
        let request = read_subscription(&mut reader)?;
        let count = reader.len(HOPS_MAX + 1, "path")?;
        let path = (0..count).map(|_| reader.u64("path").map(NodeId)).collect::<Result<_, _>>()?;
        let split = Split::from_code(count, reader.varint32("split")?);
        let count = reader.len(TrafficTrial::TRIALS_MAX, "trials")?;
        let trials =
            (0..count).map(|_| TrafficTrial::read(&mut reader)).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(Self { pair, request, path, split, trials })
    }
}

/// Encodes a node's answer: the obstacle on its link, or none, and the trials that it would grant.
fn encode_answer(refusal: Option<&Refusal>, fits: u64) -> Bytes {
    let mut out = Vec::new();
    out.put_u64(fits);
    out.put_flag(refusal.is_some());
    if let Some(refusal) = refusal {
        put_refusal(&mut out, refusal);
    }
    out.into()
}

fn decode_answer(body: Bytes) -> Result<(Option<Refusal>, u64), WireError> {
    let mut reader = Reader::new(body);
    let fits = reader.u64("trials")?;
    let refusal = if reader.flag("refusal")? { Some(read_refusal(&mut reader)?) } else { None };
    reader.finish()?;
    Ok((refusal, fits))
}

impl Control {
    /// Asks whether the path from `publisher` to this node would currently grant `request`. Nothing is
    /// reserved.
    ///
    /// Returns the number of the survey. [`ControlOutput::Surveyed`] with that number carries the answer,
    /// after 500 ms at most. Returns `None` if the publisher, or a path from it to this node, is unknown.
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
        mut trials: Vec<TrafficTrial>,
    ) -> Option<u64> {
        trials.truncate(TrafficTrial::TRIALS_MAX);
        self.advance(now);
        let spec = self.registry.record(publisher.node)?.publishers.get(&publisher)?;
        let pair = (SubscriptionId { node: self.me, index: u32::MAX }, publisher);
        let StreamPath { nodes: path, proxy, .. } = self.way(pair, spec, &request)?;
        let proxy = path.iter().position(|node| *node == proxy).unwrap_or_default();
        let split = Split::of(&self.registry, &path).with_proxy(proxy);
        let wanted =
            wanted(publisher, spec, &request, (split, spec.form_behind(&request, &path, split)));
        let grant = wanted.map(|demanded| self.grant_of(pair, &request, &path, &demanded));
        let query = Query { pair, request, path, split, trials };
        Some(self.send_queries(&query, Cause::Curious(grant)))
    }

    /// Predicts the longest delay of the samples from `publisher` to this node by the model of Juvva (1999): each hop
    /// may take one period of the samples that it carries.
    ///
    /// That is an estimate and no promise. Returns `None` if the period of the publisher or a path from it is unknown.
    #[must_use]
    pub fn estimate(&self, publisher: PublisherId, request: &SubscriptionSpec) -> Option<Estimate> {
        let spec = self.registry.record(publisher.node)?.publishers.get(&publisher)?;
        let pair = (SubscriptionId { node: self.me, index: u32::MAX }, publisher);
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
    pub(super) fn begin_survey(&mut self, survey: Option<Survey>) {
        let Some(Survey { pair, path, proxy, request, node, lack, rate }) = survey else { return };
        let mut refusal = blank(pair, node, &self.registry, RefusalReason::Capacity);
        refusal.link = self.link_name(node, &path);
        refusal.class = self.class_name(node, &path, pair.1);
        name_lack(&mut refusal, &lack, rate);
        if self.surveys.open.len() < OPEN_MAX {
            let split = Split::of(&self.registry, &path).with_proxy(proxy);
            let query = Query { pair, request, path, split, trials: Vec::new() };
            self.send_queries(&query, Cause::Refused(refusal));
        } else {
            self.admission.surveyed(self.now, pair, Some(refusal.clone()), refusal);
        }
    }

    /// Returns the class of a publisher's stream on the link of the path after `node`; empty if the link has no
    /// classes or belongs to another node.
    fn class_name(&self, node: NodeId, path: &[NodeId], publisher: PublisherId) -> String {
        let at = path.iter().position(|it| *it == node).filter(|_| node == self.me);
        let next = at.and_then(|at| path.get(at + 1)).copied();
        let seat = next
            .and_then(|next| self.admission.links.seat(&self.registry, self.me, (publisher, next)));
        seat.map(|seat| seat.class).unwrap_or_default()
    }

    /// Returns the name of the link on the path after `node`.
    pub(super) fn link_name(&self, node: NodeId, path: &[NodeId]) -> String {
        let at = path.iter().position(|it| *it == node);
        let next = at.and_then(|at| path.get(at + 1));
        let hop = next.and_then(|next| self.registry.record(node)?.neighbours.get(next));
        hop.map(|hop| hop.link_name.clone()).unwrap_or_default()
    }

    fn send_queries(&mut self, query: &Query, cause: Cause) -> u64 {
        let number = self.surveys.next;
        self.surveys.next += 1;
        let mut open = Open {
            cause,
            pair: query.pair,
            path: query.path.clone(),
            fits: u64::MAX,
            waiting: BTreeSet::new(),
            found: Vec::new(),
            until: self.now + WAIT,
        };
        for &node in &query.path {
            if node == self.me {
                open.found.extend(self.tell_obstacle(query));
                open.fits &= self.fitting(query);
            } else if Some(&node) != query.path.last() {
                let question = self.ask(self.now, node, query.encode());
                self.surveys.questions.insert(question, number);
                open.waiting.insert(question);
            }
        }
        self.surveys.open.insert(number, open);
        self.end_surveys();
        number
    }

    /// Returns the obstacle at this node, if any: a missing right, or its link of the path.
    fn tell_obstacle(&self, query: &Query) -> Option<Refusal> {
        let Query { pair, request, path, split, .. } = query;
        let spec = self.registry.record(pair.1.node)?.publishers.get(&pair.1)?;
        let place = Place::on(path, *split, self.me)?;
        let seen = Pair::at(*pair, spec, request, place);
        let room = || {
            self.on_link(query, (spec, request), |tried, refusal, why| {
                let mut refusal = tried.explain(refusal)?;
                if let (RefusalReason::NoGuarantee { .. }, Some(why)) = (refusal.reason, why) {
                    refusal.reason = RefusalReason::NoGuarantee { why };
                }
                Some(refusal)
            })
        };
        self.access.prospect(&self.registry, &seen).or_else(|| room().flatten())
    }

    /// Returns the trials of a question that this node would grant, one bit each.
    fn fitting(&self, query: &Query) -> u64 {
        let fits = |trial: &TrafficTrial| self.grants_trial(query, trial).unwrap_or(false);
        let bits = query.trials.iter().enumerate();
        bits.filter(|(_, trial)| fits(trial)).fold(0, |bits, (number, _)| bits | 1 << number)
    }

    fn grants_trial(&self, query: &Query, trial: &TrafficTrial) -> Option<bool> {
        let Query { pair, request, path, split, .. } = query;
        let declared = self.registry.record(pair.1.node)?.publishers.get(&pair.1)?;
        let (spec, request) = trial.apply(declared, request);
        let spec = Arc::new(spec);
        let seen = Pair::at(*pair, &spec, &request, Place::on(path, *split, self.me)?);
        let room = self.on_link(query, (&spec, &request), |tried, _, _| tried.is_granted());
        Some(self.access.prospect(&self.registry, &seen).is_none() && room.unwrap_or(true))
    }

    /// Tests a demand on this node's link of the path. Returns `None` if the link has no limit.
    fn on_link<T>(
        &self,
        query: &Query,
        (spec, request): (&PublisherSpec, &SubscriptionSpec),
        test: impl FnOnce(Tried<'_>, Refusal, Option<Unguaranteed>) -> T,
    ) -> Option<T> {
        let Query { pair, path, split, .. } = query;
        let at = path.iter().position(|node| *node == self.me)?;
        let next = *path.get(at + 1)?;
        let counted = self.admission.links.processor.is_some();
        let hop = self.hops.get(&next).filter(|hop| hop.capacity.is_some() || counted)?;
        let behind = spec.form_behind(request, path, *split);
        let form = if split.is_scaled(at) { behind } else { Form::FULL };
        let ask = Ask::new(request, spec, at, *split)?;
        let seat = self.admission.links.seat(&self.registry, self.me, (pair.1, next))?;
        let link = self.admission.reservations.link(seat.link)?;
        let trunk = Reservations::trunk_to(
            trunk(pair.1, stays_apart(spec, request), form),
            NodeIndex(next.0),
        );
        let left = self.left_for(*pair, next, link, trunk);
        let (link, before) =
            left.as_ref().map_or((link, None), |(link, before)| (link, Some(before)));
        let mut refusal = blank(*pair, self.me, &self.registry, RefusalReason::Capacity);
        refusal.link.clone_from(&hop.link_name);
        refusal.class = seat.class;
        let tried = Tried { spec, form, ask, link, trunk, before };
        Some(test(tried, refusal, seat.unguaranteed))
    }

    /// Returns the link without the pair's reservation for an earlier request, and that reservation's demand.
    ///
    /// A change replaces the earlier reservation, so it is no obstacle. Returns `None` if the pair has no
    /// reservation on the link that a change would release.
    fn left_for(
        &self,
        pair: PairKey,
        next: NodeId,
        link: &Admission,
        trunk: Trunk,
    ) -> Option<(Admission, StreamDemand)> {
        let booking = self.admission.booking_of(pair)?;
        let old = Reservations::trunk_to(booking.at(self.me).trunk, NodeIndex(next.0));
        link.without(trunk, Reservations::holder(booking.name), old)
    }

    /// Answers a question about this node's link. Malformed questions get no answer.
    pub(super) fn answer_room(&mut self, request: u64, from: NodeId, body: Bytes) {
        let Ok(query) = Query::decode(body) else {
            self.rejected += 1;
            return;
        };
        let answer = encode_answer(self.tell_obstacle(&query).as_ref(), self.fitting(&query));
        self.answer(self.now, request, from, answer);
    }

    /// Handles the answer of a node.
    pub(super) fn hear_room(&mut self, question: u64, body: Bytes) {
        let Some(number) = self.surveys.questions.remove(&question) else { return };
        if let Some(open) = self.surveys.open.get_mut(&number) {
            open.waiting.remove(&question);
            match decode_answer(body) {
                Ok((refusal, fits)) => {
                    open.found.extend(refusal);
                    open.fits &= fits;
                }
                Err(_) => self.rejected += 1,
            }
        }
        self.end_surveys();
    }

    /// Ends the surveys that are complete or have timed out.
    pub(super) fn end_surveys(&mut self) {
        let now = self.now;
        let over: Vec<u64> = self
            .surveys
            .open
            .iter()
            .filter(|(_, open)| open.waiting.is_empty() || open.until <= now)
            .map(|(number, _)| *number)
            .collect();
        for number in over {
            let Some(open) = self.surveys.open.remove(&number) else { continue };
            self.surveys.questions.retain(|_, of| *of != number);
            self.end_survey(number, open);
        }
    }

    fn end_survey(&mut self, number: u64, mut open: Open) {
        let complete = open.waiting.is_empty();
        let path = open.path;
        // An offer does not help where a right is missing.
        let lacks_room = |it: &Refusal| {
            !matches!(it.reason, RefusalReason::Rights { .. } | RefusalReason::Unencrypted)
        };
        open.found
            .sort_by_key(|it| (lacks_room(it), path.iter().position(|node| *node == it.node)));
        let offer = open.found.iter().all(lacks_room);
        let offer = open.found.iter().filter(|_| offer).map(|it| it.offer).reduce(both);
        let mut worst = open.found.into_iter().next();
        if let (Some(worst), Some(offer)) = (&mut worst, offer) {
            worst.offer = offer;
            (worst.subscription, worst.publisher) = open.pair;
        }
        match open.cause {
            Cause::Refused(known) => {
                // The refusing node may not have answered; then its original refusal applies.
                let refusal = worst.or_else(|| (!complete).then(|| known.clone()));
                self.admission.surveyed(self.now, open.pair, refusal, known);
                self.dirty = true;
            }
            Cause::Curious(grant) => {
                let (survey, refusal) = (number, worst);
                let fits = if complete { open.fits } else { 0 };
                self.outputs.push_back(ControlOutput::Surveyed {
                    survey,
                    complete,
                    grant,
                    refusal,
                    fits,
                });
            }
        }
    }
}
