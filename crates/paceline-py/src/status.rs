//! What a node has counted of one publisher or subscriber.

use crate::convert::{drops, hertz, mean_ms, to_ms};
use paceline::{PublisherStatus as Published, SubscriptionStatus as Subscribed};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What a publisher has published.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct PublisherStatus(pub(crate) Published);

/// What a subscriber has got.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct SubscriptionStatus(pub(crate) Subscribed);

#[pymethods]
impl PublisherStatus {
    #[getter]
    const fn published(&self) -> u64 {
        self.0.published
    }

    #[getter]
    fn rate_hz(&self) -> f64 {
        hertz(self.0.rate_millihertz)
    }

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
    #[getter]
    const fn delivered(&self) -> u64 {
        self.0.delivered
    }

    #[getter]
    const fn bytes(&self) -> u64 {
        self.0.bytes
    }

    #[getter]
    fn rate_hz(&self) -> f64 {
        hertz(self.0.rate_millihertz)
    }

    #[getter]
    const fn late(&self) -> u64 {
        self.0.late
    }

    /// The longest age of the samples that arrived in the last second or more.
    #[getter]
    fn age_max_ms(&self) -> f64 {
        to_ms(self.0.age_max)
    }

    /// The mean age of all samples delivered since the start; none before the first.
    #[getter]
    fn age_mean_ms(&self) -> Option<f64> {
        mean_ms(self.0.age_sum, self.0.delivered)
    }

    #[getter]
    fn dropped<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        drops(py, &self.0.drops)
    }

    /// The publishers that are heard now.
    #[getter]
    fn publishers(&self) -> Vec<String> {
        self.0.publishers.iter().map(ToString::to_string).collect()
    }

    /// Why others are not, in words.
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
