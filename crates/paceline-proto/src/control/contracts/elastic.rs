//! Elastic contracts: the subscription's node selects the step that the paths grant.
//!
//! A refused request is repeated at the next step that the refusal's offer covers. Room that returns is found by surveys,
//! which reserve nothing and disturb nobody. A node that refuses a contract for lack of room asks the nodes of less
//! important elastic contracts on the same link for reductions, the least important first and no more than needed. Each step
//! is a change of the request ([`super::change`]), so it is granted along the whole path and takes effect between two
//! samples.

use super::booking::Booking;
use super::contract::demand_of;
use super::pair::Pair;
use super::streams::booked;
use crate::control::data::elastic::{Adaptation, Cause, IMPORTANCE_MAX};
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::{Offer, Refusal};
use crate::control::data::spec::SubscriptionSpec;
use crate::control::membership::claims::Claims;
use crate::control::membership::graph::Tree;
use crate::control::{Control, ControlOutput};
use crate::form::{Form, Size};
use crate::ids::{NodeId, PublisherId, SubscriptionId};
use crate::topic::Topic;
use crate::wire::{Reader, WireError, Writer};
use bytes::Bytes;
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// The shortest time between a change and the restoration of a step.
const RESTORE_MIN: Duration = Duration::from_secs(5);
/// The longest time; it doubles when a restored step is lost again within that time.
const RESTORE_MAX: Duration = Duration::from_secs(60);
/// The time between two surveys for room after that.
const SURVEY_AGAIN: Duration = Duration::from_secs(1);
/// While a more important contract is reduced too, a contract waits this much longer for each point of importance.
const RESTORE_LATER: Duration = Duration::from_millis(20);
/// A contract that has not been granted yet waits this long for reductions of less important ones before its own is reduced. Its publisher's node
/// repeats the request within that time.
const RELIEF: Duration = Duration::from_secs(3);
/// The time between two requests for reductions for one contract.
const RELIEF_AGAIN: Duration = Duration::from_secs(1);

/// The elastic contracts of this node, and the reductions that it has requested.
#[derive(Debug, Default)]
pub(in crate::control) struct State {
    /// The subscriptions of this node whose contracts were adapted.
    courses: BTreeMap<SubscriptionId, Course>,
    /// The subscriptions of this node whose present request, or a step of it, was granted.
    granted: BTreeSet<SubscriptionId>,
    /// The last requests of programs for subscriptions of this node; 0 is not listed.
    requests: BTreeMap<SubscriptionId, u64>,
    /// The refused subscriptions of this node that wait for relief, each with the end of the wait, or `None` after it.
    hopes: BTreeMap<SubscriptionId, Option<Instant>>,
    /// The pairs that a link of this node refuses, each with the time of its next relief.
    relieved: BTreeMap<PairKey, Instant>,
}

/// The adaptations of a subscription.
#[derive(Debug)]
struct Course {
    /// The time of the last restoration.
    restored: Option<Instant>,
    pause: Duration,
    /// A restoration follows this time at the earliest.
    from: Instant,
    /// The time of the next survey; none before the last one is complete.
    next: Instant,
    survey: Option<Hoped>,
}

/// The surveys for a restoration, one for each publisher.
#[derive(Debug)]
struct Hoped {
    revision: u64,
    waiting: BTreeSet<u64>,
    /// The step that the surveys ask for: the first one that no picture is too small for.
    from: usize,
    /// The step that all answers so far would grant.
    step: usize,
}

impl State {
    /// Returns the time at which this node repeats a request for reductions, or ends the wait for them.
    pub(in crate::control) fn relief_at(&self) -> Instant {
        let hopes = self.hopes.values().copied().flatten();
        hopes.chain(self.relieved.values().copied()).min().unwrap_or(Instant::FAR)
    }

    pub(in crate::control) fn wake_at(&self) -> Instant {
        let restores = self.courses.values().filter(|course| course.survey.is_none());
        restores.map(|course| course.next).min().unwrap_or(Instant::FAR).min(self.relief_at())
    }

    /// Forgets a subscription that has ended.
    pub(in crate::control) fn forget(&mut self, subscription: SubscriptionId) {
        self.courses.remove(&subscription);
        self.hopes.remove(&subscription);
        self.granted.remove(&subscription);
        self.requests.remove(&subscription);
    }

    /// Notes that a step of a subscription of this node is granted.
    pub(in crate::control) fn granted(&mut self, subscription: SubscriptionId) {
        self.granted.insert(subscription);
    }

    /// Notes the change of a request by a program, which begins anew.
    pub(in crate::control) fn requested(&mut self, subscription: SubscriptionId, revision: u64) {
        self.forget(subscription);
        self.requests.insert(subscription, revision);
    }

    /// Returns true if the current request of a subscription is a step of the program's request `revision`.
    pub(in crate::control) fn is_of(&self, subscription: SubscriptionId, revision: u64) -> bool {
        let adapted = self.courses.contains_key(&subscription);
        adapted && self.requests.get(&subscription).copied().unwrap_or(0) == revision
    }
}

impl Control {
    /// Reduces the elastic contracts of this node that are refused, and removes the refusals of all elastic contracts that
    /// have a lower step.
    pub(in crate::control) fn relax_refused(&mut self, refusals: &mut BTreeMap<PairKey, Refusal>) {
        let mut chosen: BTreeMap<SubscriptionId, (usize, Refusal)> = BTreeMap::new();
        let mut waiting: BTreeSet<SubscriptionId> = BTreeSet::new();
        for (&(subscription, publisher), refusal) in refusals.iter() {
            let own = subscription.node == self.me && !refusal.spare;
            let Some(spec) = self.subscription(subscription).filter(|_| own) else { continue };
            let Some(step) = spec.step_after(refusal) else { continue };
            // The refusal of a restored step leaves the previous one in force.
            let before = self.request_before(subscription, publisher);
            let of_program =
                self.contracts.elastic.requests.get(&subscription) == Some(&spec.revision);
            let before = before.filter(|_| !of_program);
            let kept = before.and_then(|before| before.steps()).map(|(_, step)| step);
            if kept.is_some_and(|kept| step >= kept) {
                continue;
            }
            if refusal.lacks_resource() && self.hopes_for_relief(subscription, spec) {
                waiting.insert(subscription);
                continue;
            }
            let worst = chosen.entry(subscription).or_insert_with(|| (step, refusal.clone()));
            if step > worst.0 {
                *worst = (step, refusal.clone());
            }
        }
        let until = self.now + RELIEF;
        let (registry, me) = (&self.membership.registry, self.me);
        let request = |id: SubscriptionId| registry.record(id.node)?.subscriptions.get(&id);
        // The other end takes the next step.
        refusals.retain(|key, refusal| {
            let spec = request(key.0).filter(|_| key.0.node != me);
            spec.is_none_or(|spec| spec.step_after(refusal).is_none())
        });
        for subscription in &waiting {
            self.contracts.elastic.hopes.entry(*subscription).or_insert(Some(until));
        }
        let refused: BTreeSet<SubscriptionId> = refusals.keys().map(|key| key.0).collect();
        self.contracts.elastic.hopes.retain(|id, _| refused.contains(id));
        refusals.retain(|key, _| !chosen.contains_key(&key.0) && !waiting.contains(&key.0));
        for (subscription, (step, refusal)) in chosen {
            self.contracts.elastic.hopes.insert(subscription, None);
            self.take_step(subscription, step, Cause::Refused(Box::new(refusal)));
        }
    }

    /// Returns true if less important elastic contracts may still make room for a refused one.
    fn hopes_for_relief(&self, subscription: SubscriptionId, spec: &SubscriptionSpec) -> bool {
        if let Some(hope) = self.contracts.elastic.hopes.get(&subscription) {
            return hope.is_some_and(|until| self.now < until);
        }
        // A contract that was in force takes its own steps at once: its stream has stopped.
        let adapted = self.contracts.elastic.granted.contains(&subscription);
        let registry = &self.membership.registry;
        let mut all = registry.all().flat_map(|(_, record)| record.subscriptions.values());
        !adapted
            && all.any(|other| {
                let reducible = || other.steps().is_some_and(|(steps, at)| at + 1 < steps.len());
                other.importance < spec.importance && reducible()
            })
    }

    /// Changes an elastic contract of this node to another step.
    fn take_step(&mut self, subscription: SubscriptionId, step: usize, cause: Cause) {
        let Some(mut spec) = self.subscription(subscription).cloned() else { return };
        let Some((steps, now)) = spec.steps() else { return };
        let Some(form) = steps.get(step).copied().filter(|_| step != now) else { return };
        let at = self.now;
        let course = self.contracts.elastic.courses.entry(subscription).or_insert(Course {
            restored: None,
            pause: RESTORE_MIN,
            from: at,
            next: at,
            survey: None,
        });
        if cause == Cause::Room {
            course.restored = Some(at);
        } else if let Some(restored) = course.restored.take() {
            // A step that was lost soon after it was restored is restored later next time.
            let soon = at.since(restored) < course.pause;
            let doubled = course.pause.mul_div(2, 1).min(RESTORE_MAX);
            course.pause = if soon { doubled } else { RESTORE_MIN };
        }
        course.survey = None;
        course.from = at + course.pause;
        course.next = course.from;
        (spec.form, spec.or_stop) = (form, false);
        let adaptation = Adaptation { step, steps: steps.len(), cause };
        self.begin_change(subscription, spec, Some(Box::new(adaptation)));
    }

    /// Asks the paths of reduced contracts whether they grant more.
    pub(in crate::control) fn restore_steps(&mut self) {
        let due = |(_, course): &(&SubscriptionId, &Course)| {
            course.survey.is_none() && course.next <= self.now
        };
        let courses = self.contracts.elastic.courses.iter();
        let due: Vec<SubscriptionId> = courses.filter(due).map(|(id, _)| *id).collect();
        for subscription in due {
            if let Some(until) = self.gives_way(subscription)
                && let Some(course) = self.contracts.elastic.courses.get_mut(&subscription)
            {
                course.next = until;
                continue;
            }
            match self.subscription(subscription).and_then(SubscriptionSpec::steps) {
                Some((steps, now)) if now > 0 => self.survey_step(subscription, (&steps, now)),
                Some(_) | None => _ = self.contracts.elastic.courses.remove(&subscription),
            }
        }
    }

    /// Returns the time until which a contract leaves room to more important ones that are reduced too, if it is not over.
    fn gives_way(&self, subscription: SubscriptionId) -> Option<Instant> {
        let importance = self.subscription(subscription)?.importance;
        let until = self.contracts.elastic.courses.get(&subscription)?.from + later(importance);
        let reduced = |other: &SubscriptionSpec| {
            other.importance > importance && other.steps().is_some_and(|(_, step)| step > 0)
        };
        let mut all = self.membership.registry.all();
        let waits =
            self.now < until && all.any(|(_, record)| record.subscriptions.values().any(reduced));
        waits.then_some(until)
    }

    /// Asks the paths of a contract at step `now` whether they grant the first one.
    fn survey_step(&mut self, subscription: SubscriptionId, (steps, now): (&[Form], usize)) {
        let Some(mut spec) = self.subscription(subscription).cloned() else { return };
        let revision = spec.revision;
        let answers = self.contracts.answers.iter();
        let its = answers.filter(|(key, answer)| key.0 == subscription && answer.is_decided());
        let publishers: Vec<PublisherId> = its.map(|(key, _)| key.1).collect();
        let from = self.first_step(steps, &publishers);
        spec.form = form_at(steps, from);
        let mut hoped = Hoped { revision, waiting: BTreeSet::new(), from, step: from };
        for publisher in &publishers {
            let survey = self.survey_change(self.now, subscription, *publisher, spec.clone());
            // A survey without a question is answered at once.
            match (survey, self.outputs.back()) {
                (Some(number), Some(ControlOutput::Surveyed { survey, .. }))
                    if *survey == number =>
                {
                    self.outputs.pop_back();
                    hoped.step = now;
                }
                (Some(number), _) => _ = hoped.waiting.insert(number),
                (None, _) => hoped.step = now,
            }
        }
        let again = self.now + SURVEY_AGAIN;
        let Some(course) = self.contracts.elastic.courses.get_mut(&subscription) else { return };
        course.next = again;
        course.survey = (!hoped.waiting.is_empty() && hoped.step < now).then_some(hoped);
        // Surveys of this node alone may be complete already.
        self.end_surveys();
    }

    /// Returns the first step whose pictures are not larger than those of the publishers.
    fn first_step(&self, steps: &[Form], publishers: &[PublisherId]) -> usize {
        let source = |id: &PublisherId| self.publisher(*id)?.size;
        let sources: Vec<Size> = publishers.iter().filter_map(source).collect();
        let fits = |step: &Form| {
            step.size.is_none_or(|size| sources.iter().all(|source| size.fits_in(*source)))
        };
        steps.iter().position(fits).unwrap_or_default()
    }

    /// Handles the answer to a survey for a restoration. Returns false if the survey is another one.
    pub(in crate::control) fn hear_room_again(
        &mut self,
        survey: u64,
        complete: bool,
        refusal: Option<&Refusal>,
    ) -> bool {
        let mut courses = self.contracts.elastic.courses.iter_mut();
        let of = |(_, course): &(&SubscriptionId, &mut Course)| {
            course.survey.as_ref().is_some_and(|hoped| hoped.waiting.contains(&survey))
        };
        let Some((&subscription, course)) = courses.find(of) else { return false };
        let Some(mut hoped) = course.survey.take() else { return false };
        hoped.waiting.remove(&survey);
        let spec = self.subscription(subscription).cloned();
        let Some(mut spec) = spec.filter(|spec| spec.revision == hoped.revision) else {
            return true;
        };
        let Some((steps, now)) = spec.steps() else { return true };
        spec.form = form_at(&steps, hoped.from);
        let step = match refusal {
            _ if !complete => now,
            None => hoped.from,
            Some(refusal) if refusal.offer == Offer::default() => now,
            Some(refusal) => spec.step_after(refusal).unwrap_or(now),
        };
        hoped.step = hoped.step.max(step);
        if !hoped.waiting.is_empty() && hoped.step < now {
            if let Some(course) = self.contracts.elastic.courses.get_mut(&subscription) {
                course.survey = Some(hoped);
            }
        } else if hoped.step < now {
            self.take_step(subscription, hoped.step, Cause::Room);
        }
        true
    }

    /// Asks for reductions of less important elastic contracts on the links of this node that refuse a contract.
    pub(in crate::control) fn relieve(&mut self, tree: &Tree) {
        let elastic = |it: &Booking| it.request.elastic.is_some();
        if !self.contracts.admission.bookings().any(elastic) {
            return self.contracts.elastic.relieved.clear();
        }
        let claims = Claims::new(&self.membership.registry, tree);
        let current = |key: &PairKey, refusal: &Refusal| {
            let spec = self.subscription(key.0);
            spec.is_some_and(|spec| spec.revision == refusal.revision)
        };
        let here = |(_, key, refusal): &(NodeId, &PairKey, &Refusal)| {
            refusal.node == self.me && refusal.lacks_resource() && current(key, refusal)
        };
        let refused: BTreeMap<PairKey, Refusal> = claims
            .refusals()
            .filter(here)
            .map(|(_, key, refusal)| (*key, refusal.clone()))
            .collect();
        let now = self.now;
        self.contracts.elastic.relieved.retain(|key, _| refused.contains_key(key));
        for (key, refusal) in refused {
            let next = self.contracts.elastic.relieved.get(&key);
            if next.is_some_and(|next| now < *next) {
                continue;
            }
            let reductions = self.reductions(key.0, &refusal);
            if reductions.is_empty() {
                self.contracts.elastic.relieved.remove(&key);
                continue;
            }
            self.contracts.elastic.relieved.insert(key, now + RELIEF_AGAIN);
            for reduction in reductions {
                self.notify(reduction.subscription.node, reduction.encode());
            }
        }
    }

    /// Returns the reductions that make room for a refused subscription, of the least important contracts first.
    fn reductions(&self, refused: SubscriptionId, refusal: &Refusal) -> Vec<Reduction> {
        let Some(important) = self.subscription(refused) else { return Vec::new() };
        let registry = &self.membership.registry;
        let on_link = |pair: &Pair<'_>| {
            let next = pair.place.next.and_then(|next| self.membership.hops.get(&next));
            next.is_some_and(|hop| hop.link_name == refusal.link)
        };
        let reducible = |pair: &Pair<'_>| {
            let request = self.subscription(pair.subscription);
            let settled = request.is_some_and(|it| it.revision == pair.request.revision);
            settled && pair.request.importance < important.importance && on_link(pair)
        };
        let elastic = self.contracts.admission.bookings().filter(|it| it.request.elastic.is_some());
        let mut pairs = booked(registry, elastic, self.me);
        pairs.retain(reducible);
        pairs.sort_by_key(|pair| (pair.request.importance, pair.key()));
        let lacks = refusal.needed_bytes_per_s.saturating_sub(refusal.available_bytes_per_s);
        let mut lacks = lacks.saturating_mul(8).max(1);
        let mut reductions: BTreeMap<SubscriptionId, Reduction> = BTreeMap::new();
        for pair in &pairs {
            let Some((step, freed)) = reduction_of(pair, lacks) else { continue };
            let (subscription, revision) = (pair.subscription, pair.request.revision);
            let new = Reduction { subscription, revision, step, important: refused };
            let known = reductions.entry(subscription).or_insert(new);
            known.step = known.step.max(step);
            lacks = lacks.saturating_sub(freed);
            if lacks == 0 {
                break;
            }
        }
        reductions.into_values().collect()
    }

    /// Reduces an elastic contract of this node for a more important one, at the request of a node on its path.
    pub(in crate::control) fn hear_relax(&mut self, from: NodeId, body: Bytes) {
        let Ok(Reduction { subscription, revision, step, important }) =
            Reduction::decode(self.me, body)
        else {
            self.rejected += 1;
            return;
        };
        let on_path = { self.contracts.admission.bookings() }
            .any(|it| it.pair.0 == subscription && it.path.contains(&from));
        let Some(spec) = self.subscription(subscription).filter(|_| on_path) else { return };
        let Some(other) = self.subscription(important) else { return };
        let lower = spec.steps().is_some_and(|(_, now)| step > now);
        if spec.revision != revision || !lower || other.importance <= spec.importance {
            return;
        }
        let cause = Cause::MoreImportant {
            pattern: other.pattern.as_str().to_owned(),
            importance: other.importance,
            node_name: self.name(from).unwrap_or_default().to_owned(),
        };
        self.take_step(subscription, step, cause);
    }
}

fn later(importance: u8) -> Duration {
    RESTORE_LATER.mul_div(u64::from(IMPORTANCE_MAX.saturating_sub(importance)), 1)
}

fn form_at(steps: &[Form], at: usize) -> Form {
    steps.get(at).copied().unwrap_or(Form::FULL)
}

/// Returns the first step of a pair that frees `lacks` bits per second on this node's link, or the last one that frees any,
/// with the bits per second that it frees.
pub(super) fn reduction_of(pair: &Pair<'_>, lacks: u64) -> Option<(usize, u64)> {
    let (steps, now) = pair.request.steps()?;
    let ask = pair.ask().filter(|_| pair.split().is_scaled(pair.place.index))?;
    let rate = |form: Form| {
        let form = pair.spec.form_of(form);
        let demand = demand_of(pair.spec, form, &ask.in_form(pair.spec, form))??;
        Some(demand.traffic().rate())
    };
    let before = rate(form_at(&steps, now))?;
    let freed = |step: &Form| rate(*step).map_or(0, |rate| before.saturating_sub(rate));
    let lower = steps.iter().enumerate().skip(now + 1).map(|(at, step)| (at, freed(step)));
    let lower: Vec<(usize, u64)> = lower.filter(|(_, freed)| *freed > 0).collect();
    lower.iter().find(|(_, freed)| *freed >= lacks).or(lower.last()).copied()
}

/// A request to reduce an elastic contract.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Reduction {
    subscription: SubscriptionId,
    /// The request that is reduced.
    revision: u64,
    step: usize,
    /// The more important subscription.
    important: SubscriptionId,
}

impl Reduction {
    fn encode(self) -> Bytes {
        let mut out = vec![Topic::Relax.code()];
        out.put_varint(self.subscription.index.into());
        out.put_varint(self.revision);
        out.put_varint(self.step as u64);
        out.put_u64(self.important.node.0);
        out.put_varint(self.important.index.into());
        out.into()
    }

    /// Decodes a request to node `me`.
    fn decode(me: NodeId, body: Bytes) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let subscription = SubscriptionId { node: me, index: reader.varint32("subscription")? };
        let revision = reader.varint("revision")?;
        let step = reader.len(usize::from(u8::MAX), "step")?;
        let node = NodeId(reader.u64("subscription")?);
        let important = SubscriptionId { node, index: reader.varint32("subscription")? };
        reader.finish()?;
        Ok(Self { subscription, revision, step, important })
    }
}
