//! Counters of one publisher or subscriber.

use crate::convert::{drops, mean_ms};
use crate::time::to_ms;
use paceline::status::{PublisherStatus as Published, SubscriptionStatus as Subscribed};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Counters of one publisher.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct PublisherStatus(pub(crate) Published);

/// Counters of one subscriber.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct SubscriptionStatus(pub(crate) Subscribed);

#[pymethods]
impl PublisherStatus {
    /// The number of samples published.
    #[getter]
    const fn published(&self) -> u64 {
        self.0.published
    }

    /// The publishing rate over the last second or more, in samples per second.
    #[getter]
    fn rate_hz(&self) -> f64 {
        self.0.rate_hz()
    }

    /// True if any subscription, on any node, matches the tag.
    #[getter]
    const fn matching(&self) -> bool {
        self.0.matching
    }

    fn __repr__(&self) -> String {
        format!("PublisherStatus(published={}, rate_hz={:.3})", self.0.published, self.rate_hz())
    }
}

#[pymethods]
impl SubscriptionStatus {
    /// The number of samples delivered.
    #[getter]
    const fn delivered(&self) -> u64 {
        self.0.delivered
    }

    /// The number of payload bytes delivered.
    #[getter]
    const fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// The delivery rate over the last second or more, in samples per second.
    #[getter]
    fn rate_hz(&self) -> f64 {
        self.0.rate_hz()
    }

    /// The number of samples that were older than the delay bound at their arrival, or when the application took them.
    #[getter]
    const fn late(&self) -> u64 {
        self.0.late
    }

    /// The part of `late` that arrived in time: the samples waited in this process.
    #[getter]
    const fn overdue(&self) -> u64 {
        self.0.overdue
    }

    /// The greatest age of the samples that the application took in the last second or more, in milliseconds.
    #[getter]
    fn age_max_ms(&self) -> f64 {
        to_ms(self.0.age_max)
    }

    /// The mean age of all samples delivered since the start, in milliseconds; `None` before the
    /// first.
    #[getter]
    fn age_mean_ms(&self) -> Option<f64> {
        mean_ms(self.0.age_sum, self.0.delivered)
    }

    /// The number of samples dropped, by reason.
    #[getter]
    fn dropped<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        drops(py, &self.0.dropped)
    }

    /// The ids of the publishers that the subscriber receives now.
    #[getter]
    fn publishers(&self) -> Vec<String> {
        self.0.publishers.iter().map(ToString::to_string).collect()
    }

    /// The reasons why other publishers are not received, as text.
    #[getter]
    fn refusals(&self) -> Vec<String> {
        self.0.refusals.clone()
    }

    fn __repr__(&self) -> String {
        let Subscribed { delivered, late, .. } = &self.0;
        format!(
            "SubscriptionStatus(delivered={delivered}, rate_hz={:.3}, late={late})",
            self.rate_hz()
        )
    }
}
