//! The answer no.

use crate::convert::to_ms;
use paceline::{Refusal as Told, RefusalReason};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// One publisher's stream that a subscription can't have.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Refusal(pub(crate) Told);

/// The word of a reason.
const fn word(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::Capacity => "capacity",
        RefusalReason::Deadlines { .. } => "deadlines",
        RefusalReason::Delay { .. } => "delay",
        RefusalReason::Processor { .. } => "processor",
        RefusalReason::NoAnswer => "no_answer",
        RefusalReason::SizeAboveSource { .. } => "size_above_source",
        _ => "other",
    }
}

#[pymethods]
impl Refusal {
    #[getter]
    fn publisher(&self) -> String {
        self.0.publisher.to_string()
    }

    /// The number of the request that it answers.
    #[getter]
    const fn revision(&self) -> u64 {
        self.0.revision
    }

    #[getter]
    fn subscription(&self) -> String {
        self.0.subscription.to_string()
    }

    #[getter]
    fn node(&self) -> &str {
        &self.0.node_name
    }

    #[getter]
    fn node_id(&self) -> String {
        self.0.node.to_string()
    }

    #[getter]
    fn link(&self) -> &str {
        &self.0.link
    }

    #[getter]
    const fn reason(&self) -> &'static str {
        word(self.0.reason)
    }

    #[getter]
    const fn needed_bytes_per_s(&self) -> u64 {
        self.0.needed_bytes_per_s
    }

    #[getter]
    const fn available_bytes_per_s(&self) -> u64 {
        self.0.available_bytes_per_s
    }

    /// What would be promised instead, each alone, as keyword arguments of a subscriber.
    #[getter]
    fn offers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let offer = &self.0.offer;
        let mut offers = Vec::new();
        let mut add = |name: &str, value: Bound<'py, PyAny>| {
            let dict = PyDict::new(py);
            dict.set_item(name, value).map(|()| offers.push(dict))
        };
        if let Some(rate) = offer.max_millihertz {
            #[expect(clippy::cast_precision_loss, reason = "rates end at 1,000,000 Hz")]
            let hertz = rate as f64 / 1_000.0;
            add("max_hz", hertz.into_pyobject(py)?.into_any())?;
        }
        if let Some(within) = offer.within {
            add("within_ms", to_ms(within.into()).into_pyobject(py)?.into_any())?;
        }
        if let Some(loss) = offer.loss {
            add("loss", (loss.x(), loss.y()).into_pyobject(py)?.into_any())?;
        }
        if let RefusalReason::SizeAboveSource { source, .. } = self.0.reason {
            add("size", (source.width, source.height).into_pyobject(py)?.into_any())?;
        }
        Ok(offers)
    }

    /// The first of the offers; empty if there is none.
    #[getter]
    fn offer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Ok(self.offers(py)?.into_iter().next().unwrap_or_else(|| PyDict::new(py)))
    }

    /// How large its samples might be at most, for the same contract: the publisher's to change.
    #[getter]
    const fn offer_bytes(&self) -> Option<u64> {
        self.0.offer.bytes
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Refusal('{}')", self.0)
    }
}
