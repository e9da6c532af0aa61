//! Decisions on pairs of which both are granted, or neither ([`Ties`](crate::control::contracts::tie::Ties)).

use super::{Admission, Round, impossible};
use crate::control::contracts::pair::Pair;
use crate::control::cut;
use crate::control::data::best_effort::BestEffort;
use crate::control::data::ids::PairKey;
use crate::control::data::refusal::{Refusal, RefusalReason};
use crate::control::membership::blank::blank;
use crate::control::membership::registry::{Change, EntryKey, Mark};
use std::collections::BTreeMap;

/// The next step of a pair's node.
pub(super) enum Step {
    /// Request or keep its reservation.
    Ask,
    /// Reserve nothing, and report nothing new.
    Wait,
    /// Reserve nothing, and report this refusal.
    Refuse(Box<Refusal>),
}

impl Round<'_> {
    /// Returns a refusal of `key` that names the tag of its other half.
    fn opposed(&self, key: PairKey, other: Option<PairKey>) -> Refusal {
        let spec = |of: PairKey| self.registry.record(of.1.node)?.publishers.get(&of.1);
        let asked = self.registry.record(key.0.node).and_then(|it| it.subscriptions.get(&key.0));
        let named = asked.and_then(|asked| asked.with.as_ref());
        let tag = other.and_then(spec).map(|spec| &spec.tag).or(named);
        let refusal = other.and_then(|of| self.registry.record(of.1.node)?.refusals.get(&of));
        let node = refusal.map(|refusal| refusal.node).or(other.map(|of| of.1.node));
        let reason = RefusalReason::Opposite { missing: other.is_none() };
        let blank = blank(key, node.unwrap_or(self.me), self.registry, reason);
        Refusal { link: tag.map(|tag| cut(tag.as_str())).unwrap_or_default(), ..blank }
    }

    /// Returns true if a lead has a refusal that its follower did not cause.
    fn is_refused(&self, lead: PairKey) -> bool {
        let refusal = self.registry.record(lead.1.node).and_then(|it| it.refusals.get(&lead));
        refusal.is_some_and(|refusal| !refusal.is_opposite()) || self.blocked.contains(&lead)
    }
}

impl Admission {
    /// Returns the next step for a pair of a publisher of this node.
    pub(super) fn step(&mut self, round: &Round<'_>, key: PairKey) -> Step {
        if let Some(other) = round.ties.leads.get(&key) {
            let Some(other) = *other else {
                return Step::Refuse(Box::new(round.opposed(key, None)));
            };
            let refused = round.registry.any_mark_of(other) == Some(Mark::Refused);
            return match refused || round.blocked.contains(&other) {
                true => Step::Refuse(Box::new(round.opposed(key, Some(other)))),
                false => Step::Ask,
            };
        }
        let Some(leads) = round.ties.follows.get(&key) else { return Step::Ask };
        let reserved = |lead: &PairKey| round.registry.any_mark_of(*lead) == Some(Mark::Reserved);
        if !leads.iter().any(reserved) {
            self.pairs.follow(key, false);
            let refused = leads.iter().find(|lead| round.is_refused(**lead));
            return match refused {
                Some(lead) => Step::Refuse(Box::new(round.opposed(key, Some(*lead)))),
                None => Step::Wait,
            };
        }
        if self.pairs.follow(key, true) {
            self.end_pause(key);
        }
        // The lead must be released before the next attempt.
        match round.registry.any_mark_of(key) {
            Some(Mark::Refused) => Step::Wait,
            Some(Mark::Idle | Mark::Reserved | Mark::Carried) | None => Step::Ask,
        }
    }

    /// Returns the changes of this node's marks of tied pairs and of pairs with a spare, after the decisions of a round.
    pub(in crate::control) fn marks(&self, round: &Round<'_>, pairs: &[Pair<'_>]) -> Vec<Change> {
        let Some(mine) = round.registry.record(round.me) else { return Vec::new() };
        let tied = pairs.iter().filter(|pair| round.ties.contains(pair.key()));
        let wanted = tied.filter_map(|pair| Some((pair.key(), self.tie_mark(round, pair)?)));
        let wanted = wanted.map(|(key, mark)| (key, (0, mark))).chain(self.carried_marks());
        let wanted: BTreeMap<PairKey, (u64, Mark)> = wanted.collect();
        let over = |(key, (_, mark)): (&PairKey, &(u64, Mark))| {
            (*mark != Mark::Idle && !wanted.contains_key(key))
                .then_some(Change::Remove(EntryKey::Mark(*key)))
        };
        let mut changes: Vec<Change> = mine.marks.iter().filter_map(over).collect();
        let mut free = self.free_marks(mine);
        for (key, mark) in wanted {
            let before = mine.marks.get(&key);
            // There is room for each pair with a spare since its request.
            let is_kept = before.is_some() || mark.1 == Mark::Carried;
            if before == Some(&mark) || !is_kept && free == 0 {
                continue;
            }
            free -= usize::from(!is_kept);
            changes.push(Change::Mark(key, mark.0, mark.1));
        }
        changes
    }

    fn tie_mark(&self, round: &Round<'_>, pair: &Pair<'_>) -> Option<Mark> {
        let (key, leads) = (pair.key(), round.ties.leads.contains_key(&pair.key()));
        if impossible(pair).is_some() {
            return (!leads).then_some(Mark::Refused);
        }
        if !pair.is_reserved() {
            // Nothing limits the path, or no contract is possible.
            let unknown = matches!(
                pair.best_effort(),
                Some(BestEffort::RateUnknown | BestEffort::SizeUnknown)
            );
            return Some(if unknown && !leads { Mark::Refused } else { Mark::Reserved });
        }
        if self.is_granted(key) {
            return Some(Mark::Reserved);
        }
        let was = round.registry.any_mark_of(key) == Some(Mark::Refused);
        let failed = self.pairs.has_followed(key) && (was || self.pauses(key));
        (!leads && failed).then_some(Mark::Refused)
    }
}
