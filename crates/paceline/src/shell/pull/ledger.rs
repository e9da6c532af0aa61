//! What came of a pull and what did not, handed on in the order of publishers and numbers.

use super::{Holders, Pipe, Told};
use crate::pull::{Missing, MissingReason, PullNode, PullSummary};
use crate::subscriber::Delivery;
use paceline_proto::pull::{Held, Plan};
use paceline_proto::video::DecodeGate;
use paceline_proto::{Kind, NodeId, PublisherId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One publisher's sample.
pub(super) type Key = (PublisherId, u64);

/// The samples of a plan, each of which comes or is lost.
pub(super) struct Ledger {
    samples: BTreeMap<Key, Held>,
    /// What is still to be handed on, in order.
    order: VecDeque<Key>,
    /// What came before something that is in front of it, and from whom.
    early: BTreeMap<Key, (NodeId, Delivery)>,
    /// What will not come.
    lost: BTreeMap<Key, MissingReason>,
    delivered: BTreeMap<NodeId, u64>,
    /// Publishers whose video is coded anew.
    coded: BTreeSet<PublisherId>,
    /// Whether the next picture of a publisher can be decoded after what was handed on.
    gate: Option<(PublisherId, DecodeGate)>,
    summary: PullSummary,
}

impl Ledger {
    /// Nothing has come of `plan` yet; nothing was heard of the holders named in `silent`.
    pub(super) fn new(plan: &Plan, silent: Vec<String>) -> Self {
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

    /// The payload bytes of a sample, as its holder said.
    pub(super) fn bytes(&self, key: Key) -> u64 {
        self.samples.get(&key).map_or(0, |held| u64::from(held.bytes))
    }

    /// A sample came from `holder`.
    pub(super) fn take(&mut self, key: Key, holder: NodeId, delivery: Delivery) {
        self.early.insert(key, (holder, delivery));
    }

    /// A sample that came is to be fetched again; false if it will not come, or was handed on.
    pub(super) fn forget(&mut self, key: Key) -> bool {
        self.early.remove(&key);
        !self.lost.contains_key(&key) && self.order.front().is_some_and(|front| *front <= key)
    }

    /// A sample will not come.
    pub(super) fn lose(&mut self, key: Key, reason: MissingReason) {
        self.lost.insert(key, reason);
    }

    /// Nothing more will come.
    pub(super) fn give_up(&mut self) {
        for key in self.order.iter().filter(|key| !self.early.contains_key(key)) {
            self.lost.entry(*key).or_insert(MissingReason::TimeIsOver);
        }
    }

    /// Hands on what has come, up to the first that may still come. Of video nothing goes without what it
    /// needs.
    pub(super) fn hand_on(&mut self, pipe: &Pipe) {
        while let Some(key) = self.order.front().copied() {
            let (publisher, seq) = key;
            let planned = self.samples.get(&key).map(|held| held.kind).unwrap_or_default();
            let gate = match &mut self.gate {
                Some((of, gate)) if *of == publisher => gate,
                // A plan begins with a picture that stands alone.
                gate => &mut gate.insert((publisher, DecodeGate::starting(true))).1,
            };
            let missing = if let Some((holder, delivery)) = self.early.remove(&key) {
                if gate.admit(delivery.kind) {
                    *self.delivered.entry(holder).or_default() += 1;
                    self.summary.delivered += 1;
                    self.summary.bytes += delivery.payload.len() as u64;
                    pipe.push(Told::Sample(Box::new(delivery)));
                    None
                } else {
                    Some(MissingReason::Undecodable)
                }
            } else if let Some(reason) = self.lost.remove(&key) {
                // What could not be coded is not part of what was.
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

    /// What became of it all.
    pub(super) fn into_summary(self, holders: &Holders) -> PullSummary {
        let nodes = self.delivered.into_iter().map(|(id, delivered)| {
            let name = holders.name(id);
            PullNode { id, name, delivered }
        });
        PullSummary { nodes: nodes.collect(), ..self.summary }
    }
}
