//! One link of a medium: the rate that it has, and the allotments that it follows.

use super::{Allotments, Holding, LinkKey};
use crate::ids::NodeId;
use std::collections::BTreeMap;

/// The most managers whose last allotments a link remembers.
const MANAGERS_MAX: usize = 64;

/// A link of this node.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    key: LinkKey,
    holding: Holding,
    /// The next term and the last allotment of each other manager that it has followed: their records may be old when they
    /// return.
    past: BTreeMap<NodeId, (u64, u64)>,
}

impl Holder {
    /// Creates a link that sends at the rate `least` and can use `most`, in bits per second.
    pub(crate) const fn new(key: LinkKey, (least, most): (u64, u64)) -> Self {
        let holds = if least < most { least } else { most };
        let holding = Holding { manager: key.0, term: 0, seen: 0, holds, need: 0, wants: 0, most };
        Self { key, holding, past: BTreeMap::new() }
    }

    /// Returns the announcement of this link.
    pub(crate) const fn holding(&self) -> Holding {
        self.holding
    }

    /// Sets the least rate that the contracts need, and the rate that a waiting request needs; 0 for none.
    pub(crate) const fn set_need(&mut self, need: u64, wants: u64) {
        (self.holding.need, self.holding.wants) = (need, wants);
    }

    /// Sets the highest rate that it can use, and lowers its rate to that.
    pub(crate) const fn set_most(&mut self, most: u64) {
        self.holding.most = most;
        self.lower(most);
    }

    /// Lowers its rate to `most` bits per second.
    pub(crate) const fn lower(&mut self, most: u64) {
        if self.holding.holds > most {
            self.holding.holds = most;
        }
    }

    /// Lowers its rate to `least`, because it has lost all its neighbours. Managers give its rate to others, so it follows
    /// none again before that one has begun a new term: records of the last term may be old.
    pub(crate) fn lose_neighbours(&mut self, least: u64) {
        self.lower(least);
        self.set_need(0, 0);
        let past = self.past.values_mut().map(|(term, _)| term);
        past.chain([&mut self.holding.term]).for_each(|term| *term = term.saturating_add(1));
    }

    /// Follows the manager, whose last announcement is `allotments`. [`Self::holding`] has the rate that results. Call
    /// [`Self::set_need`] before: contracts keep what they need unless the manager forces the rate.
    pub(crate) fn follow(&mut self, manager: NodeId, allotments: Option<&Allotments>) {
        if manager != self.holding.manager {
            let Holding { manager: before, term, seen, .. } = self.holding;
            if self.past.len() >= MANAGERS_MAX {
                self.past.pop_first();
            }
            self.past.insert(before, (term.saturating_add(1), seen));
            let (term, seen) = self.past.remove(&manager).unwrap_or_default();
            self.holding = Holding { manager, term, seen, ..self.holding };
        }
        let Some(Allotments { term, links }) = allotments else { return };
        if *term < self.holding.term {
            // A record from before this link left or lost it. A node that restarts has a new identity.
            return;
        }
        self.holding.term = *term;
        if let Some(it) = links.get(&self.key).filter(|it| it.number > self.holding.seen) {
            self.holding.seen = it.number;
            let bits = if it.forced { it.bits } else { it.bits.max(self.holding.need) };
            self.holding.holds = bits.min(self.holding.most);
        }
    }
}
