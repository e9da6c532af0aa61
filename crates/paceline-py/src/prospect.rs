//! Whether a subscription would be granted now.

use crate::grant::Grant;
use crate::refusal::Refusal;
use paceline::Prospect as Told;
use pyo3::prelude::*;

/// What a path would say of one publisher's samples.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Prospect(pub(crate) Told);

#[pymethods]
impl Prospect {
    #[getter]
    fn publisher(&self) -> String {
        self.0.publisher.to_string()
    }

    #[getter]
    fn tag(&self) -> &str {
        self.0.tag.as_str()
    }

    #[getter]
    fn node(&self) -> &str {
        &self.0.node
    }

    #[getter]
    const fn complete(&self) -> bool {
        self.0.complete
    }

    #[getter]
    const fn granted(&self) -> bool {
        self.0.is_granted()
    }

    #[getter]
    fn grant(&self) -> Option<Grant> {
        self.0.grant.clone().map(Grant)
    }

    #[getter]
    fn refusal(&self) -> Option<Refusal> {
        self.0.refusal.clone().map(Refusal)
    }

    fn __repr__(&self) -> String {
        format!(
            "Prospect('{}', granted={})",
            self.0.tag,
            if self.granted() { "True" } else { "False" }
        )
    }
}
