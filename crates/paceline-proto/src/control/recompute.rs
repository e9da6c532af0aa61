//! From the registry to this node's streams, and to what has changed about them.

use super::graph::Tree;
use super::refusal::Refusal;
use super::registry::PairKey;
use super::routes::{self, Installed, Pair};
use super::spec::SourceKey;
use super::{Control, Output};
use crate::ids::{PublisherId, SubscriptionId};
use core::mem;
use std::collections::{BTreeMap, BTreeSet};

/// What this node does and its users hear, as the registry has it now.
struct Streams {
    installed: BTreeMap<SourceKey, Installed>,
    matching: BTreeSet<PublisherId>,
    heard: BTreeMap<SubscriptionId, Vec<PublisherId>>,
}

impl Control {
    /// Computes everything anew and puts out what differs from before.
    pub(super) fn recompute(&mut self) {
        let tree = Tree::new(&self.registry, self.me);
        self.registry.mark(self.now, &tree);
        let foreign: BTreeSet<PairKey> = self
            .registry
            .reached(&tree)
            .filter(|(node, _)| *node != self.me)
            .flat_map(|(_, record)| record.refusals.keys().copied())
            .collect();
        let pairs = routes::pairs(&self.registry, &tree, self.me);
        let decision = self.admission.decide(self.now, self.me, &pairs, &foreign, &self.hops);
        let live = |pair: &&Pair<'_>| {
            !foreign.contains(&pair.key()) && !self.admission.refuses(pair.key())
        };
        let live: Vec<&Pair<'_>> = pairs.iter().filter(live).collect();
        let streams = Streams {
            installed: routes::plan(&live, &decision.unpromised),
            matching: live.iter().map(|pair| pair.publisher).collect(),
            heard: self.hear(&live),
        };
        for change in decision.changes {
            self.announce(change, None);
        }
        self.tell_installs(streams.installed);
        self.tell_matching(streams.matching);
        self.tell_heard(streams.heard);
        self.tell_refusals(&tree);
        // The refusals announced above are part of these streams already.
        self.dirty = false;
    }

    /// What each local subscription hears, in order, as `live` is.
    fn hear(&self, live: &[&Pair<'_>]) -> BTreeMap<SubscriptionId, Vec<PublisherId>> {
        let mut heard: BTreeMap<SubscriptionId, Vec<PublisherId>> = BTreeMap::new();
        for pair in live.iter().filter(|pair| pair.subscription.node == self.me) {
            // Most hear one publisher: room for one, not for four.
            let publishers =
                heard.entry(pair.subscription).or_insert_with(|| Vec::with_capacity(1));
            publishers.push(pair.publisher);
        }
        heard
    }

    fn tell_installs(&mut self, installed: BTreeMap<SourceKey, Installed>) {
        let before = mem::replace(&mut self.installed, installed);
        for (&source, now) in &self.installed {
            if before.get(&source) != Some(now) {
                let Installed { publisher, outputs } = now.clone();
                self.outputs.push_back(Output::Install { source, publisher, outputs });
            }
        }
        for (source, Installed { publisher, .. }) in before {
            if !self.installed.contains_key(&source) {
                let outputs = Vec::new();
                self.outputs.push_back(Output::Install { source, publisher, outputs });
            }
        }
    }

    /// Tells of local publishers only, and not of those that are gone.
    fn tell_matching(&mut self, mut matching: BTreeSet<PublisherId>) {
        matching.retain(|publisher| publisher.node == self.me);
        let before = mem::replace(&mut self.matching, matching);
        let Some(mine) = self.registry.record(self.me) else { return };
        for &publisher in before.symmetric_difference(&self.matching) {
            if mine.publishers.contains_key(&publisher) {
                let matching = self.matching.contains(&publisher);
                self.outputs.push_back(Output::Matching { publisher, matching });
            }
        }
    }

    fn tell_heard(&mut self, heard: BTreeMap<SubscriptionId, Vec<PublisherId>>) {
        let before = mem::replace(&mut self.heard, heard);
        let Some(mine) = self.registry.record(self.me) else { return };
        for &subscription in mine.subscriptions.keys() {
            let now = self.heard.get(&subscription);
            if before.get(&subscription) != now {
                let publishers = now.cloned().unwrap_or_default();
                self.outputs.push_back(Output::Subscribed { subscription, publishers });
            }
        }
    }

    /// Tells of refusals that are new or have other numbers; if several nodes refuse the same, of
    /// the first one's.
    fn tell_refusals(&mut self, tree: &Tree) {
        let mut refused: BTreeMap<PairKey, Refusal> = BTreeMap::new();
        let mine = self.registry.record(self.me);
        for (_, record) in self.registry.reached(tree) {
            for (key, refusal) in &record.refusals {
                let asks = mine.is_some_and(|mine| mine.subscriptions.contains_key(&key.0));
                if asks && !refused.contains_key(key) {
                    refused.insert(*key, refusal.clone());
                }
            }
        }
        for (&key, refusal) in &refused {
            if self.refused.get(&key) != Some(refusal) {
                let ((subscription, publisher), refusal) = (key, refusal.clone());
                self.outputs.push_back(Output::Refused { subscription, publisher, refusal });
            }
        }
        self.refused = refused;
    }
}
