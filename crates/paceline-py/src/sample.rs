//! Samples, as received by subscribers and pulls.

use crate::payload::Payload;
use crate::shape;
use crate::time;
use paceline::Sample as Inner;
use paceline::delivery::{Actuation, Placement};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyTuple};
use std::time::Instant;

/// One received sample.
///
/// `numpy.asarray(sample)` returns an array over the received bytes, without a copy. A raw picture
/// or linear audio gets its natural shape.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Sample(pub(crate) Inner);

#[pymethods]
impl Sample {
    /// The tag on which the sample was published.
    #[getter]
    fn tag(&self) -> &str {
        self.0.tag.as_str()
    }

    /// The id of the publisher.
    #[getter]
    fn publisher(&self) -> String {
        self.0.publisher.to_string()
    }

    /// The publisher's sequence number.
    #[getter]
    const fn seq(&self) -> u64 {
        self.0.seq
    }

    /// The capture time by the publisher's clock, in nanoseconds since 1970 UTC.
    #[getter]
    const fn captured_ns(&self) -> u64 {
        self.0.captured.nanos
    }

    /// The error bound of the publisher's clock, in microseconds; `None` if it is unknown.
    #[getter]
    fn captured_error_us(&self) -> Option<u64> {
        let error = u32::from(self.0.captured.error);
        1_u64.checked_shl(error)
    }

    /// The time from publish to delivery, in milliseconds.
    #[getter]
    fn age_ms(&self) -> f64 {
        time::to_ms(self.0.age)
    }

    /// True if `age_ms` exceeded the delay bound.
    #[getter]
    const fn late(&self) -> bool {
        self.0.late
    }

    /// The time in milliseconds for which the command may still act; `None` without an age limit.
    #[getter]
    fn fresh_ms(&self) -> Option<f64> {
        match self.0.actuation? {
            Actuation::Command { until } => {
                Some(time::to_ms(until.saturating_duration_since(Instant::now())))
            }
            Actuation::Safe => None,
        }
    }

    /// True for the safe action that follows the last command of an age limit.
    #[getter]
    fn safe(&self) -> bool {
        self.0.actuation == Some(Actuation::Safe)
    }

    /// The place in the order of times: in_order, unknown or late; `None` without an order.
    #[getter]
    fn order(&self) -> Option<&'static str> {
        self.0.placement.map(|place| match place {
            Placement::InOrder => "in_order",
            Placement::Unknown => "unknown",
            Placement::Late => "late",
        })
    }

    /// The kind of the sample: data, state, picture, audio, or the picture type of a video frame.
    #[getter]
    fn kind(&self) -> String {
        self.0.kind.to_string()
    }

    /// The media type of the payload.
    #[getter]
    fn encoding(&self) -> &str {
        self.0.encoding.as_str()
    }

    /// The payload as a read-only `memoryview`, without a copy.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        let payload = Bound::new(py, Payload(self.0.payload.clone()))?;
        PyMemoryView::from(payload.as_any())
    }

    /// The bytes that the publisher attached to the sample; `None` without an attachment.
    #[getter]
    fn attachment<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.attachment.as_ref().map(|bytes| PyBytes::new(py, bytes))
    }

    /// numpy's array interface. The array shares the sample's memory and keeps the sample alive.
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
        let Inner { tag, seq, age, encoding, payload, .. } = &self.0;
        let age = time::to_ms(*age);
        format!(
            "Sample('{tag}', seq={seq}, {} bytes, '{encoding}', age_ms={age:.3})",
            payload.len()
        )
    }
}
