//! Memory that a program fills before publishing, so that publishing needs no copy.

use crate::convert::WHOLE;
use crate::errors;
use paceline::{PublishError, Publisher};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyString, PyTuple};
use std::sync::{Mutex, PoisonError};

/// The default element type. It does not need numpy.
const BYTE: &str = "uint8";

/// Memory for one sample: fill it in place, then publish it without a copy.
///
/// `array` and `buffer` are writable views of the memory. If a view still exists when the loan is
/// published, the bytes are copied once, and later writes to the view do not change the published
/// sample.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Loan {
    /// An `io.BytesIO`; `None` once published. `getvalue` shares its bytes if no view can write to
    /// them and copies them otherwise, so published bytes cannot change.
    memory: Mutex<Option<Py<PyAny>>>,
    shape: Py<PyTuple>,
    dtype: Py<PyAny>,
    bytes: usize,
}

impl Loan {
    pub(crate) fn new(
        py: Python<'_>,
        shape: &Bound<'_, PyAny>,
        dtype: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let sides = sides(shape)?;
        let dtype = dtype.unwrap_or_else(|| PyString::new(py, BYTE).into_any());
        let (dtype, element) = element(dtype)?;
        let bytes = sides.iter().try_fold(element, |bytes, side| bytes.checked_mul(*side));
        let bytes = bytes.unwrap_or(usize::MAX);
        if bytes > Publisher::SAMPLE_BYTES_MAX {
            return Err(errors::publish(PublishError::TooLarge {
                bytes,
                max: Publisher::SAMPLE_BYTES_MAX,
            }));
        }
        // The `BytesIO` must own the only reference, or the first write would copy the bytes.
        let zeros = py.get_type::<PyBytes>().call1((bytes,))?;
        let memory = py.import("io")?.getattr("BytesIO")?.call1((zeros,))?.unbind();
        let shape = PyTuple::new(py, sides)?.unbind();
        Ok(Self { memory: Mutex::new(Some(memory)), shape, dtype: dtype.unbind(), bytes })
    }

    /// Takes the bytes out for publishing. Later calls return an error.
    pub(crate) fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let memory =
            self.memory.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        let memory = memory.ok_or_else(published)?.into_bound(py);
        Ok(memory.call_method0(intern!(py, "getvalue"))?.cast_into()?)
    }

    /// Returns the memory. The mutex is released before Python code runs, because that code may
    /// call back into this object.
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let memory = self.memory.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        memory.as_ref().map(|memory| memory.bind(py).clone()).ok_or_else(published)
    }
}

#[pymethods]
impl Loan {
    /// A new writable numpy array over the memory, with the requested shape and element type.
    /// Raises `ValueError` once the loan was published.
    #[getter]
    fn array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let buffer = self.buffer(py)?;
        py.import("numpy")?.getattr("ndarray")?.call1((&self.shape, &self.dtype, buffer))
    }

    /// A new writable `memoryview` of the bytes. Raises `ValueError` once the loan was published.
    #[getter]
    fn buffer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.memory(py)?.call_method0(intern!(py, "getbuffer"))
    }

    const fn __len__(&self) -> usize {
        self.bytes
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (shape, dtype) = (self.shape.bind(py).repr()?, self.dtype.bind(py).str()?);
        let end = if self.memory(py).is_ok() { "" } else { ", published" };
        Ok(format!("Loan({shape}, '{dtype}', {} bytes{end})", self.bytes))
    }
}

fn published() -> PyErr {
    errors::value("the loan was published: ask the publisher for another one".to_owned())
}

fn sides(shape: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let sides = shape.extract().or_else(|_| shape.extract().map(|length| vec![length]));
    let Ok(sides) = sides else {
        let shape = shape.repr()?;
        return Err(errors::wrong_type(format!(
            "shape={shape}: it must be {WHOLE}, or a tuple of such"
        )));
    };
    Ok(sides)
}

/// Returns the element type and its size in bytes.
fn element(dtype: Bound<'_, PyAny>) -> PyResult<(Bound<'_, PyAny>, usize)> {
    if dtype.cast::<PyString>().is_ok_and(|name| name == BYTE) {
        return Ok((dtype, 1));
    }
    let dtype = dtype.py().import("numpy")?.getattr("dtype")?.call1((dtype,))?;
    if dtype.getattr("hasobject")?.is_truthy()? {
        return Err(errors::wrong_type(format!(
            "dtype={dtype}: its elements are addresses in this process: ask for an array of numbers"
        )));
    }
    let bytes = dtype.getattr("itemsize")?.extract()?;
    Ok((dtype, bytes))
}
