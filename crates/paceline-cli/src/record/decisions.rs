//! The decisions on commands with an age limit, at a limited rate.

use super::writer::Job;
use paceline::Subscription;
use paceline::delivery::Decisions;
use paceline_record::{DecisionCounts, RecordedEvent};
use std::time::{Duration, Instant};

/// The most starts and ends of safe actions that are listed per second.
const LISTED: u32 = 20;

/// Lists starts and ends of safe actions, and counts all decisions.
#[derive(Default)]
pub(super) struct DecisionLog {
    second: Option<Instant>,
    listed: u32,
    unlisted: u64,
    told: DecisionCounts,
}

impl DecisionLog {
    /// Returns the event, unless too many were listed in this second.
    pub(super) fn list(&mut self, event: RecordedEvent) -> Option<Job> {
        let now = Instant::now();
        if self.second.is_none_or(|second| now - second >= Duration::from_secs(1)) {
            (self.second, self.listed) = (Some(now), 0);
        }
        if self.listed >= LISTED {
            self.unlisted += 1;
            return None;
        }
        self.listed += 1;
        Some(Job::Event(event))
    }

    /// Returns an event if there were decisions since the last call.
    pub(super) fn news(&mut self, subscriptions: &[Subscription]) -> Option<RecordedEvent> {
        let mut counts = DecisionCounts { unlisted: self.unlisted, ..DecisionCounts::default() };
        for subscription in subscriptions {
            let Decisions { released, stale, silences } = subscription.decisions();
            counts.released += released;
            counts.stale += stale;
            counts.silences += silences;
        }
        (std::mem::replace(&mut self.told, counts) != counts)
            .then_some(RecordedEvent::Decisions(counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_of_many_actions_are_listed() {
        let mut log = DecisionLog::default();
        let silent =
            |seq| RecordedEvent::Silent { tag: "arm".to_owned(), publisher: "1.0".to_owned(), seq };
        let listed = (0..100).filter_map(|seq| log.list(silent(seq))).count();
        assert_eq!(listed, 20);
        let unlisted = DecisionCounts { unlisted: 80, ..DecisionCounts::default() };
        assert_eq!(log.news(&[]), Some(RecordedEvent::Decisions(unlisted)));
        assert_eq!(log.news(&[]), None, "nothing has changed");
    }
}
