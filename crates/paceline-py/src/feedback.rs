//! What becomes of a publisher's samples at those who asked for them.

use crate::convert::{hertz, mean_ms, to_ms};
use crate::grant::Grant;
use crate::refusal::Refusal;
use paceline::{Feedback as Told, Measured as Counted};
use pyo3::prelude::*;

/// What one subscription asked for, what was granted to it, and what it gets.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Feedback(pub(crate) Told);

/// What a subscription's node counted, of all publishers that it hears.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Measured(Counted);

#[pymethods]
impl Feedback {
    #[getter]
    fn subscription(&self) -> String {
        self.0.subscription.to_string()
    }

    #[getter]
    fn node(&self) -> &str {
        &self.0.node
    }

    /// The rate and size, in words.
    #[getter]
    fn form(&self) -> String {
        self.0.form.to_string()
    }

    #[getter]
    fn period_ms(&self) -> Option<f64> {
        self.0.period.map(to_ms)
    }

    #[getter]
    fn within_ms(&self) -> Option<f64> {
        self.0.within.map(to_ms)
    }

    #[getter]
    fn loss(&self) -> Option<(u32, u32)> {
        self.0.loss.map(|loss| (loss.x(), loss.y()))
    }

    #[getter]
    fn grant(&self) -> Option<Grant> {
        self.0.grant.clone().map(Grant)
    }

    #[getter]
    fn refusal(&self) -> Option<Refusal> {
        self.0.refusal.clone().map(Refusal)
    }

    #[getter]
    fn measured(&self) -> Option<Measured> {
        self.0.measured.map(Measured)
    }

    fn __repr__(&self) -> String {
        format!("Feedback('{}', form='{}')", self.0.node, self.0.form)
    }
}

#[pymethods]
impl Measured {
    #[getter]
    const fn delivered(&self) -> u64 {
        self.0.delivered
    }

    #[getter]
    const fn bytes(&self) -> u64 {
        self.0.bytes
    }

    #[getter]
    const fn late(&self) -> u64 {
        self.0.late
    }

    #[getter]
    const fn dropped(&self) -> u64 {
        self.0.dropped
    }

    #[getter]
    fn rate_hz(&self) -> f64 {
        hertz(self.0.rate_millihertz)
    }

    #[getter]
    fn age_max_ms(&self) -> f64 {
        to_ms(self.0.age_max)
    }

    /// The mean age of all samples delivered; none before the first.
    #[getter]
    fn age_mean_ms(&self) -> Option<f64> {
        mean_ms(self.0.age_sum, self.0.delivered)
    }

    fn __repr__(&self) -> String {
        let Counted { delivered, late, dropped, .. } = self.0;
        format!("Measured(delivered={delivered}, late={late}, dropped={dropped})")
    }
}
