//! Paths that several participants own.

use super::Participant;
use paceline_sched::{Duration, Instant};
use std::sync::Arc;

/// The time between two repetitions of claims, and their number: the views of the owners need room for their answers, each for
/// long enough.
const AGAIN: Duration = Duration::from_millis(500);
const AT_ONCE: usize = 24;

/// Which conflicts are reported next.
#[derive(Debug)]
pub(super) struct Conflicts {
    at: Instant,
    last: Option<Arc<str>>,
}

impl Conflicts {
    pub(super) const fn new(now: Instant) -> Self {
        Self { at: now, last: None }
    }
}

impl Participant {
    /// Reports conflicts again until one side yields: a claim may have had no room. Returns when it does so next.
    pub(super) fn report_conflicts(&mut self, now: Instant) -> Option<Instant> {
        if !self.replicas.has_rivals() {
            return None;
        }
        if now < self.conflicts.at {
            return Some(self.conflicts.at);
        }
        let conflicts = self.replicas.conflicts(self.conflicts.last.as_ref(), AT_ONCE);
        let last = conflicts.last().map(|(path, ..)| Arc::clone(path));
        self.conflicts.last = last.filter(|_| conflicts.len() == AT_ONCE);
        for (path, claim, cause) in conflicts {
            if let Some(claim) = claim.or_else(|| self.own_claim(&path).map(|(_, claim)| claim)) {
                self.claim(claim, cause, now);
            }
        }
        self.conflicts.at = now + AGAIN;
        Some(self.conflicts.at)
    }
}
