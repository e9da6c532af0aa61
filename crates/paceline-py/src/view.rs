//! Subscriptions of any node.

use crate::time::to_ms;
use paceline::status::SubscriptionView as Inner;
use pyo3::prelude::*;

/// A subscription of any node, as announced to all nodes.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct SubscriptionView(pub(crate) Inner);

#[pymethods]
impl SubscriptionView {
    /// The id of the subscription.
    #[getter]
    fn id(&self) -> String {
        self.0.id.to_string()
    }

    /// The name of its node.
    #[getter]
    fn node(&self) -> &str {
        &self.0.node
    }

    /// The tag or pattern to which it subscribes.
    #[getter]
    fn pattern(&self) -> String {
        self.0.pattern.to_string()
    }

    /// The requested rate and size, as text.
    #[getter]
    fn form(&self) -> String {
        self.0.form.to_string()
    }

    /// The requested delay bound in milliseconds; `None` without one.
    #[getter]
    fn within_ms(&self) -> Option<f64> {
        self.0.within.map(to_ms)
    }

    /// The requested loss tolerance (x, y); `None` without one.
    #[getter]
    fn loss(&self) -> Option<(u32, u32)> {
        self.0.loss.map(|loss| (loss.x(), loss.y()))
    }

    /// The place of the scaling: `publisher` or `subscriber`.
    #[getter]
    fn proxy(&self) -> String {
        self.0.proxy.to_string()
    }

    fn __repr__(&self) -> String {
        let Inner { id, node, pattern, form, .. } = &self.0;
        format!("SubscriptionView('{pattern}' at '{node}', {form}, id={id})")
    }
}
