//! The slots of all observers, and the exchange list that orders them by time.

use super::counters::{ExchangeCounters, SuppressReason};
use super::peer::{Context, Peer};
use super::timetable::PeerTimetable;
use super::update::{Exchange, ExchangeBudget};
use crate::ids::{ObjectIndex, PeerId};
use crate::shares::has_room;
use paceline_sched::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// The slots of all observers.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    peers: BTreeMap<PeerId, Peer>,
    exchanges: PeerTimetable,
    /// The peers with objects that wait for room, those with the fewest bytes first.
    hungry: BTreeSet<(u64, PeerId)>,
    /// The bytes of the peer that was served last: one that becomes hungry has no claim on what others had before.
    served: u64,
    pairs: usize,
    /// The pairs of the observers of each node.
    nodes: BTreeMap<u64, usize>,
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
        self.hungry.remove(&(state.share, peer));
        self.count(peer, state.pairs(), 0);
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
        let (before, share) = (peer.pairs(), peer.share);
        let was_hungry = self.hungry.contains(&(share, id));
        let result = change(peer, context);
        let pairs = (before, peer.pairs());
        self.exchanges.set(id, peer.next());
        let is_hungry = peer.ready() > 0;
        if is_hungry && !was_hungry {
            peer.share = peer.share.max(self.served);
        }
        if was_hungry && (!is_hungry || peer.share != share) {
            self.hungry.remove(&(share, id));
        }
        if is_hungry {
            self.hungry.insert((peer.share, id));
        }
        if pairs.0 != pairs.1 {
            self.count(id, pairs.0, pairs.1);
        }
        Some(result)
    }

    /// Returns whether the node of an observer has used its share of the pairs, as with [`crate::shares::Shares`].
    pub(super) fn is_full(&self, peer: PeerId, pairs_max: usize) -> bool {
        let its = self.nodes.get(&peer.node()).copied().unwrap_or(0);
        let nodes = self.nodes.len() + usize::from(its == 0);
        !has_room(its, nodes, pairs_max.saturating_sub(self.pairs), pairs_max)
    }

    fn count(&mut self, peer: PeerId, before: usize, after: usize) {
        self.pairs = (self.pairs + after).saturating_sub(before);
        let its = self.nodes.entry(peer.node()).or_default();
        *its = (*its + after).saturating_sub(before);
        if *its == 0 {
            self.nodes.remove(&peer.node());
        }
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

    /// Returns the next message that the budget permits. Peers get the same number of bytes while they are hungry.
    pub(super) fn best_effort(
        &mut self,
        budget: &impl ExchangeBudget,
        largest: u64,
        context: Context<'_>,
    ) -> Option<Exchange> {
        let mut after = Bound::Unbounded;
        while let Some((share, peer)) = self.hungry.range((after, Bound::Unbounded)).next().copied()
        {
            let bytes = budget.bytes_for(peer);
            let message = self.with(peer, context, |peer, context| {
                let message = peer.best_effort(bytes, largest, context)?;
                peer.share += message.bytes;
                Some(message)
            });
            if let Some(message) = message.flatten() {
                self.served = share;
                return Some(message);
            }
            after = Bound::Excluded((share, peer));
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
