//! What follows from a path's answer: who is carried, who is told no, and when it is asked for again.

use super::{Admission, Basis, Hold, Standing, Survey};
use crate::control::refusal::Refusal;
use crate::control::registry::{Change, PairKey, REFUSALS_MAX};
use crate::ids::NodeId;
use paceline_admit::reserve::Reason;
use paceline_sched::{Duration, Instant};

/// The shortest time for which a refusal is kept, and the spread above it.
const HOLD_MIN: Duration = Duration::from_millis(500);
const HOLD_SPREAD_NANOS: u64 = 2_000_000_000;
/// How often that time doubles at most.
const HOLD_DOUBLED_MAX: u32 = 3;
/// How long after a path gave no answer it is asked again; twice as long each time.
const SILENCE: Duration = Duration::from_millis(50);
/// After so many times without an answer the subscription is told.
const SILENCES: u32 = 4;

impl Admission {
    /// A path holds it: what was refused before is not any more.
    pub(in crate::control) fn granted(&mut self, key: PairKey) {
        self.turns.answered();
        if let Some(asked) = self.asks.get_mut(&key) {
            asked.standing = Standing::Granted;
            asked.granted = Some((asked.request.clone(), asked.basis.clone()));
            asked.retry_at = Instant::ZERO;
            self.release(key);
        }
    }

    /// A path said no, and nothing of what was asked for is held.
    pub(in crate::control) fn denied(
        &mut self,
        now: Instant,
        key: PairKey,
        node: NodeId,
        reason: Reason,
    ) -> Option<Survey> {
        let hold_time = self.hold_time(key);
        let asked = self.asks.get_mut(&key)?;
        if let Some((granted, basis)) = asked.granted.clone() {
            let same = granted.label == asked.request.label;
            if same && !matches!(reason, Reason::Refused { .. }) {
                // Another path for the same does not answer yet: what there is stays as good as it was.
                (asked.request, asked.basis) = (granted, basis);
                (asked.standing, asked.retry_at) = (Standing::Granted, now + hold_time);
                return None;
            }
            // Whoever declines asks for something else again by now.
            if asked.keeps_granted() || reason == Reason::Declined {
                return self.refused(now, key, node, reason);
            }
            // The granted request goes another way now, which refuses it, or the pair would rather have nothing.
            if let Some(number) = asked.key {
                self.reservations.close(now, number);
            }
        }
        self.over(now, key, node, reason)
    }

    /// A pair has lost what it had, or never got it.
    pub(in crate::control) fn over(
        &mut self,
        now: Instant,
        key: PairKey,
        node: NodeId,
        reason: Reason,
    ) -> Option<Survey> {
        let asked = self.asks.get_mut(&key)?;
        asked.granted = None;
        if let Some(number) = asked.key.take() {
            self.keys.remove(&number);
        }
        self.refused(now, key, node, reason)
    }

    /// A request was refused. A grant of an earlier request of the pair stays in force if there still is one.
    fn refused(
        &mut self,
        now: Instant,
        key: PairKey,
        node: NodeId,
        reason: Reason,
    ) -> Option<Survey> {
        if reason == Reason::Timeout {
            self.turns.unanswered(now);
        } else if matches!(reason, Reason::Refused { .. }) {
            self.turns.answered();
        }
        let asked = self.asks.get_mut(&key)?;
        let told = self.holds.get(&key).filter(|hold| hold.basis == asked.basis);
        if let Reason::Refused { refusal: lack, .. } = reason
            && told.is_none_or(|hold| hold.refusal.is_none())
        {
            asked.standing = Standing::Surveyed;
            let Basis { path, request, .. } = asked.basis.clone();
            let rate = asked.request.forward.map_or(0, |wanted| wanted.traffic.rate());
            return Some(Survey { pair: key, path, request, node, lack, rate });
        }
        let basis = self.give_up(key)?;
        self.wait(now, key, node, basis);
        None
    }

    /// Gives up the last request of a pair and returns its basis. If the path still holds an earlier one, that is
    /// again all that was asked for.
    fn give_up(&mut self, key: PairKey) -> Option<Basis> {
        let asked = self.asks.get_mut(&key)?;
        let Some((request, basis)) = asked.granted.clone() else {
            return self.asks.remove(&key).map(|asked| asked.basis);
        };
        (asked.request, asked.standing) = (request, Standing::Granted);
        Some(core::mem::replace(&mut asked.basis, basis))
    }

    /// A pair that was refused before, or whose path does not answer, is asked for again later.
    fn wait(&mut self, now: Instant, key: PairKey, node: NodeId, basis: Basis) {
        let long = self.hold_time(key);
        let before = self.unhold(key);
        let same = before.as_ref().is_some_and(|hold| hold.basis == basis);
        let tries = before.as_ref().filter(|_| same).map_or(0, |hold| hold.tries) + 1;
        let told = before.and_then(|hold| hold.refusal);
        let of = basis.request.revision;
        if told.as_ref().is_some_and(|told| told.revision != of) {
            // Another request was refused: of this one nothing is known yet.
            self.changes.push(Change::Release(key.0, key.1));
        }
        let refusal = told.filter(|told| told.revision == of);
        let doubled = |time: Duration, most: u32| time.mul_div(1 << (tries - 1).min(most), 1);
        let (until, again) = if refusal.is_some() {
            let others = self.holds.len() as u64;
            let soon = HOLD_MIN.max(Duration::from_millis(8).mul_div(others, 1));
            (soon, doubled(long, HOLD_DOUBLED_MAX))
        } else {
            (doubled(SILENCE, 7), doubled(SILENCE, 7))
        };
        let (until, again) = (now + until, now + again.max(until));
        self.hold(key, Hold { refusal, until, again, tries, basis });
        if tries == SILENCES {
            self.silent.push((key, node));
        }
        self.wake = self.wake.min(again);
    }

    /// The pairs whose paths do not answer, and from which node on.
    pub(in crate::control) fn take_silent(&mut self) -> Vec<(PairKey, NodeId)> {
        core::mem::take(&mut self.silent)
    }

    /// Says that the path of a pair does not answer; the pair is asked for all the same.
    pub(in crate::control) fn tell_silence(&mut self, key: PairKey, refusal: Refusal) {
        if let Some(hold) = self.holds.get_mut(&key).filter(|hold| hold.refusal.is_none()) {
            let refusal = Refusal { revision: hold.basis.request.revision, ..refusal };
            hold.refusal = Some(refusal.clone());
            self.announce_refusal(refusal);
            self.refused += 1;
        }
    }

    /// What the nodes of a path say is here; nothing if all of them would promise it now. `known` is what the
    /// one that refused said.
    pub(in crate::control) fn surveyed(
        &mut self,
        now: Instant,
        key: PairKey,
        refusal: Option<Refusal>,
        known: Refusal,
    ) {
        if self.asks.get(&key).is_none_or(|asked| asked.standing != Standing::Surveyed) {
            return;
        }
        let Some(basis) = self.give_up(key) else { return };
        let tries = self.holds.get(&key).map_or(0, |hold| hold.tries);
        match refusal.or_else(|| (tries + 1 >= SILENCES).then(|| known.clone())) {
            Some(refusal) => self.refuse(now, key, refusal, basis),
            // What was in the way was only tentative.
            None => self.wait(now, key, known.node, basis),
        }
    }

    /// Refuses what a pair asks for on `basis`, and tells why unless just that was told. What is granted to an earlier
    /// request stays, unless the pair would rather have nothing.
    pub(super) fn refuse(&mut self, now: Instant, key: PairKey, refusal: Refusal, basis: Basis) {
        let refusal = Refusal { revision: basis.request.revision, ..refusal };
        let hold_time = self.hold_time(key);
        if !self.asks.get(&key).is_some_and(|asked| asked.keeps_granted_from(&basis)) {
            self.forget(now, key);
        }
        let before = self.unhold(key);
        let told = before.as_ref().and_then(|hold| hold.refusal.as_ref());
        let known = before.as_ref().is_some_and(|hold| hold.basis == basis);
        if told.is_none() || !known && told != Some(&refusal) {
            self.announce_refusal(refusal.clone());
        }
        let until = now + hold_time;
        let refusal = if known { told.cloned() } else { None }.unwrap_or(refusal);
        let hold = Hold { refusal: Some(refusal), until, again: until, tries: 1, basis };
        self.hold(key, hold);
        self.wake = self.wake.min(until);
    }

    /// Tells all nodes, or where too many are refused already the subscription's alone.
    fn announce_refusal(&mut self, refusal: Refusal) {
        if self.refused < REFUSALS_MAX {
            self.changes.push(Change::Refuse(refusal));
        } else {
            self.untold.push(refusal);
        }
    }

    /// A pair is not carried for now.
    fn hold(&mut self, key: PairKey, hold: Hold) {
        self.unhold(key);
        self.refused += usize::from(hold.refusal.is_some());
        self.holds.insert(key, hold);
    }

    fn unhold(&mut self, key: PairKey) -> Option<Hold> {
        let hold = self.holds.remove(&key)?;
        self.refused -= usize::from(hold.refusal.is_some());
        Some(hold)
    }

    /// A pair is not refused any more.
    pub(super) fn release(&mut self, key: PairKey) {
        let told = self.unhold(key).is_some_and(|hold| hold.refusal.is_some());
        if told {
            self.changes.push(Change::Release(key.0, key.1));
        }
    }

    /// Gives back what was asked for a pair.
    pub(super) fn forget(&mut self, now: Instant, key: PairKey) {
        let number = self.asks.remove(&key).and_then(|asked| asked.key);
        if let Some(number) = number {
            self.keys.remove(&number);
            self.reservations.close(now, number);
        }
    }

    /// Differs by pair and round, and is the same in every run.
    fn hold_time(&self, (subscription, publisher): PairKey) -> Duration {
        let parts = [
            subscription.node.0,
            u64::from(subscription.index),
            publisher.node.0,
            u64::from(publisher.index),
            self.rounds,
        ];
        let mixed = parts.iter().fold(0, |mixed: u64, part| {
            let turned = (mixed ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            turned ^ (turned >> 29)
        });
        HOLD_MIN.saturating_add(Duration::from_nanos(mixed % HOLD_SPREAD_NANOS))
    }
}
