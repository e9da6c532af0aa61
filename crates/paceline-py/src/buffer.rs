//! Pull buffers.

use crate::errors;
use crate::life::Held;
use paceline::pull::Buffer as Inner;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Mutex, PoisonError};

/// A pull buffer: stores the samples of a tag or pattern, for any node to pull.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Buffer {
    inner: Held<Mutex<Option<Inner>>>,
    id: paceline::status::SubscriptionId,
    pattern: String,
}

impl Buffer {
    pub(crate) fn new(inner: Inner, pattern: &str) -> Self {
        let id = inner.id();
        Self { inner: Held::new(Mutex::new(Some(inner))), id, pattern: pattern.to_owned() }
    }
}

#[pymethods]
impl Buffer {
    /// The id of the subscription that fills the buffer.
    #[getter]
    fn id(&self) -> String {
        self.id.to_string()
    }

    /// The tag or pattern.
    #[getter]
    fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The number of samples and bytes stored, as a dict.
    #[getter]
    fn held<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.inner.get()?.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let buffer = inner.as_ref().ok_or_else(errors::closed)?;
        let held = PyDict::new(py);
        held.set_item("samples", buffer.len())?;
        held.set_item("bytes", buffer.bytes())?;
        Ok(held)
    }

    /// Ends the buffer and frees its samples.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut inner =
            self.inner.get()?.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let buffer = inner.take();
        drop(inner);
        py.detach(|| drop(buffer));
        Ok(())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        format!("Buffer('{}', id={})", self.pattern, self.id)
    }
}
