//! Handles the answers of paths: grants, refusals, and the time of the next attempt.

use super::{Admission, Basis};
use crate::control::contracts::booking::Replaced;
use crate::control::contracts::pairs::{Asked, Backoff, OwnPair};
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::Refusal;
use crate::control::data::spec::{PublisherSpec, SubscriptionSpec};
use crate::control::membership::registry::{Change, EntryKey, REFUSALS_MAX};
use crate::ids::NodeId;
use paceline_admit::reserve::{Reason, Request};
use paceline_sched::{Duration, Instant};

/// The shortest pause after a refusal, and the random spread above it.
const HOLD_MIN: Duration = Duration::from_millis(500);
const HOLD_SPREAD_NANOS: u64 = 2_000_000_000;
/// The largest number of doublings of that pause.
const HOLD_DOUBLED_MAX: u32 = 3;
/// The pause after a path did not answer; it doubles each time.
const SILENCE: Duration = Duration::from_millis(50);
/// The number of attempts without an answer after which the subscription is notified.
const SILENCES: u32 = 4;

/// A path of a pair that does not answer.
#[derive(Debug)]
pub(in crate::control) struct Silence {
    pub(in crate::control) pair: PairKey,
    /// True if it is that of the pair's spare.
    pub(in crate::control) is_spare: bool,
    /// The first silent node.
    pub(in crate::control) node: NodeId,
}

/// A request that this node denied at once.
#[derive(Debug)]
pub(in crate::control) struct Denial {
    pub(in crate::control) pair: PairKey,
    /// True if the pair's spare was requested.
    pub(in crate::control) is_spare: bool,
    pub(in crate::control) node: NodeId,
    pub(in crate::control) reason: Reason,
}

/// A refusal, about which the nodes of the path are to be asked for an offer.
pub(in crate::control) struct Survey {
    /// Distinguishes it from other surveys of the pair: one of its first path, one of its spare, or an earlier one.
    pub(in crate::control) number: u64,
    pub(in crate::control) pair: PairKey,
    /// The reservation that the refused request was to change.
    pub(in crate::control) replaced: Replaced,
    pub(in crate::control) path: Vec<NodeId>,
    /// The index of the node that scales on the path.
    pub(in crate::control) proxy: usize,
    /// The refused request. The subscription's current request may differ by now.
    pub(in crate::control) request: SubscriptionSpec,
    /// The refusing node.
    pub(in crate::control) node: NodeId,
    /// The lacking resource on that node.
    pub(in crate::control) lack: paceline_admit::LinkRefusal,
    /// The requested rate, in bits per second.
    pub(in crate::control) rate: u64,
}

impl Admission {
    /// Records a grant, which ends an earlier refusal.
    pub(in crate::control) fn granted(&mut self, key: PairKey) {
        self.turns.answered();
        if self.pairs.get_mut(key).is_some_and(|pair| pair.state.grant()) {
            self.settle(key);
        }
    }

    /// Handles a refusal by a path; nothing of the last request is reserved.
    pub(in crate::control) fn denied(
        &mut self,
        now: Instant,
        key: PairKey,
        node: NodeId,
        reason: Reason,
    ) -> Option<Survey> {
        let hold_time = self.hold_time(key);
        let pair = self.pairs.get_mut(key)?;
        let asked = pair.asked()?;
        if let Some((granted, basis)) = asked.granted.clone() {
            // The label differs also if the paths have different numbers of hops.
            let same = basis.request == asked.basis.request;
            // A contract with a spare does not depend on the shortest path.
            let moves = granted.path != asked.request.path && basis.request.wants_spare();
            if same && (moves || !matches!(reason, Reason::Refused { .. })) {
                // An alternative path for the same request does not answer yet. The current path stays in
                // force.
                pair.state.keep((granted, basis), now + hold_time);
                return None;
            }
            // A subscription's node that declines has already changed its request.
            if asked.keeps_granted() || reason == Reason::Declined {
                return self.refused(now, key, node, reason);
            }
            // The granted request now takes another path, which refuses it, or the pair's request is
            // `or_stop`.
            if let Some(number) = asked.key {
                self.reservations.close(now, number);
            }
        }
        self.over(now, key, node, reason)
    }

    /// Handles the loss or final failure of a pair's reservation.
    pub(in crate::control) fn over(
        &mut self,
        now: Instant,
        key: PairKey,
        node: NodeId,
        reason: Reason,
    ) -> Option<Survey> {
        self.drop_spare(now, key);
        let asked = self.pairs.asked_mut(key)?;
        asked.granted = None;
        if let Some(number) = asked.key {
            self.pairs.remove_key(number);
        }
        let survey = self.refused(now, key, node, reason);
        if let Some(asked) = self.pairs.asked_mut(key) {
            asked.key = None;
        }
        survey
    }

    /// Handles a refused request. The grant of an earlier request of the pair stays in force, if any.
    fn refused(
        &mut self,
        now: Instant,
        key: PairKey,
        node: NodeId,
        reason: Reason,
    ) -> Option<Survey> {
        self.count_answer(now, reason);
        let asked = self.pairs.asked(key)?.clone();
        if let Some(survey) = self.survey(key, &asked, node, reason) {
            self.pairs.get_mut(key)?.state.refuse(survey.number);
            return Some(survey);
        }
        let basis = self.pairs.get_mut(key)?.give_up()?;
        self.wait(now, key, (node, false), basis);
        None
    }

    /// Adapts the rate of requests to a denial.
    pub(super) fn count_answer(&mut self, now: Instant, reason: Reason) {
        if reason == Reason::Timeout {
            self.turns.unanswered(now);
        } else if matches!(reason, Reason::Refused { .. }) {
            self.turns.answered();
        }
    }

    /// Returns the survey of a refused request's path, unless the refusal was reported before or has another reason.
    pub(super) fn survey(
        &mut self,
        key: PairKey,
        asked: &Asked,
        node: NodeId,
        reason: Reason,
    ) -> Option<Survey> {
        let Reason::Refused { refusal: lack, .. } = reason else { return None };
        let reported = self.pairs.pause(key).filter(|backoff| backoff.basis == asked.basis);
        if reported.is_some_and(|it| it.refusal.as_ref().is_some_and(|it| !it.is_opposite())) {
            return None;
        }
        let Basis { proxy, request, .. } = asked.basis.clone();
        let Request { path: nodes, forward, scaled, .. } = &asked.request;
        // The basis has the first path also if the second one refuses.
        let at_end = || PublisherSpec::proxy_at_end(&request, nodes.len().saturating_sub(1));
        let proxy = if request.wants_spare() { at_end() } else { proxy };
        let at = nodes.iter().position(|it| it.0 == node.0);
        let behind = scaled.filter(|scaled| at.is_some_and(|at| at >= scaled.at));
        let wanted = behind.map(|scaled| scaled.wanted).or(*forward);
        let rate = wanted.map_or(0, |wanted| wanted.traffic.rate());
        let path = nodes.iter().map(|node| NodeId(node.0)).collect();
        let replaced = asked.key.map_or(Replaced::Nothing, |key| Replaced::Number(key.number));
        self.surveys += 1;
        let number = self.surveys;
        Some(Survey { number, pair: key, replaced, path, proxy, request, node, lack, rate })
    }

    /// Schedules another attempt for a pair that was refused before or whose path does not answer.
    pub(super) fn wait(
        &mut self,
        now: Instant,
        key: PairKey,
        (node, is_spare): (NodeId, bool),
        basis: Basis,
    ) {
        let long = self.hold_time(key);
        let before = self.pairs.take_pause(key);
        let same = before.as_ref().is_some_and(|backoff| backoff.basis == basis);
        let tries = before.as_ref().filter(|_| same).map_or(0, |backoff| backoff.tries) + 1;
        let reported = before.and_then(|backoff| backoff.refusal);
        let of = basis.request.revision;
        if reported.as_ref().is_some_and(|reported| reported.revision != of) {
            // The earlier refusal was of another request and does not apply to this one.
            self.changes.push(Change::Remove(EntryKey::Refusal(key)));
        }
        let refusal = reported.filter(|reported| reported.revision == of);
        let doubled = |time: Duration, most: u32| time.mul_div(1 << (tries - 1).min(most), 1);
        let (until, again) = if refusal.is_some() {
            let others = self.pairs.paused() as u64;
            let soon = HOLD_MIN.max(Duration::from_millis(8).mul_div(others, 1));
            // Several nodes would repeat at the same instants, and the room that one holds until a later hop refuses it
            // would refuse the others.
            let soon = soon.saturating_add(long.saturating_sub(HOLD_MIN).mul_div(1, 4));
            (soon, doubled(long, HOLD_DOUBLED_MAX))
        } else {
            (doubled(SILENCE, 7), doubled(SILENCE, 7))
        };
        let (until, again) = (now + until, now + again.max(until));
        self.pairs.begin_pause(key, Backoff { refusal, until, again, tries, basis });
        if tries == SILENCES {
            self.silent.push(Silence { pair: key, is_spare, node });
        }
        self.wake = self.wake.min(again);
    }

    /// Takes the paths that do not answer.
    pub(in crate::control) fn take_silent(&mut self) -> Vec<Silence> {
        core::mem::take(&mut self.silent)
    }

    /// Reports that the path of a pair does not answer; further attempts continue.
    pub(in crate::control) fn report_silence(&mut self, key: PairKey, refusal: Refusal) {
        let revision = self.pairs.pause(key).map(|backoff| backoff.basis.request.revision);
        let Some(revision) = revision else { return };
        let refusal = Refusal { revision, ..refusal };
        // The limit of the record counts the refusals before.
        let before = self.pairs.refused;
        if self.pairs.report_pause(key, &refusal) {
            self.announce_refusal(refusal, before);
        }
    }

    /// Handles the result of the survey `number` of a pair: `None` if all nodes of the path would grant the request now.
    /// `known` is the original refusal.
    pub(in crate::control) fn surveyed(
        &mut self,
        now: Instant,
        (key, number): (PairKey, u64),
        refusal: Option<Refusal>,
        known: Refusal,
    ) {
        if self.spare_surveyed(now, (key, number), refusal.clone(), &known) {
            return;
        }
        let pair = self.pairs.get_mut(key).filter(|pair| pair.state.survey() == Some(number));
        let Some(basis) = pair.and_then(OwnPair::give_up) else { return };
        match self.surveyed_refusal(key, refusal, &known) {
            Some(refusal) => self.refuse(now, key, refusal, basis),
            // The obstacle was only a tentative reservation.
            None => self.wait(now, key, (known.node, false), basis),
        }
    }

    /// Returns the refusal to report after a survey: the obstacle that it found, or the original one after several attempts.
    pub(super) fn surveyed_refusal(
        &self,
        key: PairKey,
        found: Option<Refusal>,
        known: &Refusal,
    ) -> Option<Refusal> {
        let tries = self.pairs.pause(key).map_or(0, |backoff| backoff.tries);
        found.or_else(|| (tries + 1 >= SILENCES).then(|| known.clone()))
    }

    /// Refuses a pair's request on `basis`, and reports the reason unless it was already reported. The grant
    /// of an earlier request stays in force, unless the request is `or_stop`.
    pub(super) fn refuse(&mut self, now: Instant, key: PairKey, refusal: Refusal, basis: Basis) {
        if !self.pairs.asked(key).is_some_and(|asked| asked.keeps_granted_from(&basis)) {
            self.forget(now, key);
        }
        self.report(now, key, refusal, basis);
    }

    /// Reports a refusal of a pair's request on `basis` unless it was already reported, and schedules another attempt.
    pub(super) fn report(&mut self, now: Instant, key: PairKey, refusal: Refusal, basis: Basis) {
        let refusal = Refusal { revision: basis.request.revision, ..refusal };
        let hold_time = self.hold_time(key);
        let before = self.pairs.take_pause(key);
        let reported = before.as_ref().and_then(|backoff| backoff.refusal.as_ref());
        // Repeated figures differ a little and are not reported, but a refusal of the other half is news, and so is one
        // that no other contract would avoid.
        let has_figures = |it: &Refusal| it.is_of_contract() && !it.is_opposite();
        let turned = reported.is_some_and(|it| {
            !(has_figures(it) && has_figures(&refusal)) && it.reason != refusal.reason
        });
        let known = !turned && before.as_ref().is_some_and(|it| it.basis == basis);
        if reported.is_none() || !known && reported != Some(&refusal) {
            self.announce_refusal(refusal.clone(), self.pairs.refused);
        }
        let until = now + hold_time;
        let refusal = if known { reported.cloned() } else { None }.unwrap_or(refusal);
        let backoff = Backoff { refusal: Some(refusal), until, again: until, tries: 1, basis };
        self.pairs.begin_pause(key, backoff);
        self.wake = self.wake.min(until);
    }

    /// Announces a refusal to all nodes, or only to the subscription's node if there were too many `before`.
    fn announce_refusal(&mut self, refusal: Refusal, before: usize) {
        if before < REFUSALS_MAX {
            self.changes.push(Change::Refuse(refusal));
        } else {
            self.refusal_overflow.push(refusal);
        }
    }

    /// Ends the refusal of a pair that is granted. That of a tied pair stays until the opposite contract is granted, and
    /// that of a pair with a spare until the spare is.
    pub(super) fn settle(&mut self, key: PairKey) {
        if !self.pairs.is_incomplete(key) && !self.lacks_spare(key) {
            self.release(key);
        }
    }

    /// Ends the pause after a refusal; the refusal stays reported.
    pub(in crate::control) fn end_pause(&mut self, key: PairKey) {
        if let Some(backoff) = self.pairs.pause_mut(key) {
            (backoff.until, backoff.again) = (Instant::ZERO, Instant::ZERO);
        }
    }

    /// Returns true if the last request of a pair was refused, and its pause has not been ended.
    pub(in crate::control) fn pauses(&self, key: PairKey) -> bool {
        let pause = self.pairs.pause(key).filter(|_| self.pairs.asked(key).is_none());
        pause.is_some_and(|it| it.refusal.is_some() && it.until > Instant::ZERO)
    }

    /// Returns true if a path has granted a request of a pair.
    pub(in crate::control) fn is_granted(&self, key: PairKey) -> bool {
        self.pairs.asked(key).is_some_and(|asked| asked.granted.is_some())
    }

    /// Ends the refusal of a pair.
    pub(super) fn release(&mut self, key: PairKey) {
        let reported = self.pairs.take_pause(key).is_some_and(|backoff| backoff.refusal.is_some());
        if reported {
            self.changes.push(Change::Remove(EntryKey::Refusal(key)));
        }
    }

    /// Releases the reservation and request of a pair.
    pub(in crate::control) fn forget(&mut self, now: Instant, key: PairKey) {
        self.drop_spare(now, key);
        let asked = self.pairs.get_mut(key).and_then(OwnPair::take_asked);
        let number = asked.and_then(|asked| asked.key);
        if let Some(number) = number {
            self.pairs.remove_key(number);
            self.reservations.close(now, number);
        }
    }

    /// Returns a pause that varies by pair and round but is the same in every run.
    pub(super) fn hold_time(&self, (subscription, publisher): PairKey) -> Duration {
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
