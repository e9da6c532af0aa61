//! Publishers that were just declared: their first samples wait until the subscriptions that exist are served.

use super::Engine;
use paceline_proto::control::SourceKey;
use paceline_proto::{DropReason, Form, PublisherId};
use paceline_sched::{Duration, Instant};
use std::sync::mpsc::Sender;

/// The longest that samples wait for a path that was asked for a contract.
const OPENING_MAX: Duration = Duration::from_secs(1);

/// A publisher whose first samples wait.
pub(crate) struct Opening {
    until: Instant,
    /// Its handle is gone: until when it lingers once it is open, and whom to notify.
    leaves: Option<(Instant, Option<Sender<bool>>)>,
}

impl Engine {
    /// What is published from now on waits for the outputs that the next decision finds.
    pub(super) fn begin_opening(&mut self, now: Instant, id: PublisherId) {
        if self.publishers.get(&id).is_some_and(|shared| shared.opening.is_some()) {
            self.opening.insert(id, Opening { until: now + OPENING_MAX, leaves: None });
        }
    }

    /// Has a publisher that goes linger only once it is open; false if it is open.
    pub(super) fn leave_opening(
        &mut self,
        id: PublisherId,
        until: Instant,
        told: &mut Option<Sender<bool>>,
    ) -> bool {
        let Some(opening) = self.opening.get_mut(&id) else { return false };
        opening.until = opening.until.min(until);
        opening.leaves.get_or_insert_with(|| (until, told.take()));
        true
    }

    /// Opens a publisher if its outputs are all there.
    pub(super) fn try_open(&self, id: PublisherId) {
        if self.opening.contains_key(&id) && !self.control.is_opening(id) {
            self.open(id);
        }
    }

    /// Opens the publishers whose outputs are all there, and those that have waited for them for too long.
    pub(super) fn end_openings(&mut self, now: Instant) {
        let is_over = |id, opening: &Opening| now >= opening.until || !self.control.is_opening(id);
        let over = self.opening.iter().filter(|(id, opening)| is_over(**id, opening));
        let over: Vec<PublisherId> = over.map(|(id, _)| *id).collect();
        for id in over {
            self.open(id);
            let opening = self.opening.remove(&id);
            if let Some((until, told)) = opening.and_then(|opening| opening.leaves) {
                self.linger(now, id, until, told);
            }
        }
    }

    fn open(&self, id: PublisherId) {
        let Some(shared) = self.publishers.get(&id) else { return };
        let Some(opening) = &shared.opening else { return };
        let answered = !self.control.is_opening(id);
        let missed = opening.open(&shared.installs, answered);
        shared.change.notify(usize::MAX);
        self.sources.drops.add(DropReason::NoRoute, missed.no_answer);
        // Without a link that wants them they would have been sent nowhere.
        let source = SourceKey { publisher: id, form: Form::FULL };
        let leads_away = self.outgoing.get(&source).is_some_and(|it| it.open_streams().count() > 0);
        if leads_away || !answered {
            self.sources.drops.add(DropReason::QueueFull, missed.no_room);
        }
    }

    /// When [`Self::end_openings`] has something to do at the latest.
    pub(super) fn opening_until(&self) -> Instant {
        self.opening.values().map(|opening| opening.until).min().unwrap_or(Instant::FAR)
    }
}
