//! Bytes across the border: of samples out, without a copy; of Python's objects in.

use crate::errors;
use crate::loan::Loan;
use bytes::Bytes;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView, PyString};
use std::ffi::c_int;

/// Bytes objects up to this length are copied: that is cheaper than to keep them.
const COPIED_MAX: usize = 4_096;

/// The bytes of a sample, for whatever takes a buffer. They are never copied and never change.
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
        // SAFETY: Python gives a `view` that may be written. `data` points to `len` bytes that nobody writes: they are
        // told to be read-only, and are part of this object, which the view keeps alive by a reference of its own.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), data, len, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// The bytes of what is to be published: `bytes` are kept as they are, as nobody can change them, and what a loan holds is
/// taken; of everything else that is a buffer the elements are copied once, in the order of their indices, contiguous or not.
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

/// Bytes that nobody can change, without a copy if they are many.
fn kept(bytes: Bound<'_, PyBytes>) -> Bytes {
    let slice = bytes.as_bytes();
    if slice.len() <= COPIED_MAX {
        return Bytes::copy_from_slice(slice);
    }
    Bytes::from_owner(PyBackedBytes::from(bytes))
}
