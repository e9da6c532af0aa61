//! The evaluation of the pairs in range of each observer by its semantic function.

use super::ExchangeList;
use super::peer::Context;
use super::sweep;
use crate::ids::{ObjectIndex, PeerId};
use crate::semantic::{DecidedTerms, EvaluationBatch, ExchangeTerms, SemanticError};
use paceline_sched::{Duration, Instant};

/// The time that an evaluated pair may take, which limits the pairs of all observers.
const PAIR: Duration = Duration::from_micros(1);

impl ExchangeList {
    /// Returns the next batch of objects in range of an observer to be evaluated, if one is due.
    ///
    /// Each pair is evaluated once per [`ExchangeSettings::evaluate_every`], less often if an observer has more than
    /// 25,600 objects in range, or all observers together have more than 100,000: the evaluations of an owner then take
    /// at most a microsecond per pair of its time, and its messages do not wait for them.
    ///
    /// [`ExchangeSettings::evaluate_every`]: super::ExchangeSettings::evaluate_every
    ///
    /// A batch has to come back to [`Self::accept`] within the function budget; else its observer's function is
    /// disabled. Objects of observers whose function is disabled get the terms of the fallback rule here.
    pub fn next_batch(&mut self, now: Instant) -> Option<EvaluationBatch> {
        self.objects.extrapolate(now);
        while let Some(peer) = self.evaluations.due(now).filter(|_| self.pairs_from <= now) {
            let batch = self.evaluate(peer, now);
            let budget = self.settings.function_budget;
            let next = self.observers.get(&peer).map(|(_, sweep)| sweep.next(budget));
            self.evaluations.set(peer, next);
            if batch.is_some() {
                return batch;
            }
        }
        None
    }

    fn evaluate(&mut self, peer: PeerId, now: Instant) -> Option<EvaluationBatch> {
        let budget = self.settings.function_budget;
        let (observer, sweep) = self.observers.get_mut(&peer)?;
        if sweep.is_overdue(now, budget) {
            sweep.disable(SemanticError::TooSlow(budget));
            self.newly_disabled.insert(peer);
        }
        if sweep.is_complete() {
            let range = observer.range;
            if range.is_finite() {
                self.objects.begin_extrapolation(self.settings.evaluate_every, now);
            }
            if let Some(center) = observer.position_at(now).filter(|_| range.is_finite()) {
                let state = self.slots.get(peer)?;
                let objects =
                    self.objects.in_range(center, range, |object| state.is_interested(object));
                let gone = missing(state.interests(), &objects);
                sweep.begin(objects, now);
                for object in gone {
                    self.apply(peer, object, None, now);
                }
            } else {
                // No object is out of range; one that is deleted has ended its pairs.
                sweep.begin_all(self.objects.len(), now);
            }
        }
        let (observer, sweep) = self.observers.get_mut(&peer)?;
        let state = self.slots.get(peer)?;
        let (number, objects) = sweep.take(&self.objects, now);
        if objects.is_empty() {
            sweep.accepted();
            return None;
        }
        let known = state.pairs_of(&objects).filter_map(|(object, pair)| {
            Some(observer.facts(object, self.objects.get(object)?, pair, now))
        });
        let pairs: Vec<_> = known.collect();
        self.slots.evaluated(peer, pairs.len());
        let count = u64::try_from(pairs.len()).unwrap_or(u64::MAX);
        self.pairs_from = self.pairs_from.max(sweep::earliest(now)) + PAIR.mul_div(count, 1);
        let batch = EvaluationBatch { peer, number, at: now, pairs };
        if sweep.disabled.is_none() {
            return Some(batch);
        }
        let fallback = Some(self.settings.fallback);
        let terms = batch.pairs.iter().map(|_| fallback).collect();
        self.apply_all(&batch.decided(terms), now);
        None
    }

    /// Accepts the terms of a batch. Returns whether it was the one of this observer that is being evaluated: one
    /// that comes after its budget changes nothing. Terms out of range disable the function.
    pub fn accept(&mut self, decisions: &DecidedTerms, now: Instant) -> bool {
        let budget = self.settings.function_budget;
        let Some((_, sweep)) = self.observers.get_mut(&decisions.peer) else { return false };
        if !sweep.is_pending(decisions.number) {
            return false;
        }
        sweep.accepted();
        let next = sweep.next(budget);
        self.evaluations.set(decisions.peer, Some(next));
        let checks = decisions.terms.iter().filter_map(|(_, terms)| terms.as_ref());
        if let Some(error) = checks.map(ExchangeTerms::check).find_map(Result::err) {
            self.disable(decisions.peer, error.into());
            return false;
        }
        self.apply_all(decisions, now);
        true
    }

    /// Notes that a batch could not be decided, which disables the semantic function of its observer: its objects in
    /// range get the terms of the fallback rule. A batch of an earlier function changes nothing.
    pub fn reject(&mut self, batch: &EvaluationBatch, reason: SemanticError) {
        let pending = self.observers.get(&batch.peer);
        if pending.is_some_and(|(_, sweep)| sweep.is_pending(batch.number)) {
            self.disable(batch.peer, reason);
        }
    }

    fn disable(&mut self, peer: PeerId, reason: SemanticError) {
        if let Some((_, sweep)) = self.observers.get_mut(&peer) {
            sweep.disable(reason);
            self.newly_disabled.insert(peer);
            self.evaluations.set(peer, Some(sweep.next(self.settings.function_budget)));
        }
    }

    /// Enables the semantic function of an observer, usually a new one.
    pub fn enable(&mut self, peer: PeerId) {
        if let Some((_, sweep)) = self.observers.get_mut(&peer) {
            // A batch at the function before it comes too late.
            sweep.accepted();
            sweep.disabled = None;
            self.newly_disabled.remove(&peer);
            self.evaluations.set(peer, Some(sweep.next(self.settings.function_budget)));
        }
    }

    /// Returns why the semantic function of an observer is disabled.
    #[must_use]
    pub fn disabled(&self, peer: PeerId) -> Option<&SemanticError> {
        self.observers.get(&peer).and_then(|(_, sweep)| sweep.disabled.as_ref())
    }

    /// Returns an observer whose semantic function was disabled since the last call, once each time.
    pub fn next_disabled(&mut self) -> Option<PeerId> {
        self.newly_disabled.pop_first()
    }

    fn apply_all(&mut self, decisions: &DecidedTerms, now: Instant) {
        let context = Context { objects: &self.objects, settings: &self.settings, now };
        let others = self
            .slots
            .with(decisions.peer, context, |peer, context| peer.confirm(&decisions.terms, context));
        for (object, terms) in others.unwrap_or_default() {
            self.apply(decisions.peer, object, terms, now);
        }
    }
}

/// Returns the objects that are not among `others`; both are in ascending order.
fn missing(objects: impl Iterator<Item = ObjectIndex>, others: &[ObjectIndex]) -> Vec<ObjectIndex> {
    let mut others = others.iter().peekable();
    let is_missing = |object: &ObjectIndex| {
        while others.next_if(|other| *other < object).is_some() {}
        others.peek() != Some(&object)
    };
    objects.filter(is_missing).collect()
}
