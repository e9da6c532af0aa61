//! When the objects in range of an observer are evaluated.

use super::objects::Objects;
use crate::ids::ObjectIndex;
use crate::semantic::SemanticError;
use paceline_sched::{Duration, Instant};

/// The greatest number of objects of one batch.
const BATCH_MAX: usize = 256;

/// The least time between two batches of one observer, so that one with very many objects in range leaves time for others.
const BATCH_GAP: Duration = Duration::from_millis(1);
/// How much of the time that was not used for evaluations may be used later.
const UNUSED_MAX: Duration = Duration::from_millis(4);

/// Returns the earliest time that is not lost for evaluations at `now`.
pub(super) const fn earliest(now: Instant) -> Instant {
    Instant::from_nanos(now.as_nanos().saturating_sub(UNUSED_MAX.as_nanos()))
}

/// The evaluation of one observer's objects, in batches that are spread over the time of a sweep.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    started: Instant,
    every: Duration,
    objects: Swept,
    done: usize,
    /// The earliest time of the next batch.
    opens: Instant,
    number: u64,
    pending: Option<(u64, Instant)>,
    pub(super) disabled: Option<SemanticError>,
}

/// The objects of a sweep.
#[derive(Clone, Debug)]
enum Swept {
    /// Those in range.
    Listed(Vec<ObjectIndex>),
    /// All, as many as there were at the beginning. They are not listed, because that would take as long as there are
    /// objects.
    All { count: usize, last: Option<ObjectIndex>, more: bool },
}

impl Swept {
    fn count(&self) -> usize {
        match self {
            Self::Listed(objects) => objects.len(),
            Self::All { count, .. } => *count,
        }
    }
}

impl Sweep {
    /// Begins at `at` with sweeps of length `every`.
    pub(super) const fn new(at: Instant, every: Duration) -> Self {
        Self {
            started: at,
            every,
            objects: Swept::Listed(Vec::new()),
            done: 0,
            opens: at,
            number: 0,
            pending: None,
            disabled: None,
        }
    }

    /// Returns when something is to be done: the next batch, the next sweep, or the end of the budget of the batch
    /// that is being evaluated.
    pub(super) fn next(&self, budget: Duration) -> Instant {
        match self.pending {
            Some((_, since)) => since + budget,
            None => self.batch_at().max(self.opens),
        }
    }

    fn batch_at(&self) -> Instant {
        let (done, all) = (self.done, self.objects.count());
        if all == 0 {
            return self.started;
        }
        let share = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.started + self.every.mul_div(share(done), share(all))
    }

    /// Returns whether the objects in range are to be determined again.
    pub(super) fn is_complete(&self) -> bool {
        match &self.objects {
            Swept::Listed(objects) => self.done >= objects.len(),
            Swept::All { more, .. } => !more,
        }
    }

    /// Begins a sweep of these objects.
    pub(super) fn begin(&mut self, objects: Vec<ObjectIndex>, now: Instant) {
        self.begin_with(Swept::Listed(objects), now);
    }

    /// Begins a sweep of all objects, of which there are `count`.
    pub(super) fn begin_all(&mut self, count: usize, now: Instant) {
        self.begin_with(Swept::All { count, last: None, more: count > 0 }, now);
    }

    fn begin_with(&mut self, objects: Swept, now: Instant) {
        // A sweep that begins late does not shorten the next one.
        self.started = now;
        self.done = 0;
        if objects.count() == 0 {
            self.started = now + self.every;
        }
        self.objects = objects;
    }

    /// Returns the objects of the next batch and its number.
    pub(super) fn take(&mut self, objects: &Objects, now: Instant) -> (u64, Vec<ObjectIndex>) {
        let from = self.done;
        let batch = match &mut self.objects {
            Swept::Listed(listed) => {
                let to = (from + BATCH_MAX).min(listed.len());
                listed.get(from..to).unwrap_or_default().to_vec()
            }
            Swept::All { last, more, .. } => {
                let (batch, rest) = objects.after(*last, BATCH_MAX);
                (*last, *more) = (batch.last().copied().or(*last), rest);
                batch
            }
        };
        self.done += batch.len();
        self.opens = self.opens.max(earliest(now)) + BATCH_GAP;
        self.number += 1;
        if self.disabled.is_none() {
            self.pending = Some((self.number, now));
        }
        (self.number, batch)
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
