//! Semantic functions in Python. They run on a thread of Python, which fetches the objects to decide
//! on; the thread of the world waits for it without any lock.

use super::field;
use super::interest::ExchangeTerms;
use crate::wait::SLICE;
use crate::{errors, life};
use paceline::world::{
    ExchangeTerms as Terms, FieldSource, FieldValue, PairFacts, PairView as Pair, PeerId,
    SemanticError, SemanticFunction,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The facts of an object and an observer.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct PairView {
    peer: PeerId,
    facts: PairFacts,
    path: String,
    fields: Vec<(String, FieldValue)>,
}

#[pymethods]
impl PairView {
    /// The path of the object.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// The id of the observer.
    #[getter]
    fn peer(&self) -> String {
        self.peer.to_string()
    }

    /// The fields of the object.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        field::dict(py, self.fields.iter().map(|(name, value)| (name.as_str(), value)))
    }

    /// The distance of the two; `None` if one of them has no position.
    #[getter]
    const fn distance(&self) -> Option<f64> {
        self.facts.distance
    }

    /// The angle between the observer's direction of view and the object, in radians; `None` without
    /// such a direction.
    #[getter]
    const fn angle(&self) -> Option<f64> {
        self.facts.angle
    }

    /// The distance between the object and where its replica extrapolates it.
    #[getter]
    const fn error(&self) -> f64 {
        self.facts.error
    }

    /// The speed of the object per second.
    #[getter]
    const fn speed(&self) -> f64 {
        self.facts.speed
    }

    /// The time since the last exchange of the two in seconds; `None` if there was none.
    #[getter]
    fn age_s(&self) -> Option<f64> {
        self.facts.age.map(|age| Duration::from(age).as_secs_f64())
    }

    fn __repr__(&self) -> String {
        format!("PairView('{}', distance={:?})", self.path, self.facts.distance)
    }
}

/// The objects of one observer, and where the answer goes.
struct Batch {
    pairs: Vec<PairView>,
    answer: SyncSender<Result<Vec<Option<Terms>>, String>>,
}

/// The end of the world's threads.
#[derive(Clone)]
pub(crate) struct Function {
    batches: SyncSender<Batch>,
}

impl SemanticFunction for Function {
    fn decide(&mut self, pair: &Pair<'_>) -> Result<Option<Terms>, SemanticError> {
        let facts = core::slice::from_ref(pair.facts);
        Ok(self.decide_all(pair.peer, facts, pair.fields)?.into_iter().next().flatten())
    }

    fn decide_all(
        &mut self,
        peer: PeerId,
        pairs: &[PairFacts],
        fields: &(dyn FieldSource + Sync),
    ) -> Result<Vec<Option<Terms>>, SemanticError> {
        let pair = |facts: &PairFacts| PairView {
            peer,
            facts: *facts,
            path: fields.path(facts.object).unwrap_or_default().to_owned(),
            fields: fields
                .fields(facts.object)
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.clone()))
                .collect(),
        };
        let ended = |_| SemanticError::Failed("its thread has ended".to_owned());
        let (answer, answered) = sync_channel(1);
        let batch = Batch { pairs: pairs.iter().map(pair).collect(), answer };
        self.batches.send(batch).map_err(|_| ended(()))?;
        answered.recv().map_err(|_| ended(()))?.map_err(SemanticError::Failed)
    }
}

/// The end of Python's threads.
#[pyclass(frozen, module = "paceline._native")]
pub(crate) struct Decider {
    function: Mutex<Option<Function>>,
    batches: Mutex<Receiver<Batch>>,
}

impl Decider {
    /// Returns the end of the world's threads, once.
    pub(super) fn function(&self) -> PyResult<Function> {
        let function = self.function.lock().unwrap_or_else(PoisonError::into_inner).take();
        function.ok_or_else(|| errors::value("decider: it decides for a world already".to_owned()))
    }

    /// Waits for the next batch; `None` at the end.
    fn next(&self, py: Python<'_>) -> Option<Batch> {
        loop {
            let waiting = life::Waiting::new();
            let found = py.detach(|| {
                self.batches.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SLICE)
            });
            drop(waiting);
            match found {
                Ok(batch) => return Some(batch),
                Err(RecvTimeoutError::Timeout) if !life::is_ending() => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

fn decide(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    pairs: Vec<PairView>,
) -> PyResult<Vec<Option<Terms>>> {
    let one = |pair: PairView| {
        let terms = function.call1((Py::new(py, pair)?,))?;
        if terms.is_none() {
            return Ok(None);
        }
        match terms.cast::<ExchangeTerms>() {
            Ok(terms) => Ok(Some(terms.get().0)),
            Err(_) => Err(errors::wrong_type(format!(
                "it returned {}: it must return ExchangeTerms or None",
                terms.repr()?
            ))),
        }
    };
    pairs.into_iter().map(one).collect()
}

#[pymethods]
impl Decider {
    #[new]
    fn new() -> Self {
        let (batches, inbox) = sync_channel(1);
        Self { function: Mutex::new(Some(Function { batches })), batches: Mutex::new(inbox) }
    }

    /// Calls `function` for each object to decide on, until the world ends or decides otherwise.
    fn serve(&self, py: Python<'_>, function: &Bound<'_, PyAny>) {
        while let Some(Batch { pairs, answer }) = self.next(py) {
            let decided = decide(py, function, pairs).map_err(|error| error.to_string());
            // The world may have ended meanwhile.
            let _ended = answer.send(decided);
        }
    }
}
