//! Own objects that other participants claim.

use crate::ids::ObjectIndex;
use crate::packet::Claim;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// Own objects that other participants claim.
///
/// A claim may be older than the end of the object that it is about, so an object is yielded only to a claim that
/// persists.
#[derive(Debug, Default)]
pub(super) struct Contests {
    contests: BTreeMap<ObjectIndex, Contest>,
}

#[derive(Debug)]
struct Contest {
    claim: Claim,
    since: Instant,
    seen: Instant,
}

impl Contests {
    /// How long a claim must persist.
    const TIME: Duration = Duration::from_millis(400);
    /// A claim that is not repeated for this time is withdrawn.
    const PAUSE: Duration = Duration::from_millis(300);

    pub(super) fn note(&mut self, object: ObjectIndex, claim: Claim, now: Instant) {
        let contest = self.contests.entry(object).or_insert_with(|| Contest {
            claim: claim.clone(),
            since: now,
            seen: now,
        });
        (contest.claim, contest.seen) = (claim, now);
    }

    /// Returns the claims that have persisted; `persists` states whether one is valid without being repeated.
    pub(super) fn decided(
        &mut self,
        persists: impl Fn(&Claim) -> bool,
        now: Instant,
    ) -> Vec<(ObjectIndex, Claim)> {
        for contest in self.contests.values_mut().filter(|contest| persists(&contest.claim)) {
            contest.seen = now;
        }
        self.contests.retain(|_, contest| now.since(contest.seen) <= Self::PAUSE);
        let decided =
            self.contests.iter().filter(|(_, contest)| now.since(contest.since) >= Self::TIME);
        let decided: Vec<_> =
            decided.map(|(object, contest)| (*object, contest.claim.clone())).collect();
        for (object, _) in &decided {
            self.contests.remove(object);
        }
        decided
    }

    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.contests.values().map(|contest| contest.since + Self::TIME).min()
    }
}
