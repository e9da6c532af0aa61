//! From the registry to this node's streams, and to what has changed about them.

use super::admission::Round;
use super::grant::Grant;
use super::graph::Tree;
use super::linger::Carried;
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
        let (me, registry, news) = (self.me, &self.registry, self.news);
        let round = Round { me, registry, tree: &tree, news };
        self.admission.decide(self.now, &round, &pairs);
        let booked = routes::booked(&self.registry, self.admission.bookings(), self.me);
        let (mut live, mut waiting) = (BTreeMap::new(), BTreeMap::new());
        for pair in &pairs {
            let key = pair.key();
            if !foreign.contains(&key) && !self.admission.refuses(key) {
                let kind = if pair.is_reserved() { &mut waiting } else { &mut live };
                kind.insert(key, pair);
            }
        }
        live.extend(booked.iter().map(|pair| (pair.key(), pair)));
        let mut installed = routes::plan(live.values().copied());
        let carried = Carried { me, live: &live, waiting: &waiting };
        let before = &self.installed;
        let booked = booked.iter().map(Pair::key).collect();
        let only = self.lingering.carry_on(self.now, &carried, booked, before, &mut installed);
        let mut keys: Vec<PairKey> = live.keys().copied().chain(only).collect();
        keys.sort_unstable();
        let mine = pairs.iter().filter(|pair| pair.subscription.node == me);
        let unpromised = mine.filter_map(|pair| Some((pair.key(), pair.unpromised()?))).collect();
        let matching = keys.iter().map(|(_, publisher)| *publisher).collect();
        let streams = Streams { installed, matching, heard: self.hear(&keys) };
        // What is announced here is part of these streams already.
        self.dirty = false;
        for change in self.admission.take_changes() {
            self.announce(change, None);
        }
        self.tell_untold();
        (self.dirty, self.news) = (false, false);
        self.tell_installs(streams.installed);
        self.tell_matching(streams.matching);
        self.tell_heard(streams.heard);
        self.tell_promises(&tree);
        self.tell_unpromised(unpromised);
        self.follow_reservations();
    }

    /// Tells the ends of promises that are here what was granted and refused, and what is neither any more.
    fn tell_promises(&mut self, tree: &Tree) {
        let before = self.granted.keys().chain(self.refused.keys());
        let before: BTreeSet<PairKey> = before.copied().collect();
        self.tell_refusals(tree);
        self.tell_grants();
        for (subscription, publisher) in before {
            let key = (subscription, publisher);
            if !self.granted.contains_key(&key) && !self.refused.contains_key(&key) {
                self.outputs.push_back(Output::Over { subscription, publisher });
            }
        }
    }

    /// Tells of what is promised to subscriptions and of publishers here, if it is new or other.
    fn tell_grants(&mut self) {
        let me = self.me;
        let heard = |(subscription, publisher): &PairKey| {
            let hears = self.heard.get(subscription).is_some_and(|all| all.contains(publisher));
            subscription.node != me || hears
        };
        let granted: BTreeMap<PairKey, Grant> =
            self.granted_here().filter(|(key, _)| heard(key)).collect();
        for (key, grant) in &granted {
            if self.granted.get(key) != Some(grant) {
                self.outputs.push_back(Output::Granted { grant: grant.clone() });
            }
        }
        self.granted = granted;
    }

    /// What each local subscription hears, in order, of the pairs that are carried.
    fn hear(&self, carried: &[PairKey]) -> BTreeMap<SubscriptionId, Vec<PublisherId>> {
        let mut heard: BTreeMap<SubscriptionId, Vec<PublisherId>> = BTreeMap::new();
        for &(subscription, publisher) in carried {
            if subscription.node == self.me {
                // Most hear one publisher: room for one, not for four.
                let publishers = heard.entry(subscription).or_insert_with(|| Vec::with_capacity(1));
                publishers.push(publisher);
            }
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
                let concerns = mine.is_some_and(|mine| {
                    mine.subscriptions.contains_key(&key.0) || mine.publishers.contains_key(&key.1)
                });
                if concerns && !refused.contains_key(key) {
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
