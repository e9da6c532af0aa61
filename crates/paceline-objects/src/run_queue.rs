//! The order in which the jobs of interactors run on the workers of a module.
//!
//! Paper: West and Schwan 1997, section 4.2.1: the modules of an interactor are one job, and jobs are scheduled
//! earliest deadline first or rate-monotonically.

use crate::codec::{PacketError, Reader, Writer};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;
use thiserror::Error;

/// The order in which jobs run. A job that has begun runs to completion.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RunOrder {
    /// The job with the earliest deadline first.
    #[default]
    EarliestDeadline,
    /// The job with the shortest period first.
    RateMonotonic,
}

impl RunOrder {
    /// All orders.
    pub const ALL: [Self; 2] = [Self::EarliestDeadline, Self::RateMonotonic];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EarliestDeadline => "edf",
            Self::RateMonotonic => "rm",
        }
    }

    /// Returns the order of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }
}

/// How the semantic function of an application runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DecisionWorkers {
    /// The number of workers that run the function at once, from 1 to 64.
    pub count: u8,
    /// The order of the jobs.
    pub order: RunOrder,
}

impl Default for DecisionWorkers {
    /// One worker, earliest deadline first.
    fn default() -> Self {
        Self { count: 1, order: RunOrder::EarliestDeadline }
    }
}

impl DecisionWorkers {
    /// The greatest number of workers.
    pub const COUNT_MAX: u8 = 64;

    /// Returns this number of workers.
    ///
    /// # Errors
    /// A number that is out of range.
    pub fn new(count: usize, order: RunOrder) -> Result<Self, WorkersError> {
        let workers = u8::try_from(count).map(|count| Self { count, order });
        let workers = workers.map_err(|_| WorkersError(count))?;
        workers.check()?;
        Ok(workers)
    }

    /// Checks the number.
    ///
    /// # Errors
    /// A number that is out of range.
    pub const fn check(self) -> Result<(), WorkersError> {
        if self.count == 0 || self.count > Self::COUNT_MAX {
            return Err(WorkersError(self.count as usize));
        }
        Ok(())
    }

    /// Writes it, and 0 without workers.
    pub(crate) fn write(workers: Option<Self>, writer: &mut Writer) {
        let Some(Self { count, order }) = workers else {
            writer.u8(0);
            return;
        };
        writer.u8(count).u8(u8::from(order == RunOrder::RateMonotonic));
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, PacketError> {
        let count = reader.u8()?;
        if count == 0 {
            return Ok(None);
        }
        let order = match reader.u8()? {
            0 => RunOrder::EarliestDeadline,
            1 => RunOrder::RateMonotonic,
            other => return Err(PacketError::Unknown(other)),
        };
        let workers = Self { count, order };
        workers.check().map_err(|_| PacketError::Unknown(count))?;
        Ok(Some(workers))
    }
}

/// The error of [`DecisionWorkers`].
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("workers {0}: must be from 1 to 64, such as the number of processors")]
pub struct WorkersError(pub usize);

/// The times of a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JobTimes {
    /// When it should be complete.
    pub deadline: Instant,
    /// The time between two jobs of its kind.
    pub period: Duration,
}

/// The jobs that wait for a worker, at most a given number. Every operation takes O(log n).
///
/// ```
/// use paceline_objects::run_queue::{JobTimes, RunOrder, RunQueue};
/// use paceline_sched::{Duration, Instant};
///
/// let job = |deadline, period| JobTimes {
///     deadline: Instant::from_millis(deadline),
///     period: Duration::from_millis(period),
/// };
/// let mut queue = RunQueue::new(RunOrder::EarliestDeadline, 10);
/// queue.push("rare", job(20, 100));
/// queue.push("frequent", job(30, 10));
/// assert_eq!(queue.pop(), Some("rare"));
///
/// let mut queue = RunQueue::new(RunOrder::RateMonotonic, 10);
/// queue.push("rare", job(20, 100));
/// queue.push("frequent", job(30, 10));
/// assert_eq!(queue.pop(), Some("frequent"));
/// ```
#[derive(Clone, Debug)]
pub struct RunQueue<J> {
    order: RunOrder,
    limit: usize,
    /// By deadline or period in nanoseconds; equal ones in the order of their arrival.
    jobs: BTreeMap<(u64, u64), J>,
    next: u64,
}

impl<J> RunQueue<J> {
    /// Creates an empty queue of at most `limit` jobs.
    #[must_use]
    pub const fn new(order: RunOrder, limit: usize) -> Self {
        Self { order, limit, jobs: BTreeMap::new(), next: 0 }
    }

    /// Adds a job. Returns the one that would run last if there are too many.
    pub fn push(&mut self, job: J, times: JobTimes) -> Option<J> {
        let key = match self.order {
            RunOrder::EarliestDeadline => times.deadline.as_nanos(),
            RunOrder::RateMonotonic => times.period.as_nanos(),
        };
        self.jobs.insert((key, self.next), job);
        self.next += 1;
        let excess = self.jobs.len() > self.limit;
        excess.then(|| self.jobs.pop_last()).flatten().map(|(_, job)| job)
    }

    /// Takes the job that runs next.
    pub fn pop(&mut self) -> Option<J> {
        self.jobs.pop_first().map(|(_, job)| job)
    }

    /// Returns the number of jobs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a naive model: the waiting jobs as a list that is searched.
        #[test]
        fn jobs_run_in_order(
            monotonic: bool,
            limit in 1..8_usize,
            steps in prop::collection::vec(prop::option::of((0..5_u64, 0..5_u64)), 0..60),
        ) {
            let order = RunOrder::ALL[usize::from(monotonic)];
            let mut queue = RunQueue::new(order, limit);
            let mut model: Vec<(u64, usize)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                if let Some((deadline, period)) = step {
                    let times = JobTimes {
                        deadline: Instant::from_millis(deadline),
                        period: Duration::from_millis(period),
                    };
                    model.push((if monotonic { period } else { deadline }, number));
                    model.sort_unstable();
                    let last = (model.len() > limit).then(|| model.pop()).flatten();
                    prop_assert_eq!(queue.push(number, times), last.map(|(_, number)| number));
                } else {
                    let first = (!model.is_empty()).then(|| model.remove(0).1);
                    prop_assert_eq!(queue.pop(), first);
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }

    #[test]
    fn workers_are_limited_and_orders_have_names() {
        let workers = |count| DecisionWorkers { count, ..DecisionWorkers::default() };
        assert_eq!(workers(64).check(), Ok(()));
        assert_eq!(workers(0).check(), Err(WorkersError(0)));
        let text = "workers 65: must be from 1 to 64, such as the number of processors";
        assert_eq!(workers(65).check().map_err(|error| error.to_string()), Err(text.to_owned()));
        let order = RunOrder::RateMonotonic;
        assert_eq!(DecisionWorkers::new(300, order), Err(WorkersError(300)));
        assert_eq!(DecisionWorkers::new(3, order), Ok(DecisionWorkers { count: 3, order }));
        assert_eq!(RunOrder::named("rm"), Some(RunOrder::RateMonotonic));
        assert_eq!(RunOrder::named("fifo"), None);
    }
}
