//! What came of a pull and what did not, handed on in the order of publishers and numbers.

use super::{Holders, Pipe, Told};
use crate::pull::{Missing, MissingReason, PullNode, PullSummary};
use crate::subscriber::Delivery;
use paceline_proto::pull::Plan;
use paceline_proto::{NodeId, PublisherId};
use std::collections::{BTreeMap, VecDeque};

/// One publisher's sample.
pub(super) type Key = (PublisherId, u64);

/// The samples of a plan, each of which comes or is lost.
pub(super) struct Ledger {
    sizes: BTreeMap<Key, u32>,
    /// What is still to be handed on, in order.
    order: VecDeque<Key>,
    /// What came before something that is in front of it.
    early: BTreeMap<Key, Delivery>,
    /// What will not come.
    lost: BTreeMap<Key, MissingReason>,
    delivered: BTreeMap<NodeId, u64>,
    summary: PullSummary,
}

impl Ledger {
    /// Nothing has come of `plan` yet; nothing was heard of the holders named in `silent`.
    pub(super) fn new(plan: &Plan, silent: Vec<String>) -> Self {
        let keys = || plan.items.iter().map(|item| (item.publisher, item.held.seq));
        let found = plan.items.len() as u64;
        Self {
            sizes: keys().zip(plan.items.iter().map(|item| item.held.bytes)).collect(),
            order: keys().collect(),
            early: BTreeMap::new(),
            lost: BTreeMap::new(),
            delivered: BTreeMap::new(),
            summary: PullSummary { found, more: plan.more, silent, ..PullSummary::default() },
        }
    }

    /// The payload bytes of a sample, as its holder said.
    pub(super) fn bytes(&self, key: Key) -> u64 {
        self.sizes.get(&key).map_or(0, |bytes| u64::from(*bytes))
    }

    /// A sample came from `holder`.
    pub(super) fn take(&mut self, key: Key, holder: NodeId, delivery: Delivery) {
        *self.delivered.entry(holder).or_default() += 1;
        self.early.insert(key, delivery);
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

    /// Hands on what has come, up to the first that may still come.
    pub(super) fn hand_on(&mut self, pipe: &Pipe) {
        while let Some(key) = self.order.front().copied() {
            if let Some(delivery) = self.early.remove(&key) {
                self.summary.delivered += 1;
                self.summary.bytes += delivery.payload.len() as u64;
                pipe.push(Told::Sample(Box::new(delivery)));
            } else if let Some(reason) = self.lost.remove(&key) {
                let (publisher, seq) = key;
                self.summary.missing.push(Missing { publisher, seq, reason });
            } else {
                return;
            }
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
