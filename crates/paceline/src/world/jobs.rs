//! The run queue of an application's semantic function.

use paceline_objects::participant::FieldSnapshot;
use paceline_objects::run_queue::{JobTimes, RunOrder, RunQueue};
use paceline_objects::semantic::EvaluationBatch;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The greatest number of batches that wait for a worker: one of each observer, of which there are at most as many. There
/// are more only if the function hangs and observers come and go.
const BATCHES_MAX: usize = 10_000;

/// A batch and the fields of its objects.
type Job = (EvaluationBatch, FieldSnapshot);

/// The workers of a semantic function. They end with this value, each after its present job.
pub(super) struct Workers(Arc<Jobs>);

/// The jobs that wait for a worker.
pub(super) struct Jobs {
    /// None once the workers are to end.
    queue: Mutex<Option<RunQueue<Job>>>,
    ready: Condvar,
}

impl Workers {
    /// Returns no workers yet, with an empty queue.
    pub(super) fn new(order: RunOrder) -> Self {
        let queue = Mutex::new(Some(RunQueue::new(order, BATCHES_MAX)));
        Self(Arc::new(Jobs { queue, ready: Condvar::new() }))
    }

    /// Returns the queue for a worker.
    pub(super) fn jobs(&self) -> Arc<Jobs> {
        Arc::clone(&self.0)
    }

    /// Adds a job for the next idle worker.
    pub(super) fn push(&self, job: Job, times: JobTimes) {
        if let Some(queue) = self.0.queue().as_mut() {
            let _exceeds_the_queue = queue.push(job, times);
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
    pub(super) fn next(&self) -> Option<Job> {
        let idle =
            |queue: &mut Option<RunQueue<Job>>| queue.as_ref().is_some_and(RunQueue::is_empty);
        let waited = self.ready.wait_while(self.queue(), idle);
        waited.unwrap_or_else(PoisonError::into_inner).as_mut()?.pop()
    }
}
