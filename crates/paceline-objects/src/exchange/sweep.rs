//! When the objects in range of an observer are evaluated.

use crate::ids::ObjectIndex;
use crate::semantic::SemanticError;
use paceline_sched::{Duration, Instant};

/// The greatest number of objects of one batch.
const BATCH_MAX: usize = 256;

/// The evaluation of one observer's objects, in batches that are spread over the time of a sweep.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    started: Instant,
    every: Duration,
    objects: Vec<ObjectIndex>,
    done: usize,
    number: u64,
    pending: Option<(u64, Instant)>,
    pub(super) disabled: Option<SemanticError>,
}

impl Sweep {
    /// Begins at `at` with sweeps of length `every`.
    pub(super) const fn new(at: Instant, every: Duration) -> Self {
        let objects = Vec::new();
        Self { started: at, every, objects, done: 0, number: 0, pending: None, disabled: None }
    }

    /// Returns when something is to be done: the next batch, the next sweep, or the end of the budget of the batch
    /// that is being evaluated.
    pub(super) fn next(&self, budget: Duration) -> Instant {
        match self.pending {
            Some((_, since)) => since + budget,
            None => self.batch_at(),
        }
    }

    fn batch_at(&self) -> Instant {
        let (done, all) = (self.done, self.objects.len());
        if all == 0 {
            return self.started;
        }
        let share = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.started + self.every.mul_div(share(done), share(all))
    }

    /// Returns whether the objects in range are to be determined again.
    pub(super) fn is_complete(&self) -> bool {
        self.done >= self.objects.len()
    }

    /// Begins a sweep of these objects.
    pub(super) fn begin(&mut self, objects: Vec<ObjectIndex>, now: Instant) {
        // A sweep that begins late does not shorten the next one.
        self.started = now;
        self.objects = objects;
        self.done = 0;
        if self.objects.is_empty() {
            self.started = now + self.every;
        }
    }

    /// Returns the objects of the next batch and its number.
    pub(super) fn take(&mut self, now: Instant) -> (u64, &[ObjectIndex]) {
        let from = self.done;
        self.done = (from + BATCH_MAX).min(self.objects.len());
        self.number += 1;
        if self.disabled.is_none() {
            self.pending = Some((self.number, now));
        }
        (self.number, self.objects.get(from..self.done).unwrap_or_default())
    }

    /// Returns whether the time of the batch that is being evaluated has ended.
    pub(super) fn is_overdue(&self, now: Instant, budget: Duration) -> bool {
        self.pending.is_some_and(|(_, since)| since + budget <= now)
    }

    /// Returns whether batch `number` is being evaluated.
    pub(super) fn is_pending(&self, number: u64) -> bool {
        self.pending.is_some_and(|(pending, _)| pending == number)
    }

    pub(super) fn accepted(&mut self) {
        self.pending = None;
    }

    pub(super) fn disable(&mut self, reason: SemanticError) {
        self.pending = None;
        self.disabled = Some(reason);
    }
}
