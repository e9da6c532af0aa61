//! Semantic functions: who decides when an object is exchanged.

use super::{Participant, WorldEvent};
use crate::exchange::ExchangeSettings;
use crate::ids::{ObjectIndex, PeerId};
use crate::owned::{OwnedObject, OwnedObjects};
use crate::run_queue::{DecisionWorkers, JobTimes};
use crate::schema::FieldValue;
use crate::semantic::{DecidedTerms, EvaluationBatch, FieldSource, SemanticError};
use paceline_sched::Instant;
use std::collections::BTreeMap;

impl FieldSource for OwnedObjects {
    fn field(&self, object: ObjectIndex, name: &str) -> Option<&FieldValue> {
        self.get(object).and_then(|object: &OwnedObject| object.value(name))
    }

    fn path(&self, object: ObjectIndex) -> Option<&str> {
        self.get(object).map(OwnedObject::path)
    }

    fn fields(&self, object: ObjectIndex) -> Vec<(&str, &FieldValue)> {
        self.get(object).map(|object| object.fields().collect()).unwrap_or_default()
    }
}

/// The fields of some objects at one time, for a semantic function that is evaluated elsewhere.
#[derive(Clone, Debug, Default)]
pub struct FieldSnapshot {
    objects: BTreeMap<ObjectIndex, OwnedObject>,
}

impl FieldSource for FieldSnapshot {
    fn field(&self, object: ObjectIndex, name: &str) -> Option<&FieldValue> {
        self.objects.get(&object).and_then(|object| object.value(name))
    }

    fn path(&self, object: ObjectIndex) -> Option<&str> {
        self.objects.get(&object).map(OwnedObject::path)
    }

    fn fields(&self, object: ObjectIndex) -> Vec<(&str, &FieldValue)> {
        self.objects.get(&object).map(|object| object.fields().collect()).unwrap_or_default()
    }
}

impl Participant {
    /// Returns the fields of the objects of a batch.
    #[must_use]
    pub fn snapshot(&self, batch: &EvaluationBatch) -> FieldSnapshot {
        let objects = batch.pairs.iter().map(|pair| pair.object);
        let objects = objects.filter_map(|index| Some((index, self.owned.get(index)?.clone())));
        FieldSnapshot { objects: objects.collect() }
    }

    /// Lets the application decide on these workers about its objects for all observers, instead of the rules that
    /// they state; `None` returns to these. The range and the contract of an observer stay in force.
    ///
    /// Functions that were disabled are enabled again.
    pub fn decide_by_application(&mut self, workers: Option<DecisionWorkers>) {
        if self.workers != workers {
            self.workers = workers;
            self.describe();
        }
        self.batches.clear();
        self.disabled.clear();
        for peer in self.interests.keys() {
            self.exchanges.enable(*peer);
        }
    }

    /// Returns the next pairs about which the application must decide, within the budget of
    /// [`ExchangeSettings::function_budget`](crate::exchange::ExchangeSettings::function_budget).
    pub fn next_batch(&mut self) -> Option<EvaluationBatch> {
        self.batches.pop_front()
    }

    /// Returns the times of a batch. It should be decided within the delay of its observer's contract, and has to be
    /// within the budget, which is its deadline without a contract. Its period is the gap of the contract, or the time
    /// of a sweep.
    #[must_use]
    pub fn job_times(&self, batch: &EvaluationBatch) -> JobTimes {
        let ExchangeSettings { function_budget, evaluate_every, .. } = self.settings.exchange();
        let contract = self.interests.get(&batch.peer).and_then(|interest| interest.contract);
        let each = contract.map(|contract| contract.each);
        JobTimes {
            deadline: batch.at + each.map_or(function_budget, |it| it.delay.min(function_budget)),
            period: each.map_or(evaluate_every, |each| each.gap().min(evaluate_every)),
        }
    }

    /// Returns whether the budget of a batch has passed, so that its terms would change nothing.
    #[must_use]
    pub fn is_late(&self, batch: &EvaluationBatch, now: Instant) -> bool {
        now >= batch.at + self.settings.exchange().function_budget
    }

    /// Takes the terms that the application decided.
    pub fn decided(&mut self, decisions: &DecidedTerms, now: Instant) {
        self.exchanges.accept(decisions, now);
    }

    /// Notes that the application could not decide about a batch. Its observer receives objects by the fallback rule
    /// from now on.
    pub fn reject(&mut self, batch: &EvaluationBatch, error: SemanticError) {
        self.exchanges.reject(batch, error);
        self.report_disabled(batch.peer);
    }

    /// Evaluates the pairs that are due.
    pub(super) fn decide(&mut self, now: Instant) {
        while let Some(batch) = self.exchanges.next_batch(now) {
            if self.workers.is_some() {
                self.batches.push_back(batch);
                continue;
            }
            let Some(function) = self.functions.get_mut(&batch.peer) else { continue };
            match batch.decide(function.as_mut(), &self.owned) {
                Ok(decisions) => self.decided(&decisions, now),
                Err(error) => self.reject(&batch, error),
            }
        }
        while let Some(peer) = self.exchanges.next_disabled() {
            self.report_disabled(peer);
        }
    }

    /// Reports once that a function is disabled, also one that exceeded its budget.
    fn report_disabled(&mut self, peer: PeerId) {
        let Some(error) = self.exchanges.disabled(peer) else { return };
        if self.disabled.insert(peer) {
            self.events.push_back(WorldEvent::Disabled(peer, error.clone()));
        }
    }
}
