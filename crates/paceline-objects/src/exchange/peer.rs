//! The slot of one observer.

use super::counters::{ExchangeCounters, SuppressReason};
use super::objects::ObjectState;
use super::objects::Objects;
use super::pair::{Ending, Pair, Queued};
use super::places::Places;
use super::queue::SlotQueue;
use super::settings::ExchangeSettings;
use super::update::{Exchange, ExchangeClass, ExchangeUpdate, UpdateConstraints};
use crate::contract::PromisedService;
use crate::ids::{ObjectIndex, PeerId};
use crate::modules::{ErrorControl, InteractorModules, UpdatePolicing};
use crate::schema::GroupMask;
use crate::semantic::ExchangeTerms;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The greatest number of messages to one observer that are neither delivered nor lost; the oldest counts as lost.
const FLIGHTS_MAX: usize = 4_096;
/// How long the last exchange of a pair that ended is kept: the longest gap.
const REST: Duration = Duration::from_secs(3_600);

/// The slot of one observer.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) id: PeerId,
    pub(super) counters: ExchangeCounters,
    pairs: BTreeMap<ObjectIndex, Pair>,
    /// The last exchange of pairs that ended, so that the gap also holds for one that begins again.
    rested: BTreeMap<ObjectIndex, Instant>,
    queue: SlotQueue,
    places: Places,
    pub(super) modules: InteractorModules,
    flights: BTreeMap<u64, Vec<ObjectIndex>>,
    next_number: u64,
    /// The bytes of best-effort messages, and what they would be if it had always had as many as others.
    pub(super) share: u64,
}

impl Peer {
    pub(super) fn new(id: PeerId) -> Self {
        Self {
            id,
            counters: ExchangeCounters::default(),
            pairs: BTreeMap::new(),
            rested: BTreeMap::new(),
            queue: SlotQueue::default(),
            places: Places::default(),
            modules: InteractorModules::default(),
            flights: BTreeMap::new(),
            next_number: 0,
            share: 0,
        }
    }

    pub(super) fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the number of objects with an update that waits.
    pub(super) fn waiting(&self) -> usize {
        self.pairs.values().filter(|pair| pair.waits()).count()
    }

    pub(super) fn pair(&self, object: ObjectIndex) -> Option<&Pair> {
        self.pairs.get(&object)
    }

    /// Returns the objects of interest, in ascending order.
    pub(super) fn interests(&self) -> impl Iterator<Item = ObjectIndex> {
        self.pairs.iter().filter(|(_, pair)| pair.ending.is_none()).map(|(object, _)| *object)
    }

    /// Returns the pairs of objects, which are in ascending order.
    pub(super) fn pairs_of<'a>(
        &'a self,
        objects: &'a [ObjectIndex],
    ) -> impl Iterator<Item = (ObjectIndex, Option<&'a Pair>)> {
        let first = objects.first().copied().unwrap_or_default();
        let mut pairs = self.pairs.range(first..).peekable();
        objects.iter().map(move |object| {
            while pairs.next_if(|(other, _)| **other < *object).is_some() {}
            (*object, pairs.next_if(|(other, _)| *other == object).map(|(_, pair)| pair))
        })
    }

    /// Confirms terms that are in force, of objects in ascending order. Returns the other terms.
    pub(super) fn confirm(
        &mut self,
        terms: &[(ObjectIndex, Option<ExchangeTerms>)],
        context: Context<'_>,
    ) -> Vec<(ObjectIndex, Option<ExchangeTerms>)> {
        if !terms.is_sorted_by_key(|(object, _)| *object) {
            return terms.to_vec();
        }
        let first = terms.first().map(|(object, _)| *object).unwrap_or_default();
        let mut pairs = self.pairs.range(first..).peekable();
        let (mut others, mut ready) = (Vec::new(), Vec::new());
        for (object, terms) in terms {
            while pairs.next_if(|(other, _)| *other < object).is_some() {}
            let pair = pairs.next_if(|(other, _)| *other == object).map(|(_, pair)| pair);
            match pair.filter(|pair| pair.ending.is_none()) {
                Some(pair) if *terms == Some(pair.terms) => {
                    if pair.held || matches!(pair.queued, Queued::Ready(_)) {
                        ready.push(*object);
                    }
                }
                None if terms.is_none() => {}
                Some(_) | None => others.push((*object, *terms)),
            }
        }
        for object in ready {
            self.requeue(object, context);
        }
        others
    }

    pub(super) fn is_interested(&self, object: ObjectIndex) -> bool {
        self.pairs.get(&object).is_some_and(|pair| pair.ending.is_none())
    }

    /// Returns the earliest time of an exchange.
    pub(super) fn next(&self) -> Option<Instant> {
        self.queue.next(self.places.opens())
    }

    /// Returns the number of objects that wait for room.
    pub(super) fn ready(&self) -> usize {
        self.queue.ready()
    }

    /// Sets the terms of an object, and so begins interest if there was none.
    pub(super) fn set_terms(
        &mut self,
        object: ObjectIndex,
        terms: ExchangeTerms,
        state: &ObjectState,
        context: Context<'_>,
    ) {
        if let Some(pair) = self.pairs.get_mut(&object) {
            pair.terms = terms;
            if pair.ending == Some(Ending::Withdrawn) {
                pair.resume(state, context.now);
                self.counters.offered += 1;
            }
        } else {
            let mut pair = Pair::new(terms, state, context.now);
            pair.last = self.rested.remove(&object);
            self.pairs.insert(object, pair);
            self.counters.offered += 1;
        }
        self.propose(object, Some(terms.weight), &state.group_bytes, context);
        self.requeue(object, context);
    }

    /// Notes a change of an object of interest.
    pub(super) fn offer(
        &mut self,
        object: ObjectIndex,
        (groups, constraints): (GroupMask, UpdateConstraints),
        state: &ObjectState,
        context: Context<'_>,
    ) {
        let now = context.now;
        let Some(pair) = self.pairs.get_mut(&object).filter(|pair| pair.ending.is_none()) else {
            return;
        };
        let weight = pair.terms.weight;
        if !groups.is_empty() {
            self.counters.offered += 1;
            let drops = self.modules.policing == UpdatePolicing::Drop;
            let contract =
                self.places.contract().filter(|_| self.places.place_of(object).is_some());
            if drops && pair.is_introduced() && pair.comes_early(pair.pace(contract).gap, now) {
                pair.drop_change(groups);
                self.counters.suppress(SuppressReason::Gap, 1);
            } else if let Some(reason) = pair.offer(groups, constraints, now) {
                self.counters.suppress(reason, 1);
            }
        }
        self.propose(object, Some(weight), &state.group_bytes, context);
        self.requeue(object, context);
    }

    /// Ends interest in an object, or notes its deletion.
    pub(super) fn end(&mut self, object: ObjectIndex, ending: Ending, context: Context<'_>) {
        let Some(pair) = self.pairs.get_mut(&object) else { return };
        if pair.ending == Some(ending) {
            return;
        }
        if let Some(reason) = pair.end(ending, context.now) {
            self.counters.suppress(reason, 1);
        }
        self.counters.offered += u64::from(ending == Ending::Deleted);
        let unknown = pair.is_unknown();
        self.propose(object, None, &[], context);
        if unknown {
            self.free(object, context.now);
        } else {
            self.requeue(object, context);
        }
    }

    /// Ends interest in all objects: the observer leaves. Returns them.
    pub(super) fn leave(mut self) -> (ExchangeCounters, Vec<ObjectIndex>) {
        let waiting = u64::try_from(self.waiting()).unwrap_or(u64::MAX);
        self.counters.suppress(SuppressReason::Interest, waiting);
        (self.counters, self.pairs.into_keys().collect())
    }

    /// Sets the service of the objects with the greatest weights.
    pub(super) fn promise(&mut self, service: Option<PromisedService>, context: Context<'_>) {
        if !self.places.set(service) {
            return;
        }
        let objects: Vec<_> = self.pairs.keys().copied().collect();
        for object in objects {
            let weight = self.pairs.get(&object).filter(|pair| pair.ending.is_none());
            let weight = weight.map(|pair| pair.terms.weight);
            let bytes = context.objects.get(object).map_or(&[][..], |state| &state.group_bytes);
            self.propose(object, weight, bytes, context);
            self.requeue(object, context);
        }
    }

    fn propose(
        &mut self,
        object: ObjectIndex,
        weight: Option<f64>,
        group_bytes: &[u32],
        context: Context<'_>,
    ) {
        for other in self.places.propose(object, weight, group_bytes) {
            if other != object {
                self.requeue(other, context);
            }
        }
    }

    /// Removes a pair.
    fn free(&mut self, object: ObjectIndex, now: Instant) {
        let Some(pair) = self.pairs.remove(&object) else { return };
        self.queue.requeue(object, pair.queued, Queued::Nowhere);
        if pair.waits() {
            self.counters.suppress(SuppressReason::Interest, 1);
        }
        if let Some(last) = pair.last.filter(|_| pair.ending != Some(Ending::Deleted)) {
            self.rested.insert(object, last);
        }
        let rested = self.rested.len();
        if rested > 1_024 && rested.is_power_of_two() {
            self.rested.retain(|_, last| now.since(*last) < REST);
        }
    }

    /// Returns the place in which an object has the promised service. An object is introduced as best effort, because
    /// the reserved traffic has no room for its path.
    fn promised_place(&self, object: ObjectIndex) -> Option<usize> {
        let introduced = self.pairs.get(&object).is_some_and(Pair::is_introduced);
        self.places.place_of(object).filter(|_| introduced)
    }

    /// Puts an object where its state and time belong.
    fn requeue(&mut self, object: ObjectIndex, context: Context<'_>) {
        let Context { now, .. } = context;
        let place = self.promised_place(object);
        let Some(pair) = self.pairs.get_mut(&object) else { return };
        pair.hold(context.objects.get(object), now);
        let pace = pair.pace(self.places.contract().filter(|_| place.is_some()));
        let mut due = pair.due(pace);
        let queued = if let Some(place) = place {
            if let Some(last) = self.places.last(place) {
                due = due.max(last + pace.gap);
            }
            Queued::Reserved(pair.not_before(due, now))
        } else if due <= now && matches!(pair.queued, Queued::Ready(_)) {
            Queued::Ready(pair.rank(context.objects.get(object), context.settings, now))
        } else {
            Queued::Upcoming(pair.not_before(due, now))
        };
        self.queue.requeue(object, pair.queued, queued);
        pair.queued = queued;
    }

    /// Moves the objects whose time has come to those that wait for room.
    pub(super) fn ripen(&mut self, context: Context<'_>) {
        while let Some(object) = self.queue.first_upcoming(context.now) {
            let Some(pair) = self.pairs.get_mut(&object) else { return };
            let rank = pair.rank(context.objects.get(object), context.settings, context.now);
            if let Queued::Upcoming(at) = pair.queued {
                pair.ripe = at;
            }
            self.queue.requeue(object, pair.queued, Queued::Ready(rank));
            pair.queued = Queued::Ready(rank);
        }
    }

    /// Returns a message of the promised objects whose time has come.
    pub(super) fn promised(&mut self, largest: u64, context: Context<'_>) -> Option<Exchange> {
        if self.places.opens() > context.now {
            return None;
        }
        self.queue.first_reserved(context.now)?;
        let message = self.message(ExchangeClass::Promised, u64::MAX, largest, context)?;
        let header = context.settings.message_header_bytes as u64;
        let room = self.largest(largest).saturating_sub(header);
        let head = context.settings.update_header_bytes as u64;
        self.places.left(message.bytes.saturating_sub(header), (room, head), context.now);
        Some(message)
    }

    /// Returns a message of objects that waited for room, if there is room by now.
    pub(super) fn best_effort(
        &mut self,
        budget: u64,
        largest: u64,
        context: Context<'_>,
    ) -> Option<Exchange> {
        self.queue.first_ready()?;
        self.message(ExchangeClass::BestEffort, budget, largest, context)
    }

    fn message(
        &mut self,
        class: ExchangeClass,
        budget: u64,
        largest: u64,
        context: Context<'_>,
    ) -> Option<Exchange> {
        let header = u64::try_from(context.settings.message_header_bytes).unwrap_or(u64::MAX);
        let number = self.next_number;
        let (mut updates, mut bytes) = (Vec::new(), header);
        let largest = self.largest(largest);
        loop {
            let object = match class {
                ExchangeClass::Promised => self.queue.first_reserved(context.now),
                ExchangeClass::BestEffort => self.queue.first_ready(),
            };
            let Some(object) = object else { break };
            if self.expire(object, context) {
                continue;
            }
            let room = if updates.is_empty() { u64::MAX } else { largest.saturating_sub(bytes) };
            // An update larger than a message leaves when there is budget for a message.
            let allowed = if budget >= largest && updates.is_empty() {
                u64::MAX
            } else {
                budget.saturating_sub(bytes)
            };
            let Some((update, size)) = self.depart(object, room.min(allowed), context) else {
                break;
            };
            updates.push(update);
            bytes += size;
        }
        if updates.is_empty() {
            return None;
        }
        self.next_number += 1;
        self.count(class, &updates, bytes);
        self.flights.insert(number, updates.iter().map(|update| update.object).collect());
        if self.flights.len() > FLIGHTS_MAX {
            let oldest = self.flights.first_key_value().map(|(number, _)| *number);
            self.settle(oldest.unwrap_or(number), |_| None, context);
        }
        Some(Exchange { peer: self.id, class, number, updates, bytes })
    }

    /// Drops the update of an object that could not leave in the time of its constraints.
    fn expire(&mut self, object: ObjectIndex, context: Context<'_>) -> bool {
        let expired = self.pairs.get_mut(&object).is_some_and(|pair| pair.expire(context.now));
        if expired {
            self.counters.suppress(SuppressReason::Expired, 1);
            self.requeue(object, context);
        }
        expired
    }

    /// Returns the size of a message of which the owner permits `largest` bytes.
    fn largest(&self, largest: u64) -> u64 {
        let bytes = usize::try_from(largest).unwrap_or(usize::MAX);
        self.modules.fragment_bytes(bytes) as u64
    }

    fn count(&mut self, class: ExchangeClass, updates: &[ExchangeUpdate], bytes: u64) {
        let count = u64::try_from(updates.len()).unwrap_or(u64::MAX);
        self.counters.messages += 1;
        self.counters.bytes += bytes;
        match class {
            ExchangeClass::Promised => self.counters.promised += count,
            ExchangeClass::BestEffort => self.counters.best_effort += count,
        }
    }

    /// Returns the update of an object and its bytes, if these are at most `room`.
    fn depart(
        &mut self,
        object: ObjectIndex,
        room: u64,
        context: Context<'_>,
    ) -> Option<(ExchangeUpdate, u64)> {
        let Context { objects, settings, now } = context;
        let state = objects.get(object);
        let place = self.promised_place(object);
        let pair = self.pairs.get_mut(&object)?;
        let pace = pair.pace(self.places.contract().filter(|_| place.is_some()));
        let plan = pair.plan(state, pace, settings);
        if plan.bytes > room {
            return None;
        }
        let due = match pair.queued {
            Queued::Reserved(at) => at,
            Queued::Nowhere | Queued::Upcoming(_) | Queued::Ready(_) => pair.ripe,
        };
        let (waited, number) = (pair.waits(), self.next_number);
        if pair.depart(&plan, state, number, now) {
            self.counters.carried += 1;
        } else if !waited {
            self.counters.refreshed += 1;
        }
        if let Some(place) = place {
            self.places.exchanged(place, now);
        }
        self.requeue(object, context);
        let update = ExchangeUpdate {
            object,
            kind: plan.kind,
            groups: plan.groups,
            fidelity_permille: pace.fidelity_permille,
            due,
        };
        Some((update, plan.bytes))
    }

    /// Notes that a message arrived or was lost. `arrived` returns the groups of an object that arrived, and None if
    /// not even its header did.
    pub(super) fn settle(
        &mut self,
        number: u64,
        arrived: impl Fn(ObjectIndex) -> Option<GroupMask>,
        context: Context<'_>,
    ) {
        let repeats = self.modules.error_control == ErrorControl::Acknowledged;
        for object in self.flights.remove(&number).unwrap_or_default() {
            let Some(pair) = self.pairs.get_mut(&object) else { continue };
            let settled = match arrived(object) {
                Some(groups) => pair.arrived(number, groups, repeats),
                None => pair.missed(number, repeats),
            };
            self.counters.lost += u64::from(settled.lost);
            if settled.freed {
                self.free(object, context.now);
            } else {
                self.requeue(object, context);
            }
        }
    }
}

/// The arguments that all operations of a peer have.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) objects: &'a Objects,
    pub(super) settings: &'a ExchangeSettings,
    pub(super) now: Instant,
}
