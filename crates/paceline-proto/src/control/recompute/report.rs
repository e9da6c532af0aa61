//! Outputs the changes of this node's streams, and of the answers to its subscriptions and publishers.

use crate::control::contracts::streams::{Installed, publishers_of};
use crate::control::data::best_effort::BestEffort;
use crate::control::data::grant::Grant;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::Refusal;
use crate::control::{Control, ControlOutput};
use crate::ids::{PublisherId, SubscriptionId};
use crate::plan::{SourceKey, Target};
use core::mem;
use std::collections::{BTreeMap, BTreeSet};

impl Control {
    /// Reports new grants, new refusals, and their ends to the local subscriptions and publishers.
    pub(super) fn report_promises(
        &mut self,
        answers: BTreeMap<PairKey, Refusal>,
        changes: &BTreeMap<SubscriptionId, Vec<Refusal>>,
    ) {
        let before =
            self.contracts.reported.granted.keys().chain(self.contracts.reported.refused.keys());
        let before: BTreeSet<PairKey> = before.copied().collect();
        self.report_refusals(answers, changes);
        self.report_grants();
        for (subscription, publisher) in before {
            let key = (subscription, publisher);
            if !self.contracts.reported.granted.contains_key(&key)
                && !self.contracts.reported.refused.contains_key(&key)
            {
                self.outputs.push_back(ControlOutput::Withdrawn { subscription, publisher });
            }
        }
    }

    /// Reports new and changed grants to the local subscriptions and publishers.
    fn report_grants(&mut self) {
        let me = self.me;
        let heard = |pair: &PairKey| {
            pair.0.node != me || publishers_of(&self.streams.heard, pair.0).any(|it| it == pair.1)
        };
        let granted: BTreeMap<PairKey, Grant> = self
            .granted_here()
            .filter(|(key, _)| heard(key) && !self.contracts.reported.incomplete.contains(key))
            .collect();
        for (key, grant) in &granted {
            if self.contracts.reported.granted.get(key) != Some(grant) {
                self.outputs.push_back(ControlOutput::Granted { grant: grant.clone() });
            }
        }
        self.contracts.reported.granted = granted;
    }

    /// Reports streams without the requested promise to local subscriptions, if new or changed.
    pub(super) fn report_best_effort(&mut self, best_effort: BTreeMap<PairKey, BestEffort>) {
        let heard = |pair: &PairKey| {
            publishers_of(&self.streams.heard, pair.0).any(|publisher| publisher == pair.1)
        };
        let mut now = best_effort;
        now.retain(|key, _| heard(key) && !self.contracts.reported.granted.contains_key(key));
        for (&(subscription, publisher), &why) in &now {
            if self.contracts.reported.best_effort.get(&(subscription, publisher)) != Some(&why) {
                self.outputs.push_back(ControlOutput::BestEffort { subscription, publisher, why });
            }
        }
        self.contracts.reported.best_effort = now;
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

    /// Reports grants of local subscriptions without the requested spare, if new.
    fn report_unspared(&mut self, unspared: BTreeMap<PairKey, Refusal>) {
        for (key, refusal) in &unspared {
            if self.contracts.reported.unspared.get(key) != Some(refusal) {
                self.outputs.push_back(ControlOutput::NoSpare { refusal: refusal.clone() });
            }
        }
        self.contracts.reported.unspared = unspared;
    }

    /// Reports new and changed refusals. The refusal of a change that keeps its previous stream is reported
    /// only with the change.
    fn report_refusals(
        &mut self,
        refused: BTreeMap<PairKey, Refusal>,
        changes: &BTreeMap<SubscriptionId, Vec<Refusal>>,
    ) {
        let held = self.contracts.admission.carrying(&self.membership.registry).map(|it| it.pair);
        let held: BTreeSet<PairKey> =
            held.filter(|key| !self.contracts.reported.incomplete.contains(key)).collect();
        let of_spare = |(key, refusal): &(PairKey, Refusal)| {
            refusal.spare && held.contains(key) && key.0.node == self.me
        };
        let (unspared, mut refused): (BTreeMap<_, _>, BTreeMap<_, _>) =
            refused.into_iter().partition(of_spare);
        self.report_unspared(unspared);
        refused.retain(|key, _| !held.contains(key) && !changes.contains_key(&key.0));
        for (&key, refusal) in &refused {
            if self.contracts.reported.refused.get(&key) != Some(refusal) {
                let ((subscription, publisher), refusal) = (key, refusal.clone());
                self.outputs.push_back(ControlOutput::Refused { subscription, publisher, refusal });
            }
        }
        self.contracts.reported.refused = refused;
    }
}
