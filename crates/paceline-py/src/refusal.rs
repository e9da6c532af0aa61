//! Negative admission answers.

use crate::time::to_ms;
use paceline::contract::{Refusal as Told, RefusalReason};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A negative admission answer for one publisher's stream.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Refusal(pub(crate) Told);

const fn word(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::Capacity => "capacity",
        RefusalReason::Deadlines { .. } => "deadlines",
        RefusalReason::Delay { .. } => "delay",
        RefusalReason::Processor { .. } => "processor",
        RefusalReason::Buffer { .. } => "buffer",
        RefusalReason::HostBuffer { .. } => "host_buffer",
        RefusalReason::NoGuarantee { .. } => "no_guarantee",
        RefusalReason::NoAnswer => "no_answer",
        RefusalReason::SizeAboveSource { .. } => "size_above_source",
        RefusalReason::Unscalable { .. } => "unscalable",
        RefusalReason::BitRate { .. } => "bit_rate",
        RefusalReason::Medium { .. } => "medium",
        RefusalReason::Unthinnable { .. } => "unthinnable",
        RefusalReason::Rights { .. } => "rights",
        RefusalReason::Unencrypted => "unencrypted",
        RefusalReason::Opposite { .. } => "opposite",
        RefusalReason::NoProxy { .. } => "no_proxy",
        RefusalReason::NoSecondPath { .. } | RefusalReason::SpareMeets { .. } => "no_second_path",
        RefusalReason::TooManySpares => "too_many_spares",
        _ => "other",
    }
}

#[pymethods]
impl Refusal {
    /// The id of the publisher.
    #[getter]
    fn publisher(&self) -> String {
        self.0.publisher.to_string()
    }

    /// The number of the request that it answers; 0 is the first one.
    #[getter]
    const fn revision(&self) -> u64 {
        self.0.revision
    }

    /// The id of the subscription.
    #[getter]
    fn subscription(&self) -> String {
        self.0.subscription.to_string()
    }

    /// The name of the node that refused.
    #[getter]
    fn node(&self) -> &str {
        &self.0.node_name
    }

    /// The id of the node that refused.
    #[getter]
    fn node_id(&self) -> String {
        self.0.node.to_string()
    }

    /// The link that cannot carry the stream; empty if no link is the reason.
    #[getter]
    fn link(&self) -> &str {
        &self.0.link
    }

    /// The reason as a word: `capacity`, `deadlines`, `delay`, `processor`, `buffer`, `host_buffer`,
    /// `no_guarantee`, `no_answer`, `size_above_source`, `unscalable`, `bit_rate`, `unthinnable`, `opposite`,
    /// `no_second_path`, `too_many_spares` or `other`.
    #[getter]
    const fn reason(&self) -> &'static str {
        word(self.0.reason)
    }

    /// True if the second path of a request with a spare is refused.
    #[getter]
    const fn spare(&self) -> bool {
        self.0.spare
    }

    /// The rate that the stream needs, in bytes per second.
    #[getter]
    const fn needed_bytes_per_s(&self) -> u64 {
        self.0.needed_bytes_per_s
    }

    /// The rate that is available, in bytes per second.
    #[getter]
    const fn available_bytes_per_s(&self) -> u64 {
        self.0.available_bytes_per_s
    }

    /// The contracts that would be granted instead, as keyword arguments of a subscriber. Each
    /// suffices alone.
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
        if let Some(size) = offer.size {
            add("size", (size.width, size.height).into_pyobject(py)?.into_any())?;
        }
        if let Some(bitrate) = offer.bitrate {
            add("bitrate", bitrate.get().into_pyobject(py)?.into_any())?;
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
        if let (true, [rate, size, ..]) = (offer.together, &offers[..]) {
            rate.update(size.as_mapping())?;
            offers.remove(1);
        }
        Ok(offers)
    }

    /// The first of `offers`; empty if there is none.
    #[getter]
    fn offer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Ok(self.offers(py)?.into_iter().next().unwrap_or_else(|| PyDict::new(py)))
    }

    /// The largest sample size in bytes that the same contract admits. Only the publisher can
    /// change it.
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
