//! What the discipline is told of the first sample that waits in each stream.

use super::stream::Stream;
use super::{Link, StreamIndex};
use paceline_sched::discipline::Head;
use paceline_sched::{Instant, Scheduler};

impl Link {
    /// Tells the discipline of the stream's head, if it has one.
    pub(super) fn announce_head(&mut self, now: Instant, index: StreamIndex) {
        let Some(head) = self.next_head(now, index) else { return };
        if self.stream(index).is_some_and(Stream::head_is_demoted) {
            self.discipline.handle_demoted(index, head);
        } else {
            self.discipline.handle_head(index, head);
            self.announce_length(index);
        }
    }

    /// The next head if there is one and it was not demoted: it follows the one that leaves.
    pub(super) fn following_head(&mut self, now: Instant, index: StreamIndex) -> Option<Head> {
        let demoted = self.stream(index).is_some_and(Stream::head_is_demoted);
        if demoted { None } else { self.next_head(now, index) }
    }

    /// A newer sample has taken the place of the head. Of best effort it takes its turn too: else a stream whose
    /// samples come faster than its turns would never have one.
    pub(super) fn replace_head(&mut self, now: Instant, index: StreamIndex) {
        let contracted = self.stream(index).is_some_and(|stream| stream.spec.contract.is_some());
        let head = if contracted { None } else { self.next_head(now, index) };
        match head {
            Some(head) => {
                self.discipline.handle_left(index, head.left);
                // Or there was none, because its class had not let it pass.
                self.discipline.handle_head(index, head);
            }
            None => {
                self.discipline.remove_head(index);
                self.announce_head(now, index);
            }
        }
    }

    /// The stream's head, if it has one that its class lets pass.
    pub(super) fn next_head(&mut self, now: Instant, index: StreamIndex) -> Option<Head> {
        if !self.passes(now, index) {
            return None;
        }
        let stream = self.stream(index)?;
        let arrived = stream.head_arrived(now)?;
        Some(Head { arrived, left: self.left(stream.head_left()) })
    }
}
