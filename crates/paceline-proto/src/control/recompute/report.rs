//! Outputs the changes of this node's streams, and of the answers to its subscriptions and publishers.

use crate::control::contracts::Answer;
use crate::control::contracts::streams::{Installed, publishers_of};
use crate::control::data::best_effort::BestEffort;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::Refusal;
use crate::control::{Control, ControlOutput};
use crate::ids::{PublisherId, SubscriptionId};
use crate::plan::{SourceKey, Target};
use core::mem;
use std::collections::{BTreeMap, BTreeSet};

impl Control {
    /// Reports new and changed answers, and their ends, to the local subscriptions and publishers.
    pub(super) fn report_answers(&mut self, now: BTreeMap<PairKey, Answer>) {
        let before = mem::replace(&mut self.contracts.answers, now);
        let old = |key: &PairKey| before.get(key);
        let (now, outputs) = (&self.contracts.answers, &mut self.outputs);
        let mut granted = Vec::new();
        for (key, answer) in now {
            let known = old(key).and_then(|old| old.unspared.as_ref());
            if let Some(refusal) = answer.unspared.as_ref().filter(|now| known != Some(*now)) {
                outputs.push_back(ControlOutput::NoSpare { refusal: refusal.clone() });
            }
        }
        for (key, answer) in now {
            let known = old(key).and_then(|old| old.refused.as_ref());
            if let Some(refusal) = answer.refused.as_ref().filter(|now| known != Some(*now)) {
                let ((subscription, publisher), refusal) = (*key, refusal.clone());
                outputs.push_back(ControlOutput::Refused { subscription, publisher, refusal });
            }
        }
        for (key, answer) in now {
            let known = old(key).and_then(|old| old.granted.as_ref());
            if let Some(grant) = answer.granted.as_ref().filter(|now| known != Some(*now)) {
                outputs.push_back(ControlOutput::Granted { grant: grant.clone() });
                granted.push(key.0);
            }
        }
        let registry = &self.membership.registry;
        let mine = registry.record(self.me).map(|record| &record.subscriptions);
        let elastic = |id: &SubscriptionId| mine?.get(id)?.elastic.as_ref();
        granted.retain(|id| elastic(id).is_some());
        granted.into_iter().for_each(|id| self.contracts.elastic.granted(id));
        for (&(subscription, publisher), _) in before.iter().filter(|(_, old)| old.is_decided()) {
            if !now.get(&(subscription, publisher)).is_some_and(Answer::is_decided) {
                outputs.push_back(ControlOutput::Withdrawn { subscription, publisher });
            }
        }
        for (key, answer) in now {
            let known = old(key).and_then(|old| old.best_effort);
            if let Some(why) = answer.best_effort.filter(|now| known != Some(*now)) {
                let (subscription, publisher) = *key;
                outputs.push_back(ControlOutput::BestEffort { subscription, publisher, why });
            }
        }
    }

    /// Returns the answers to the local subscriptions and publishers. The refusal of a change that keeps its previous
    /// stream is reported only with the change. The `incomplete` pairs are not in force.
    pub(super) fn answers(
        &self,
        refused: BTreeMap<PairKey, Refusal>,
        changes: &BTreeMap<SubscriptionId, Vec<Refusal>>,
        best_effort: BTreeMap<PairKey, BestEffort>,
        incomplete: &BTreeSet<PairKey>,
    ) -> BTreeMap<PairKey, Answer> {
        let held = self.contracts.admission.carrying(&self.membership.registry).map(|it| it.pair);
        let held: BTreeSet<PairKey> = held.filter(|key| !incomplete.contains(key)).collect();
        let heard =
            |pair: &PairKey| publishers_of(&self.streams.heard, pair.0).any(|it| it == pair.1);
        let mut answers: BTreeMap<PairKey, Answer> = BTreeMap::new();
        for (key, refusal) in refused {
            if refusal.spare && held.contains(&key) && key.0.node == self.me {
                answers.entry(key).or_default().unspared = Some(refusal);
            } else if !held.contains(&key) && !changes.contains_key(&key.0) {
                answers.entry(key).or_default().refused = Some(refusal);
            }
        }
        for (key, grant) in self.granted_here() {
            if (key.0.node != self.me || heard(&key)) && !incomplete.contains(&key) {
                answers.entry(key).or_default().granted = Some(grant);
            }
        }
        for (key, why) in best_effort.into_iter().filter(|(key, _)| heard(key)) {
            let answer = answers.get(&key);
            if answer.is_none_or(|answer| answer.granted.is_none()) {
                answers.entry(key).or_default().best_effort = Some(why);
            }
        }
        answers
    }

    pub(super) fn report_installs(&mut self, installed: BTreeMap<SourceKey, Installed>) {
        let before = mem::replace(&mut self.streams.installed, installed);
        let handed = self.handed_over(&before);
        // Several changes may be handled together.
        let installed = &self.streams.installed;
        self.streams.handed.retain(|(source, hop, form)| {
            let outputs = installed.get(source).map_or(&[][..], |it| &it.outputs);
            let now = outputs.iter().any(|it| (it.target, it.form) == (Target::Hop(*hop), *form));
            !now && installed.keys().any(|it| it.publisher == source.publisher)
        });
        self.streams.handed.extend(handed);
        for (&source, now) in &self.streams.installed {
            if before.get(&source) != Some(now) {
                let Installed { publisher, from, entry, outputs } = now.clone();
                let from = from.into_iter().collect();
                self.outputs.push_back(ControlOutput::Install {
                    source,
                    publisher,
                    from,
                    entry,
                    outputs,
                });
            }
        }
        for (source, Installed { publisher, .. }) in before {
            if !self.streams.installed.contains_key(&source) {
                self.outputs.push_back(ControlOutput::Install {
                    source,
                    publisher,
                    from: Vec::new(),
                    entry: Vec::new(),
                    outputs: Vec::new(),
                });
            }
        }
    }

    /// Reports changes for existing local publishers only.
    pub(super) fn report_matching(&mut self, mut matching: BTreeSet<PublisherId>) {
        matching.retain(|publisher| publisher.node == self.me);
        let before = mem::replace(&mut self.streams.matching, matching);
        let Some(mine) = self.membership.registry.record(self.me) else { return };
        for &publisher in before.symmetric_difference(&self.streams.matching) {
            if mine.publishers.contains_key(&publisher) {
                let matching = self.streams.matching.contains(&publisher);
                self.outputs.push_back(ControlOutput::Matching { publisher, matching });
            }
        }
    }

    pub(super) fn report_heard(&mut self, heard: Vec<PairKey>) {
        let before = mem::replace(&mut self.streams.heard, heard);
        let Some(mine) = self.membership.registry.record(self.me) else { return };
        for &subscription in mine.subscriptions.keys() {
            let now = || publishers_of(&self.streams.heard, subscription);
            if !now().eq(publishers_of(&before, subscription)) {
                let publishers = now().collect();
                self.outputs.push_back(ControlOutput::Subscribed { subscription, publishers });
            }
        }
    }
}
