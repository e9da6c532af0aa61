//! The requests for contracts of this node's publishers: one state machine for each pair.

mod basis;
mod state;
#[cfg(test)]
mod tests;

use crate::control::data::ids::PairKey;
use crate::control::data::refusal::Refusal;
use crate::ids::NodeId;
pub(super) use basis::Basis;
use paceline_admit::reserve::Key;
use paceline_sched::Instant;
pub(super) use state::{Asked, PairState};
use std::collections::{BTreeMap, BTreeSet};

/// A pause after a request that was not granted. The pair is not carried meanwhile, unless an earlier request
/// was granted.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    /// The reported refusal; `None` while the path merely does not answer.
    pub(super) refusal: Option<Refusal>,
    /// The earliest instant to repeat the request, unless it changes.
    pub(super) until: Instant,
    /// The latest instant to repeat the request.
    pub(super) again: Instant,
    pub(super) tries: u32,
    pub(super) basis: Basis,
}

/// The second reservation of a pair.
#[derive(Debug, Default)]
pub(super) struct Spare {
    /// The state of its own requests.
    pub(super) state: PairState,
    /// True if the pair is in force: the loss or refusal of the spare leaves the first reservation.
    pub(super) in_force: bool,
}

/// A pair of a publisher of this node.
#[derive(Debug, Default)]
pub(super) struct OwnPair {
    pub(super) state: PairState,
    /// The pause after a refusal. It stays while the request is repeated, and for a tied pair or a pair with a spare until
    /// both contracts are granted.
    pause: Option<Backoff>,
    pub(super) spare: Option<Spare>,
    /// True if its publisher has sent a sample since its reservation was released, and the mark of that is announced still.
    is_awake: bool,
    /// True if it follows another pair, and was requested since that one was reserved.
    has_followed: bool,
    /// True if it is tied to another pair, and the two are not in force. Its refusal stays until they are.
    is_incomplete: bool,
}

impl OwnPair {
    /// Returns the last request, unless a refusal has ended it.
    pub(super) const fn asked(&self) -> Option<&Asked> {
        self.state.asked()
    }

    /// Returns the last request for the spare.
    pub(super) fn spare_asked(&self) -> Option<&Asked> {
        self.spare.as_ref()?.state.asked()
    }

    pub(super) const fn pause(&self) -> Option<&Backoff> {
        self.pause.as_ref()
    }

    /// Ends the request, and returns it. A refusal stays known.
    pub(super) fn take_asked(&mut self) -> Option<Asked> {
        let asked = self.state.take_asked();
        self.settle_state();
        asked
    }

    /// Abandons the last request, and returns its basis. If the path still reserves an earlier request, that one becomes
    /// the current request again.
    pub(super) fn give_up(&mut self) -> Option<Basis> {
        let basis = self.state.give_up();
        self.settle_state();
        basis
    }

    /// Makes the spare the first reservation, and returns the state of the lost one. Returns `None` if there is no spare in
    /// force.
    pub(super) fn take_over(&mut self) -> Option<PairState> {
        let spare = self.spare.as_mut().filter(|spare| spare.in_force)?;
        let granted = spare.state.asked().is_some_and(|asked| asked.granted.is_some());
        granted.then(|| core::mem::replace(&mut self.state, core::mem::take(&mut spare.state)))
    }

    /// Without a request, a pair is refused while it pauses.
    fn settle_state(&mut self) {
        match (&self.state, self.pause.is_some()) {
            (PairState::Wanted, true) => self.state = PairState::Refused(None),
            (PairState::Refused(None), false) => self.state = PairState::Wanted,
            (PairState::Wanted | PairState::Asking(_) | PairState::Granted(_), _)
            | (PairState::Refused(_) | PairState::Idle, _) => {}
        }
    }

    const fn is_blank(&self) -> bool {
        let flags = self.is_awake || self.has_followed || self.is_incomplete;
        matches!(self.state, PairState::Wanted) && self.spare.is_none() && !flags
    }
}

/// The pairs of this node's publishers that request or requested contracts.
#[derive(Debug, Default)]
pub(in crate::control) struct Pairs {
    all: BTreeMap<PairKey, OwnPair>,
    /// The pair of each reservation.
    keys: BTreeMap<Key, PairKey>,
    /// The number of pairs that pause.
    paused: usize,
    /// The number of pauses with a refusal.
    pub(in crate::control) refused: usize,
}

impl Pairs {
    /// Notes the tied pairs that are not in force, and forgets the pairs without any state.
    pub(super) fn begin_round(&mut self, me: NodeId, incomplete: &BTreeSet<PairKey>) {
        self.all.values_mut().for_each(|pair| pair.is_incomplete = false);
        for key in incomplete.iter().filter(|key| key.1.node == me) {
            self.entry(*key).is_incomplete = true;
        }
        self.all.retain(|_, pair| !pair.is_blank());
    }

    pub(super) fn get(&self, key: PairKey) -> Option<&OwnPair> {
        self.all.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: PairKey) -> Option<&mut OwnPair> {
        self.all.get_mut(&key)
    }

    pub(super) fn entry(&mut self, key: PairKey) -> &mut OwnPair {
        self.all.entry(key).or_default()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PairKey, &OwnPair)> {
        self.all.iter().map(|(key, pair)| (*key, pair))
    }

    /// Returns the last request of a pair.
    pub(super) fn asked(&self, key: PairKey) -> Option<&Asked> {
        self.get(key)?.asked()
    }

    pub(super) fn asked_mut(&mut self, key: PairKey) -> Option<&mut Asked> {
        self.get_mut(key)?.state.asked_mut()
    }

    pub(super) fn spare(&self, key: PairKey) -> Option<&Spare> {
        self.get(key)?.spare.as_ref()
    }

    pub(super) fn spare_mut(&mut self, key: PairKey) -> Option<&mut Spare> {
        self.get_mut(key)?.spare.as_mut()
    }

    /// Returns the spare of a pair, which it has from now on.
    pub(super) fn spare_entry(&mut self, key: PairKey) -> &mut Spare {
        self.entry(key).spare.get_or_insert_default()
    }

    /// Returns the last request for the spare of a pair.
    pub(super) fn spare_asked(&self, key: PairKey) -> Option<&Asked> {
        self.get(key)?.spare_asked()
    }

    /// Returns the pair of a reservation.
    pub(super) fn pair_of(&self, key: Key) -> Option<PairKey> {
        self.keys.get(&key).copied()
    }

    pub(super) fn add_key(&mut self, key: Key, pair: PairKey) {
        self.keys.insert(key, pair);
    }

    pub(super) fn remove_key(&mut self, key: Key) {
        self.keys.remove(&key);
    }

    /// Returns the pause of a pair after a refusal, if it has one.
    pub(super) fn pause(&self, key: PairKey) -> Option<&Backoff> {
        self.get(key)?.pause()
    }

    pub(super) fn pause_mut(&mut self, key: PairKey) -> Option<&mut Backoff> {
        self.get_mut(key)?.pause.as_mut()
    }

    /// Returns true if a pair was refused, or its path did not answer, and that is not over.
    pub(super) fn pauses(&self, key: PairKey) -> bool {
        self.pause(key).is_some()
    }

    /// Returns the number of pairs that pause.
    pub(super) const fn paused(&self) -> usize {
        self.paused
    }

    /// Begins a pause, which replaces the one before.
    pub(super) fn begin_pause(&mut self, key: PairKey, pause: Backoff) {
        self.take_pause(key);
        self.paused += 1;
        self.refused += usize::from(pause.refusal.is_some());
        let pair = self.entry(key);
        pair.pause = Some(pause);
        pair.settle_state();
    }

    /// Ends the pause of a pair, and returns it.
    pub(super) fn take_pause(&mut self, key: PairKey) -> Option<Backoff> {
        let pair = self.get_mut(key)?;
        let pause = pair.pause.take()?;
        pair.settle_state();
        self.paused -= 1;
        self.refused -= usize::from(pause.refusal.is_some());
        Some(pause)
    }

    /// Adds a refusal to the pause of a pair that has none. Returns false if it has one, or does not pause.
    pub(super) fn report_pause(&mut self, key: PairKey, refusal: &Refusal) -> bool {
        let pause = self.pause_mut(key).filter(|pause| pause.refusal.is_none());
        let Some(pause) = pause else { return false };
        pause.refusal = Some(refusal.clone());
        self.refused += 1;
        true
    }

    /// Notes that the reservation of a pair was released because nothing was published.
    pub(super) fn idle(&mut self, key: PairKey) {
        let pair = self.entry(key);
        if matches!(pair.state, PairState::Wanted) {
            pair.state = PairState::Idle;
        }
    }

    /// Notes that an idle pair's publisher has sent a sample. Returns false if that is known.
    pub(super) fn wake(&mut self, key: PairKey) -> bool {
        let pair = self.entry(key);
        if matches!(pair.state, PairState::Idle) {
            pair.state = PairState::Wanted;
            pair.settle_state();
        }
        !core::mem::replace(&mut pair.is_awake, true)
    }

    /// Notes that the mark of an idle pair has ended.
    pub(super) fn end_idle(&mut self, key: PairKey) {
        if let Some(pair) = self.get_mut(key) {
            pair.is_awake = false;
            if matches!(pair.state, PairState::Idle) {
                pair.state = PairState::Wanted;
                pair.settle_state();
            }
        }
    }

    /// Returns true if an idle pair's publisher has sent a sample since.
    pub(super) fn is_awake(&self, key: PairKey) -> bool {
        self.get(key).is_some_and(|pair| pair.is_awake)
    }

    /// Notes whether a following pair is requested since its lead was reserved. Returns true if that has changed.
    pub(super) fn follow(&mut self, key: PairKey, follows: bool) -> bool {
        if !follows && self.get(key).is_none() {
            return false;
        }
        core::mem::replace(&mut self.entry(key).has_followed, follows) != follows
    }

    pub(super) fn has_followed(&self, key: PairKey) -> bool {
        self.get(key).is_some_and(|pair| pair.has_followed)
    }

    /// Returns true if a pair is tied to another one, and the two were not in force at the beginning of the last round.
    pub(super) fn is_incomplete(&self, key: PairKey) -> bool {
        self.get(key).is_some_and(|pair| pair.is_incomplete)
    }
}
