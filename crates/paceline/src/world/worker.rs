//! The threads of an application's semantic function.

use super::jobs::{Jobs, Workers};
use super::state::Shared;
use crate::shell::clock;
use paceline_objects::participant::FieldSnapshot;
use paceline_objects::run_queue::RunOrder;
use paceline_objects::semantic::{DecidedTerms, EvaluationBatch, SemanticError, SemanticFunction};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// Starts a worker for each function. One that never returns keeps its thread; the world goes on without it.
pub(super) fn start(
    functions: Vec<Box<dyn SemanticFunction>>,
    order: RunOrder,
    shared: &Arc<Shared>,
) -> io::Result<Workers> {
    // Dropped after an error, it ends those that have started.
    let workers = Workers::new(order);
    for function in functions {
        let (jobs, shared) = (workers.jobs(), Arc::downgrade(shared));
        let named = std::thread::Builder::new().name("paceline-decide".to_owned());
        named.spawn(move || run(function, &jobs, &shared))?;
    }
    Ok(workers)
}

/// Runs jobs to completion, one after the other.
fn run(mut function: Box<dyn SemanticFunction>, jobs: &Jobs, shared: &Weak<Shared>) {
    while let Some((batch, snapshot)) = jobs.next() {
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
