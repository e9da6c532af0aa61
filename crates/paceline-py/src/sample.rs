//! A sample, as a subscriber or a pull gets it.

use crate::convert;
use crate::payload::Payload;
use crate::shape;
use paceline::Delivery;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyTuple};

/// One sample.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Sample(pub(crate) Delivery);

#[pymethods]
impl Sample {
    #[getter]
    fn tag(&self) -> &str {
        self.0.tag.as_str()
    }

    #[getter]
    fn publisher(&self) -> String {
        self.0.publisher.to_string()
    }

    #[getter]
    const fn seq(&self) -> u64 {
        self.0.seq
    }

    #[getter]
    const fn captured_ns(&self) -> u64 {
        self.0.captured.nanos
    }

    /// How far the publisher's clock may be off; none if nobody knows.
    #[getter]
    fn captured_error_us(&self) -> Option<u64> {
        let error = u32::from(self.0.captured.error);
        1_u64.checked_shl(error)
    }

    #[getter]
    fn age_ms(&self) -> f64 {
        convert::to_ms(self.0.age)
    }

    #[getter]
    const fn late(&self) -> bool {
        self.0.late
    }

    #[getter]
    fn kind(&self) -> String {
        self.0.kind.to_string()
    }

    #[getter]
    fn encoding(&self) -> &str {
        self.0.encoding.as_str()
    }

    /// The bytes, without a copy, read-only.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        let payload = Bound::new(py, Payload(self.0.payload.clone()))?;
        PyMemoryView::from(payload.as_any())
    }

    #[getter]
    fn attachment<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.attachment.as_ref().map(|bytes| PyBytes::new(py, bytes))
    }

    /// How numpy makes an array of it without a copy; it keeps this sample as long as the array lives.
    #[getter(__array_interface__)]
    fn array_interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let payload = &self.0.payload;
        let (shape, element) = shape::of(self.0.encoding.as_str(), payload.len());
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", PyTuple::new(py, shape)?)?;
        interface.set_item("typestr", element)?;
        let read_only = true;
        interface.set_item("data", (payload.as_ptr().addr(), read_only))?;
        Ok(interface)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.payload)
    }

    fn __len__(&self) -> usize {
        self.0.payload.len()
    }

    fn __repr__(&self) -> String {
        let Delivery { tag, seq, age, encoding, payload, .. } = &self.0;
        let age = convert::to_ms(*age);
        format!(
            "Sample('{tag}', seq={seq}, {} bytes, '{encoding}', age_ms={age:.3})",
            payload.len()
        )
    }
}
