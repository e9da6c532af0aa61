//! The arriving streams of all links of a node, and their outputs.

use super::super::drops::AtomicDrops;
use super::super::mailbox::Mailbox;
use super::change::RxChange;
use super::early::{Early, EarlySamples, Item};
use super::source::Source;
use paceline_proto::entry::EntryPolice;
use paceline_proto::ingress::OutputKey;
use paceline_proto::memory::Charge;
use paceline_proto::plan::SourceKey;
use paceline_proto::{Form, NodeId, PublisherId, RawSample};
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// An item that has arrived from a neighbour.
pub(super) struct Arrived {
    pub(super) from: NodeId,
    pub(super) key: SourceKey,
    pub(super) item: Item,
}

/// The arriving streams of a node.
#[derive(Default)]
pub(super) struct Sources {
    seen: u64,
    sources: BTreeMap<SourceKey, Source>,
    /// The publishers of which a stream ends with the first sample of another one.
    replaced: BTreeSet<PublisherId>,
    pub(super) early: EarlySamples,
    police: EntryPolice,
}

impl Sources {
    /// Applies posted changes, then delivers the samples that arrived before them.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        changes: &Mailbox<RxChange>,
        drops: &AtomicDrops,
    ) {
        let Self { seen, sources, replaced, early, police } = self;
        let mut arrived = Vec::new();
        changes.collect(seen, |change| match change.installation {
            Some(installation) => {
                if installation.outputs.iter().any(|(plan, _)| plan.until.is_some()) {
                    replaced.insert(change.source.publisher);
                }
                let period = installation.period;
                let source = sources.entry(change.source);
                let source = source.or_insert_with(|| Source::new(change.at, period));
                source.set_paths(now, change.from);
                source.entry.set(change.entry);
                installation.apply(&mut source.ingress);
                let early = early.take(change.source, |from| source.is_from(now, from), drops);
                arrived.extend(
                    early
                        .into_iter()
                        .map(|item| (change.source, source.policed(police, now, item))),
                );
            }
            None => {
                sources.remove(&change.source);
            }
        });
        // Only all changes together state which outputs a sample replaces.
        arrived.into_iter().for_each(|(key, item)| self.offer(now, key, item, drops));
        self.early.expire(now, drops);
    }

    /// Takes an item that has arrived. `waits` decides whether an unrequested one may be buffered, and charges its memory.
    pub(super) fn take(
        &mut self,
        now: Instant,
        arrived: Arrived,
        waits: impl FnOnce() -> Option<Charge>,
        drops: &AtomicDrops,
    ) {
        let Arrived { from, key, item } = arrived;
        match self.sources.get_mut(&key) {
            Some(source) if !source.is_from(now, from) => {
                drop(waits());
                item.count(drops);
            }
            Some(source) => {
                if matches!(item, Item::Sample(_)) {
                    source.come_by(from);
                }
                let item = source.policed(&mut self.police, now, item);
                self.offer(now, key, item, drops);
            }
            None => match waits() {
                Some(charge) => {
                    let early = Early { at: now, from, key, item: item.unshared(), charge };
                    self.early.push(early, drops);
                }
                None => item.count(drops),
            },
        }
    }

    /// Delivers an item to the outputs of its source. A sample first ends the outputs that it
    /// replaces.
    fn offer(&mut self, now: Instant, key: SourceKey, item: Item, drops: &AtomicDrops) {
        let unreplaced = match &item {
            Item::Sample(sample) => {
                self.replace(key, sample);
                Vec::new()
            }
            Item::Lost(..) => self.unreplaced(key),
        };
        match self.sources.get_mut(&key) {
            Some(source) => item.offer(&mut source.ingress, now, &unreplaced),
            None => item.count(drops),
        }
    }

    /// Returns the outputs of a source that have not replaced those of another form yet.
    fn unreplaced(&self, key: SourceKey) -> Vec<OutputKey> {
        let SourceKey { publisher, form } = key;
        if !self.replaced.contains(&publisher) {
            return Vec::new();
        }
        let its = self.sources.range(SourceKey { publisher, form: Form::FULL }..);
        let its = its.take_while(|(key, _)| key.publisher == publisher);
        its.flat_map(|(_, source)| source.ingress.waiting_for(form)).collect()
    }

    /// Ends the outputs that a sample of the source `key` replaces. One that was published before the
    /// source was installed does not replace them: it may be one of an earlier request.
    fn replace(&mut self, key: SourceKey, sample: &RawSample) {
        let (SourceKey { publisher, form }, seq) = (key, sample.seq);
        if !self.replaced.contains(&publisher) {
            return;
        }
        let began = self.sources.get(&key).map(|source| source.began);
        if began.is_none_or(|began| sample.published_at < began) {
            return;
        }
        let first = SourceKey { publisher, form: Form::FULL };
        let its = self.sources.range_mut(first..);
        let (mut waits, mut taken) = (false, Vec::new());
        for (_, source) in its.take_while(|(key, _)| key.publisher == publisher) {
            taken.extend(source.ingress.replace(form, seq));
            waits |= source.ingress.is_replaced();
        }
        if let Some(source) = self.sources.get_mut(&key) {
            source.ingress.begin(&taken);
        }
        if !waits {
            self.replaced.remove(&publisher);
        }
    }
}
