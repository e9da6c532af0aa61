//! The samples of a pull, received or missing, delivered in the order of publishers and sequence
//! numbers.

use super::super::command::Holders;
use super::{Pipe, PullEvent};
use crate::Sample;
use crate::summary::{Missing, MissingReason, PullNode, PullSummary};
use paceline_proto::pull::{Held, PullPlan};
use paceline_proto::video::DecodeGate;
use paceline_proto::{Kind, NodeId, PublisherId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A sample's publisher and sequence number.
pub(super) type Key = (PublisherId, u64);

/// The state of every sample in a plan.
pub(super) struct Ledger {
    samples: BTreeMap<Key, Held>,
    /// The samples still to be delivered, in order.
    order: VecDeque<Key>,
    /// Received samples that wait for an earlier one, with the node that sent them.
    early: BTreeMap<Key, (NodeId, Sample)>,
    /// Samples that will not arrive.
    lost: BTreeMap<Key, MissingReason>,
    delivered: BTreeMap<NodeId, u64>,
    /// Publishers whose video is re-encoded.
    coded: BTreeSet<PublisherId>,
    /// The publisher being delivered, and whether its next picture can be decoded.
    gate: Option<(PublisherId, DecodeGate)>,
    summary: PullSummary,
}

impl Ledger {
    /// Creates the ledger of `plan`. `silent` are the names of nodes that did not answer.
    pub(super) fn new(plan: &PullPlan, silent: Vec<String>) -> Self {
        let keys = || plan.items.iter().map(|item| (item.publisher, item.held.seq));
        let found = plan.items.len() as u64;
        Self {
            samples: keys().zip(plan.items.iter().map(|item| item.held)).collect(),
            order: keys().collect(),
            early: BTreeMap::new(),
            lost: BTreeMap::new(),
            delivered: BTreeMap::new(),
            coded: plan.coded.clone(),
            gate: None,
            summary: PullSummary { found, more: plan.more, silent, ..PullSummary::default() },
        }
    }

    /// Returns the payload bytes of a sample as announced.
    pub(super) fn bytes(&self, key: Key) -> u64 {
        self.samples.get(&key).map_or(0, |held| u64::from(held.bytes))
    }

    /// Records a sample that `holder` sent.
    pub(super) fn take(&mut self, key: Key, holder: NodeId, delivery: Sample) {
        self.early.insert(key, (holder, delivery));
    }

    /// Discards a received sample so that it can be fetched again; returns false if it was
    /// delivered or is lost.
    pub(super) fn forget(&mut self, key: Key) -> bool {
        self.early.remove(&key);
        !self.lost.contains_key(&key) && self.order.front().is_some_and(|front| *front <= key)
    }

    /// Records a sample that will not arrive.
    pub(super) fn lose(&mut self, key: Key, reason: MissingReason) {
        self.lost.insert(key, reason);
    }

    /// Records all remaining samples as missing.
    pub(super) fn give_up(&mut self) {
        for key in self.order.iter().filter(|key| !self.early.contains_key(key)) {
            self.lost.entry(*key).or_insert(MissingReason::TimeIsOver);
        }
    }

    /// Delivers received samples up to the first outstanding one. Skips video pictures that cannot
    /// be decoded.
    pub(super) fn hand_on(&mut self, pipe: &Pipe) {
        while let Some(key) = self.order.front().copied() {
            let (publisher, seq) = key;
            let planned = self.samples.get(&key).map(|held| held.kind).unwrap_or_default();
            let gate = match &mut self.gate {
                Some((of, gate)) if *of == publisher => gate,
                // A plan begins with a picture that can be decoded alone.
                gate => &mut gate.insert((publisher, DecodeGate::starting(true))).1,
            };
            let missing = if let Some((holder, delivery)) = self.early.remove(&key) {
                if gate.admit(delivery.kind) {
                    *self.delivered.entry(holder).or_default() += 1;
                    self.summary.delivered += 1;
                    self.summary.bytes += delivery.payload.len() as u64;
                    pipe.push(PullEvent::Sample(Box::new(delivery)));
                    None
                } else {
                    Some(MissingReason::Undecodable)
                }
            } else if let Some(reason) = self.lost.remove(&key) {
                // A picture that was never encoded is not a reference.
                if !matches!(reason, MissingReason::CannotScale(_)) {
                    gate.broke(if self.coded.contains(&publisher) {
                        Kind::VideoP
                    } else {
                        planned
                    });
                }
                Some(reason)
            } else {
                return;
            };
            let missing = missing.map(|reason| Missing { publisher, seq, reason });
            self.summary.missing.extend(missing);
            self.order.pop_front();
        }
    }

    pub(super) fn into_summary(self, holders: &Holders) -> PullSummary {
        let nodes = self.delivered.into_iter().map(|(id, delivered)| {
            let name = holders.name(id);
            PullNode { id, name, delivered }
        });
        PullSummary { nodes: nodes.collect(), ..self.summary }
    }
}
