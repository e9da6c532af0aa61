//! The exchange list and the slots of an owner: the times and observers of its updates, and the reasons of those that
//! are suppressed.
//!
//! Paper: West and Schwan 1997, section 3.1.

mod counters;
mod evaluation;
mod groups;
mod objects;
mod observer;
mod pair;
mod peer;
mod places;
mod queue;
mod settings;
mod slots;
mod sweep;
mod timetable;
mod update;

pub use counters::{ExchangeCounters, SuppressReason};
pub use objects::ObjectFacts;
pub use observer::Observer;
pub use settings::{ExchangeError, ExchangeSettings};
pub use timetable::PeerTimetable;
pub use update::{
    Exchange, ExchangeBudget, ExchangeClass, ExchangeUpdate, UpdateConstraintError,
    UpdateConstraints, UpdateKind,
};

use crate::contract::PromisedService;
use crate::ids::{ObjectIndex, PeerId};
use crate::modules::InteractorModules;
use crate::schema::GroupMask;
use crate::semantic::ExchangeTerms;
use objects::Objects;
use paceline_sched::Instant;
use pair::Ending;
use peer::Context;
use slots::Slots;
use std::collections::{BTreeMap, BTreeSet};
use sweep::Sweep;

/// Decides when an owner sends which updates of its objects to each observer.
///
/// There is a slot for each observer that joined, never one for the owner itself. A slot holds which groups of which
/// objects wait; their content is read when the message is made, so it is always the newest.
///
/// The caller creates, changes and deletes objects, evaluates the batches of [`Self::next_batch`] by the observers'
/// semantic functions, sends the messages of [`Self::poll`], and reports each as [`Self::delivered`] or
/// [`Self::lost`].
///
/// ```
/// use paceline_objects::exchange::{ExchangeList, ExchangeSettings, ObjectFacts, Observer};
/// use paceline_objects::semantic::{ExchangeTerms, Periodic};
/// use paceline_objects::{GroupMask, Motion, ObjectIndex, PeerId};
/// use paceline_sched::{Duration, Instant};
///
/// let mut list = ExchangeList::new(ExchangeSettings::default());
/// let (car, driver) = (ObjectIndex(7), PeerId(1));
/// let motion = Some(Motion::standing([5.0, 0.0, 0.0], Instant::ZERO));
/// let facts = ObjectFacts { motion, motion_groups: GroupMask::of(0), group_bytes: &[24] };
/// list.create(car, &facts, Instant::ZERO)?;
/// list.join(driver, Observer::at([0.0; 3], 100.0, Instant::ZERO), Instant::ZERO)?;
///
/// let now = list.next_wake().unwrap_or(Instant::FAR);
/// let batch = list.next_batch(now).expect("the observer is evaluated");
/// let mut function = Periodic(ExchangeTerms::every(Duration::from_millis(50)));
/// list.accept(&batch.decide(&mut function, &())?, now);
///
/// let message = list.poll(now, &1_500, 1_400).expect("the object is introduced");
/// assert_eq!(message.updates.len(), 1);
/// list.delivered(driver, message.number, now);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ExchangeList {
    settings: ExchangeSettings,
    objects: Objects,
    slots: Slots,
    observers: BTreeMap<PeerId, (Observer, Sweep)>,
    evaluations: PeerTimetable,
    /// When the next pairs may be evaluated.
    pairs_from: Instant,
    /// Observers whose semantic function was disabled since [`Self::next_disabled`].
    newly_disabled: BTreeSet<PeerId>,
}

impl ExchangeList {
    /// Creates an empty list.
    #[must_use]
    pub fn new(settings: ExchangeSettings) -> Self {
        Self {
            settings,
            objects: Objects::new(settings.cell),
            slots: Slots::default(),
            observers: BTreeMap::new(),
            evaluations: PeerTimetable::default(),
            pairs_from: Instant::ZERO,
            newly_disabled: BTreeSet::new(),
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    /// The object exists, a value is out of range, or there are too many objects.
    pub fn create(
        &mut self,
        object: ObjectIndex,
        facts: &ObjectFacts<'_>,
        now: Instant,
    ) -> Result<(), ExchangeError> {
        if self.objects.len() >= self.settings.objects_max {
            return Err(ExchangeError::Objects { limit: self.settings.objects_max });
        }
        if self.slots.iter().any(|peer| peer.pair(object).is_some()) {
            return Err(ExchangeError::Exists(object));
        }
        self.objects.create(object, facts, now)
    }

    /// Notes that `groups` of an object changed, and its motion and sizes. Without groups, only the latter.
    ///
    /// # Errors
    /// There is no such object, or a value is out of range.
    pub fn change(
        &mut self,
        object: ObjectIndex,
        facts: &ObjectFacts<'_>,
        groups: GroupMask,
        now: Instant,
    ) -> Result<(), ExchangeError> {
        self.change_with(object, facts, (groups, UpdateConstraints::default()), now)
    }

    /// As [`Self::change`], with constraints of this change.
    ///
    /// # Errors
    /// As [`Self::change`], and constraints that are out of range.
    pub fn change_with(
        &mut self,
        object: ObjectIndex,
        facts: &ObjectFacts<'_>,
        (groups, constraints): (GroupMask, UpdateConstraints),
        now: Instant,
    ) -> Result<(), ExchangeError> {
        constraints.check()?;
        let state = self.objects.change(object, facts, now)?;
        let groups = GroupMask(groups.0 & state.groups().0);
        if !groups.is_empty() {
            self.slots.changed(state.peers.len());
        }
        let context = Context { objects: &self.objects, settings: &self.settings, now };
        let Some(state) = self.objects.get(object) else { return Ok(()) };
        for peer in &state.peers {
            self.slots.with(*peer, context, |peer, context| {
                peer.offer(object, (groups, constraints), state, context);
            });
        }
        Ok(())
    }

    /// Deletes an object. Observers that may have a replica are informed until they know.
    ///
    /// # Errors
    /// There is no such object.
    pub fn delete(&mut self, object: ObjectIndex, now: Instant) -> Result<(), ExchangeError> {
        self.objects.delete(object)?;
        let knowing = self.slots.iter().filter(|peer| peer.pair(object).is_some());
        for peer in knowing.map(|peer| peer.id).collect::<Vec<_>>() {
            self.end(peer, object, Ending::Deleted, now);
        }
        Ok(())
    }

    /// Adds an observer. Its first evaluation is now or soon; those of many are spread over the time of a sweep.
    ///
    /// # Errors
    /// It joined before, a value is not finite, or there are too many observers.
    pub fn join(
        &mut self,
        peer: PeerId,
        observer: Observer,
        now: Instant,
    ) -> Result<(), ExchangeError> {
        observer.check(peer)?;
        if self.slots.get(peer).is_some() {
            return Err(ExchangeError::Joined(peer));
        }
        if self.slots.len() >= self.settings.peers_max {
            return Err(ExchangeError::Peers { limit: self.settings.peers_max });
        }
        // A multiple of the golden ratio places any number of observers evenly.
        let phase = u64::try_from(self.slots.len()).unwrap_or(0).wrapping_mul(618_034) % 1_000_000;
        let first = now + self.settings.evaluate_every.mul_div(phase, 1_000_000);
        let sweep = Sweep::new(first, self.settings.evaluate_every);
        self.evaluations.set(peer, Some(sweep.next(self.settings.function_budget)));
        self.observers.insert(peer, (observer, sweep));
        self.slots.join(peer);
        Ok(())
    }

    /// Sets where an observer is and looks.
    ///
    /// # Errors
    /// There is no such observer, or a value is not finite.
    pub fn observe(&mut self, peer: PeerId, observer: Observer) -> Result<(), ExchangeError> {
        observer.check(peer)?;
        let (known, _) = self.observers.get_mut(&peer).ok_or(ExchangeError::NoPeer(peer))?;
        *known = observer;
        Ok(())
    }

    /// Sets the service of the objects with the greatest weights for an observer, and no promise without one. Objects
    /// that the reserved traffic does not cover have no place, and an object is introduced as best effort. It holds
    /// from the next exchange.
    ///
    /// # Errors
    /// There is no such observer, or a value of the contract is out of range.
    pub fn promise(
        &mut self,
        peer: PeerId,
        service: Option<PromisedService>,
        now: Instant,
    ) -> Result<(), ExchangeError> {
        if let Some(service) = &service {
            service.each.check()?;
        }
        let context = Context { objects: &self.objects, settings: &self.settings, now };
        self.slots
            .with(peer, context, |peer, context| peer.promise(service, context))
            .ok_or(ExchangeError::NoPeer(peer))
    }

    /// Sets the modules of the updates for an observer. They hold from the next exchange.
    ///
    /// # Errors
    /// There is no such observer.
    pub fn choose(
        &mut self,
        peer: PeerId,
        modules: InteractorModules,
        now: Instant,
    ) -> Result<(), ExchangeError> {
        let context = Context { objects: &self.objects, settings: &self.settings, now };
        self.slots
            .with(peer, context, |peer, _| peer.modules = modules)
            .ok_or(ExchangeError::NoPeer(peer))
    }

    /// Removes an observer and its slot.
    pub fn leave(&mut self, peer: PeerId) {
        self.observers.remove(&peer);
        self.newly_disabled.remove(&peer);
        self.evaluations.set(peer, None);
        for object in self.slots.leave(peer) {
            if let Some(object) = self.objects.get_mut(object) {
                object.remove_peer(peer);
            }
        }
    }

    /// Sets the terms of an object for an observer without a semantic function, and ends interest with None.
    ///
    /// # Errors
    /// There is no such observer or object, or the terms are out of range.
    pub fn set_terms(
        &mut self,
        peer: PeerId,
        object: ObjectIndex,
        terms: Option<ExchangeTerms>,
        now: Instant,
    ) -> Result<(), ExchangeError> {
        if let Some(terms) = &terms {
            terms.check()?;
        }
        let known = self.slots.get(peer).ok_or(ExchangeError::NoPeer(peer))?;
        if self.objects.get(object).is_none() {
            return Err(ExchangeError::NoObject(object));
        }
        if terms.is_some() && known.pair(object).is_none() {
            let limit = self.settings.objects_per_peer_max;
            if known.pairs() >= limit || self.slots.is_full(peer, self.settings.pairs_max) {
                return Err(ExchangeError::Pairs { peer, pairs: known.pairs() });
            }
        }
        self.apply(peer, object, terms, now);
        Ok(())
    }

    /// Returns when [`Self::next_batch`] or [`Self::poll`] has something to do. Objects that wait for room in the
    /// budget are not counted; see [`Self::is_hungry`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Instant> {
        let evaluation = self.evaluations.first().map(|(at, _)| at.max(self.pairs_from));
        let moved = self.objects.next_extrapolation();
        self.slots.next().into_iter().chain(evaluation).chain(moved).min()
    }

    /// Returns whether objects wait for room in the budget.
    #[must_use]
    pub fn is_hungry(&self) -> bool {
        self.slots.is_hungry()
    }

    /// Returns the next message to be sent now: promised ones first, then those that `budget` permits, from the
    /// observers in turn. Call it until it returns None. `largest` is the size of a message in bytes; only an update
    /// that is larger by itself exceeds it.
    pub fn poll(
        &mut self,
        now: Instant,
        budget: &impl ExchangeBudget,
        largest: u64,
    ) -> Option<Exchange> {
        let context = Context { objects: &self.objects, settings: &self.settings, now };
        let promised = self.slots.promised(largest, context);
        promised.or_else(|| self.slots.best_effort(budget, largest, context))
    }

    /// Notes that a message arrived.
    pub fn delivered(&mut self, peer: PeerId, number: u64, now: Instant) {
        self.arrived(peer, number, |_| Some(GroupMask(u32::MAX)), now);
    }

    /// Notes that a message was lost. Its groups wait again, unless a newer message carries them.
    pub fn lost(&mut self, peer: PeerId, number: u64, now: Instant) {
        self.arrived(peer, number, |_| None, now);
    }

    /// Notes that a message arrived in part: `groups` returns those of an object that did, and None if not even the
    /// header of its update did.
    pub fn arrived(
        &mut self,
        peer: PeerId,
        number: u64,
        groups: impl Fn(ObjectIndex) -> Option<GroupMask>,
        now: Instant,
    ) {
        let context = Context { objects: &self.objects, settings: &self.settings, now };
        self.slots.with(peer, context, |peer, context| peer.settle(number, groups, context));
    }

    /// Returns the counters of all observers, also of those that left.
    #[must_use]
    pub fn counters(&self) -> ExchangeCounters {
        self.slots.counters()
    }

    /// Returns the number of pairs with an update that waits. It takes as long as there are pairs.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        u64::try_from(self.slots.waiting()).unwrap_or(u64::MAX)
    }

    /// Returns the counters of an observer.
    #[must_use]
    pub fn counters_of(&self, peer: PeerId) -> Option<&ExchangeCounters> {
        self.slots.get(peer).map(|peer| &peer.counters)
    }

    /// Returns whether an object exists, or an observer is to be informed of its end.
    #[must_use]
    pub fn is_known(&self, object: ObjectIndex) -> bool {
        self.objects.get(object).is_some()
            || self.slots.iter().any(|peer| peer.pair(object).is_some())
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Returns the number of pairs of an object and an observer with interest, or to be informed of its end.
    #[must_use]
    pub const fn pairs(&self) -> usize {
        self.slots.pairs()
    }

    fn apply(
        &mut self,
        id: PeerId,
        object: ObjectIndex,
        terms: Option<ExchangeTerms>,
        now: Instant,
    ) {
        let Some(peer) = self.slots.get(id) else { return };
        let Some(state) = self.objects.get_mut(object) else { return };
        let Some(terms) = terms else {
            state.remove_peer(id);
            return self.end(id, object, Ending::Withdrawn, now);
        };
        let limit = self.settings.objects_per_peer_max;
        let full = peer.pairs() >= limit || self.slots.is_full(id, self.settings.pairs_max);
        if full && peer.pair(object).is_none() {
            return self.slots.suppress(SuppressReason::Limit, 1);
        }
        state.add_peer(id);
        let context = Context { objects: &self.objects, settings: &self.settings, now };
        let Some(state) = self.objects.get(object) else { return };
        self.slots.with(id, context, |peer, context| {
            peer.set_terms(object, terms, state, context);
        });
    }

    fn end(&mut self, peer: PeerId, object: ObjectIndex, ending: Ending, now: Instant) {
        let context = Context { objects: &self.objects, settings: &self.settings, now };
        self.slots.with(peer, context, |peer, context| peer.end(object, ending, context));
    }
}
