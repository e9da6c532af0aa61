//! The slots of all observers, and the exchange list that orders them by time.

use super::counters::{ExchangeCounters, SuppressReason};
use super::peer::{Context, Peer};
use super::timetable::PeerTimetable;
use super::update::{Exchange, ExchangeBudget};
use crate::ids::{ObjectIndex, PeerId};
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The slots of all observers.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    peers: BTreeMap<PeerId, Peer>,
    exchanges: PeerTimetable,
    /// The peers with objects that wait for room, and the one that was served last.
    hungry: BTreeSet<PeerId>,
    served: PeerId,
    pairs: usize,
    /// Of observers that left, and of objects without interest.
    other: ExchangeCounters,
}

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }

    pub(super) const fn pairs(&self) -> usize {
        self.pairs
    }

    pub(super) fn get(&self, peer: PeerId) -> Option<&Peer> {
        self.peers.get(&peer)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values()
    }

    pub(super) fn is_hungry(&self) -> bool {
        !self.hungry.is_empty()
    }

    /// Returns the earliest time of an exchange.
    pub(super) fn next(&self) -> Option<Instant> {
        self.exchanges.first().map(|(at, _)| at)
    }

    pub(super) fn join(&mut self, peer: PeerId) {
        self.peers.insert(peer, Peer::new(peer));
    }

    /// Removes a slot. Returns the objects of its observer's interest.
    pub(super) fn leave(&mut self, peer: PeerId) -> Vec<ObjectIndex> {
        let Some(state) = self.peers.remove(&peer) else { return Vec::new() };
        self.exchanges.set(peer, None);
        self.hungry.remove(&peer);
        self.pairs = self.pairs.saturating_sub(state.pairs());
        let (counters, objects) = state.leave();
        self.other = self.other.plus(&counters);
        objects
    }

    /// Changes a slot and brings the exchange list up to date.
    pub(super) fn with<T>(
        &mut self,
        id: PeerId,
        context: Context<'_>,
        change: impl FnOnce(&mut Peer, Context<'_>) -> T,
    ) -> Option<T> {
        let peer = self.peers.get_mut(&id)?;
        let before = peer.pairs();
        let result = change(peer, context);
        self.pairs = (self.pairs + peer.pairs()).saturating_sub(before);
        self.exchanges.set(id, peer.next());
        if peer.ready() > 0 {
            self.hungry.insert(id);
        } else {
            self.hungry.remove(&id);
        }
        Some(result)
    }

    /// Returns the next promised message to be sent now. Other objects whose time has come wait for room then.
    pub(super) fn promised(&mut self, largest: u64, context: Context<'_>) -> Option<Exchange> {
        while let Some((_, peer)) = self.exchanges.first().filter(|(at, _)| *at <= context.now) {
            let message = self.with(peer, context, |peer, context| {
                peer.ripen(context);
                peer.promised(largest, context)
            });
            if let Some(message) = message.flatten() {
                return Some(message);
            }
        }
        None
    }

    /// Returns the next message that the budget permits, from the observers in turn.
    pub(super) fn best_effort(
        &mut self,
        budget: &impl ExchangeBudget,
        largest: u64,
        context: Context<'_>,
    ) -> Option<Exchange> {
        let after = self.hungry.range((Bound::Excluded(self.served), Bound::Unbounded));
        let turn: Vec<_> = after.chain(self.hungry.range(..=self.served)).copied().collect();
        for peer in turn {
            let bytes = budget.bytes_for(peer);
            let message =
                self.with(peer, context, |peer, context| peer.best_effort(bytes, largest, context));
            if let Some(message) = message.flatten() {
                self.served = peer;
                return Some(message);
            }
        }
        None
    }

    /// Counts a change of an object in which only some observers have interest.
    pub(super) fn changed(&mut self, interested: usize) {
        let others = self.peers.len().saturating_sub(interested);
        self.suppress(SuppressReason::Interest, others);
    }

    /// Counts updates that no slot has.
    pub(super) fn suppress(&mut self, reason: SuppressReason, updates: usize) {
        let updates = u64::try_from(updates).unwrap_or(u64::MAX);
        self.other.offered += updates;
        self.other.suppress(reason, updates);
    }

    pub(super) fn evaluated(&mut self, peer: PeerId, pairs: usize) {
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.counters.evaluated += u64::try_from(pairs).unwrap_or(u64::MAX);
        }
    }

    pub(super) fn counters(&self) -> ExchangeCounters {
        self.iter().fold(self.other, |total, peer| total.plus(&peer.counters))
    }

    pub(super) fn waiting(&self) -> usize {
        self.iter().map(Peer::waiting).sum()
    }
}
