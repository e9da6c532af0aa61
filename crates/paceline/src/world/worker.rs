//! The semantic function of an application, on a thread of its own.

use super::state::Shared;
use paceline_objects::participant::FieldSnapshot;
use paceline_objects::semantic::{DecidedTerms, EvaluationBatch, SemanticError, SemanticFunction};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Weak};

/// The greatest number of batches that wait for the function. Those beyond it exceed its time budget anyway.
const BATCHES_MAX: usize = 256;

/// Starts the thread of a semantic function, and returns its inbox. A function that never returns keeps its thread; the
/// world goes on without it.
pub(super) fn start(
    function: Box<dyn SemanticFunction>,
    shared: &Arc<Shared>,
) -> io::Result<SyncSender<(EvaluationBatch, FieldSnapshot)>> {
    let (batches, inbox) = sync_channel(BATCHES_MAX);
    let shared = Arc::downgrade(shared);
    let named = std::thread::Builder::new().name("paceline-decide".to_owned());
    named.spawn(move || decide_all(function, &inbox, &shared))?;
    Ok(batches)
}

/// Passes the pairs that are due to the worker.
pub(super) fn feed(shared: &Shared) {
    let mut state = shared.lock();
    while let Some(batch) = state.participant.next_batch() {
        let snapshot = state.participant.snapshot(&batch);
        let Some(worker) = &state.worker else { continue };
        match worker.try_send((batch, snapshot)) {
            Ok(()) | Err(TrySendError::Full(_)) => {}
            Err(TrySendError::Disconnected((batch, _))) => {
                let ended = SemanticError::Failed("its thread has ended".to_owned());
                state.participant.reject(&batch, ended);
            }
        }
    }
}

fn decide_all(
    mut function: Box<dyn SemanticFunction>,
    inbox: &Receiver<(EvaluationBatch, FieldSnapshot)>,
    shared: &Weak<Shared>,
) {
    while let Ok((batch, snapshot)) = inbox.recv() {
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
