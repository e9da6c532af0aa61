//! Subscriptions of any node, as every node knows them.

use crate::convert::to_ms;
use paceline::SubscriptionView as Inner;
use pyo3::prelude::*;

/// A subscription of any node.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct SubscriptionView(pub(crate) Inner);

#[pymethods]
impl SubscriptionView {
    #[getter]
    fn id(&self) -> String {
        self.0.id.to_string()
    }

    #[getter]
    fn node(&self) -> &str {
        &self.0.node
    }

    #[getter]
    fn pattern(&self) -> String {
        self.0.pattern.to_string()
    }

    /// The rate and size, in words.
    #[getter]
    fn form(&self) -> String {
        self.0.form.to_string()
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
    fn proxy(&self) -> String {
        self.0.proxy.to_string()
    }

    fn __repr__(&self) -> String {
        let Inner { id, node, pattern, form, .. } = &self.0;
        format!("SubscriptionView('{pattern}' at '{node}', {form}, id={id})")
    }
}
