//! Conversion of payloads: received samples are exported without a copy, and Python objects are
//! imported.

use crate::errors;
use crate::loan::Loan;
use bytes::Bytes;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView, PyString};
use std::ffi::c_int;

/// Bytes objects up to this length are copied, which is cheaper than keeping a reference.
const COPIED_MAX: usize = 4_096;

/// The payload bytes of a sample, as a read-only buffer. Exporting it never copies.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Payload(pub(crate) Bytes);

#[pymethods]
impl Payload {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("Payload({} bytes)", self.0.len())
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0)
    }

    #[expect(
        unsafe_code,
        reason = "what Python calls a buffer is a pointer; there is no safe way to hand one out"
    )]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = &slf.get().0;
        let Ok(len) = ffi::Py_ssize_t::try_from(bytes.len()) else {
            return Err(errors::value(format!("{} bytes are more than a buffer has", bytes.len())));
        };
        let data = bytes.as_ptr().cast_mut().cast();
        // SAFETY: Python provides a writable `view`. `data` points to `len` bytes that are never
        // written: the view is marked read-only. The bytes belong to this object, and the view
        // keeps it alive with its own reference.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data, len, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// Returns the bytes of an object to publish. `bytes` objects are immutable and shared, and the
/// memory of a loan is taken over. The elements of any other buffer are copied once, in index
/// order, contiguous or not.
pub(crate) fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(kept(bytes.clone()));
    }
    if let Ok(loan) = object.cast::<Loan>() {
        return Ok(kept(loan.get().take(object.py())?));
    }
    if let Ok(payload) = object.cast::<Payload>() {
        return Ok(payload.get().0.clone());
    }
    if object.is_instance_of::<PyString>() {
        return Err(errors::wrong_type("payload is a str: publish text.encode()".to_owned()));
    }
    let Ok(view) = PyMemoryView::from(object) else {
        let kind = object.get_type().name()?;
        return Err(errors::wrong_type(format!(
            "payload is of type '{kind}': it must be bytes or an object with a buffer, such as bytearray, memoryview, \
             array.array or a numpy array"
        )));
    };
    let format: String = view.getattr("format")?.extract()?;
    if format.contains(['O', 'P', '&']) {
        return Err(errors::wrong_type(format!(
            "payload has elements of format '{format}', which are addresses in this process: publish an array of numbers"
        )));
    }
    let copied = view.call_method0("tobytes")?;
    Ok(Bytes::from_owner(PyBackedBytes::from(copied.cast_into::<PyBytes>()?)))
}

/// Wraps immutable bytes, without a copy if they are long.
fn kept(bytes: Bound<'_, PyBytes>) -> Bytes {
    let slice = bytes.as_bytes();
    if slice.len() <= COPIED_MAX {
        return Bytes::copy_from_slice(slice);
    }
    Bytes::from_owner(PyBackedBytes::from(bytes))
}
