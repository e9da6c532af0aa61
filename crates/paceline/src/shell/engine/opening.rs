//! New publishers: their first samples are buffered until the existing subscriptions are connected.

use super::Engine;
use paceline_proto::plan::SourceKey;
use paceline_proto::{DropReason, Form, PublisherId};
use paceline_sched::{Duration, Instant};
use std::sync::mpsc::Sender;

/// The longest buffering for a path that was asked for a contract.
const OPENING_MAX: Duration = Duration::from_secs(1);

/// A publisher whose first samples are buffered.
pub(crate) struct Opening {
    until: Instant,
    /// Set if its handle was dropped: the time limit after opening, and the caller to notify.
    leaves: Option<(Instant, Option<Sender<bool>>)>,
}

impl Engine {
    /// Starts to buffer samples until the next decision has installed outputs.
    pub(super) fn begin_opening(&mut self, now: Instant, id: PublisherId) {
        if self.publishers.get(&id).is_some_and(|shared| shared.opening.is_some()) {
            self.opening.insert(id, Opening { until: now + OPENING_MAX, leaves: None });
        }
    }

    /// Delays the end of a publisher until it is open; returns false if it is open already.
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

    /// Opens a publisher if all its outputs are installed.
    pub(super) fn try_open(&self, id: PublisherId) {
        if self.opening.contains_key(&id) && !self.control.is_opening(id) {
            self.open(id);
        }
    }

    /// Opens publishers whose outputs are installed or whose time limit has passed.
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
        // Without a link that wants the samples, they are not lost.
        let source = SourceKey { publisher: id, form: Form::FULL };
        let leads_away = self.installer.streams(source).next().is_some();
        if leads_away || !answered {
            self.sources.drops.add(DropReason::QueueFull, missed.no_room);
        }
    }

    /// Returns the latest time of the next call of [`Self::end_openings`].
    pub(super) fn opening_until(&self) -> Instant {
        self.opening.values().map(|opening| opening.until).min().unwrap_or(Instant::FAR)
    }
}
