//! The semantic function of an application, on threads of its own.

use super::state::Shared;
use crate::shell::clock;
use paceline_objects::participant::FieldSnapshot;
use paceline_objects::run_queue::{JobTimes, RunOrder, RunQueue};
use paceline_objects::semantic::{DecidedTerms, EvaluationBatch, SemanticError, SemanticFunction};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

/// The greatest number of batches that wait for a worker. Those beyond it exceed their time budget anyway.
const BATCHES_MAX: usize = 256;

/// A batch and the fields of its objects.
type Job = (EvaluationBatch, FieldSnapshot);

/// The workers of a semantic function. They end with this value, each after its present job.
pub(super) struct Workers(Arc<Jobs>);

/// The jobs that wait for a worker.
struct Jobs {
    /// None once the workers are to end.
    queue: Mutex<Option<RunQueue<Job>>>,
    ready: Condvar,
}

impl Workers {
    /// Starts a worker for each function. One that never returns keeps its thread; the world goes on without it.
    pub(super) fn start(
        functions: Vec<Box<dyn SemanticFunction>>,
        order: RunOrder,
        shared: &Arc<Shared>,
    ) -> io::Result<Self> {
        let queue = Mutex::new(Some(RunQueue::new(order, BATCHES_MAX)));
        // Dropped after an error, it ends those that have started.
        let workers = Self(Arc::new(Jobs { queue, ready: Condvar::new() }));
        for function in functions {
            let (jobs, shared) = (Arc::clone(&workers.0), Arc::downgrade(shared));
            let named = std::thread::Builder::new().name("paceline-decide".to_owned());
            named.spawn(move || jobs.run(function, &shared))?;
        }
        Ok(workers)
    }

    fn push(&self, job: Job, times: JobTimes) {
        if let Some(queue) = self.0.queue().as_mut() {
            let _beyond_its_budget = queue.push(job, times);
        }
        self.0.ready.notify_one();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        *self.0.queue() = None;
        self.0.ready.notify_all();
    }
}

impl Jobs {
    fn queue(&self) -> MutexGuard<'_, Option<RunQueue<Job>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next job; `None` at the end.
    fn next(&self) -> Option<Job> {
        let idle =
            |queue: &mut Option<RunQueue<Job>>| queue.as_ref().is_some_and(RunQueue::is_empty);
        let waited = self.ready.wait_while(self.queue(), idle);
        waited.unwrap_or_else(PoisonError::into_inner).as_mut()?.pop()
    }

    /// Runs jobs to completion, one after the other.
    fn run(&self, mut function: Box<dyn SemanticFunction>, shared: &Weak<Shared>) {
        while let Some((batch, snapshot)) = self.next() {
            let Some(world) = shared.upgrade() else { return };
            let late = world.lock().participant.is_late(&batch, clock::now());
            drop(world);
            // Its terms would change nothing, and others wait.
            if late {
                continue;
            }
            let decided = decide(function.as_mut(), &batch, &snapshot);
            let Some(shared) = shared.upgrade() else { return };
            let notify = shared.change(|state| {
                match decided {
                    Ok(decisions) => state.participant.decided(&decisions, shared.time().now),
                    Err(error) => state.participant.reject(&batch, error),
                }
                state.collect()
            });
            if notify {
                shared.arrived.notify(usize::MAX);
            }
        }
    }
}

/// Passes the pairs that are due to the workers.
pub(super) fn feed(shared: &Shared) {
    let mut state = shared.lock();
    while let Some(batch) = state.participant.next_batch() {
        let snapshot = state.participant.snapshot(&batch);
        let times = state.participant.job_times(&batch);
        if let Some(workers) = &state.workers {
            workers.push((batch, snapshot), times);
        }
    }
}

fn decide(
    function: &mut dyn SemanticFunction,
    batch: &EvaluationBatch,
    snapshot: &FieldSnapshot,
) -> Result<DecidedTerms, SemanticError> {
    catch_unwind(AssertUnwindSafe(|| batch.decide(function, snapshot))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(SemanticError::Failed(text.unwrap_or_else(|| "it panicked".to_owned())))
    })
}
