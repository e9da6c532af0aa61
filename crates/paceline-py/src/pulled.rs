//! Pulls.

use crate::life::Held;
use crate::sample::Sample;
use crate::{errors, life};
use paceline::RecvError;
use paceline::pull::{PullSummary, Pulled as Inner};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The interval between checks for signals.
const SLICE: Duration = Duration::from_millis(50);

/// An iterator over the samples of a pull, ordered by publisher and sequence number.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Pulled(Held<Mutex<Inner>>);

/// The result of a pull.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Summary(PullSummary);

impl Pulled {
    pub(crate) fn new(inner: Inner) -> Self {
        Self(Held::new(Mutex::new(inner)))
    }
}

#[pymethods]
impl Pulled {
    /// The number of samples found.
    #[getter]
    fn found(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.get()?.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).found())
    }

    /// The result of the pull; `None` until the iterator is exhausted.
    #[getter]
    fn summary(&self, py: Python<'_>) -> PyResult<Option<Summary>> {
        let inner = self.0.get()?.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        Ok(inner.summary().cloned().map(Summary))
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Sample>> {
        let inner = self.0.get()?;
        loop {
            let waiting = life::Waiting::new();
            let next = py.detach(|| {
                inner.lock().unwrap_or_else(PoisonError::into_inner).next_timeout(SLICE)
            });
            drop(waiting);
            match next {
                Ok(next) => return Ok(next.map(Sample)),
                Err(RecvError::Timeout) if !life::is_ending() => py.check_signals()?,
                Err(_) => return Err(errors::closed()),
            }
        }
    }

    fn __aiter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("paceline.aio")?.call_method1("pulled", (slf,))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Pulled(found={})", self.found(py)?))
    }
}

#[pymethods]
impl Summary {
    /// The number of samples found.
    #[getter]
    const fn found(&self) -> u64 {
        self.0.found
    }

    /// The number of samples received.
    #[getter]
    const fn delivered(&self) -> u64 {
        self.0.delivered
    }

    /// The number of payload bytes received.
    #[getter]
    const fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// The samples that were found but not received, as (publisher, sequence number, reason).
    #[getter]
    fn missing(&self) -> Vec<(String, u64, String)> {
        let missing = self.0.missing.iter();
        missing.map(|one| (one.publisher.to_string(), one.seq, one.reason.to_string())).collect()
    }

    /// The nodes that sent samples, as (id, name, samples).
    #[getter]
    fn nodes(&self) -> Vec<(String, String, u64)> {
        self.0
            .nodes
            .iter()
            .map(|node| (node.id.to_string(), node.name.clone(), node.delivered))
            .collect()
    }

    /// The names of the buffering nodes that did not answer. Samples stored only there were not
    /// found.
    #[getter]
    fn silent(&self) -> Vec<String> {
        self.0.silent.clone()
    }

    /// True if more samples matched than one pull returns, which is 65,536.
    #[getter]
    const fn more(&self) -> bool {
        self.0.more
    }

    fn __repr__(&self) -> String {
        let PullSummary { found, delivered, missing, .. } = &self.0;
        format!("Summary(found={found}, delivered={delivered}, missing={})", missing.len())
    }
}
