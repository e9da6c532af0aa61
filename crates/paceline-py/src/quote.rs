//! Admission answers without a reservation.

use crate::grant::Grant;
use crate::refusal::Refusal;
use crate::time::to_ms;
use paceline::contract::Quote as Told;
use pyo3::prelude::*;

/// The admission answer that a path would give now for one publisher's samples.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Quote(pub(crate) Told);

#[pymethods]
impl Quote {
    /// The id of the publisher.
    #[getter]
    fn publisher(&self) -> String {
        self.0.publisher.to_string()
    }

    /// The tag of the publisher.
    #[getter]
    fn tag(&self) -> &str {
        self.0.tag.as_str()
    }

    /// The name of the publisher's node.
    #[getter]
    fn node(&self) -> &str {
        &self.0.node
    }

    /// True if every node of the path answered within half a second.
    #[getter]
    const fn complete(&self) -> bool {
        self.0.complete
    }

    /// True if every node of the path would admit the stream.
    #[getter]
    const fn granted(&self) -> bool {
        self.0.is_granted()
    }

    /// The contract that would be granted; `None` if the samples would be best effort.
    #[getter]
    fn grant(&self) -> Option<Grant> {
        self.0.grant.clone().map(Grant)
    }

    /// The step of an elastic contract that the answer is for, from 0 for the most that is requested; `None` if the request
    /// is not elastic.
    #[getter]
    const fn step(&self) -> Option<usize> {
        self.0.step
    }

    /// The refusal that a subscription would receive; `None` if nothing prevents it.
    #[getter]
    fn refusal(&self) -> Option<Refusal> {
        self.0.refusal.clone().map(Refusal)
    }

    /// The contract of the stream of `with_tag` that would be granted together with this one; `None` without such a
    /// stream, or if it would be best effort.
    #[getter]
    fn opposite_grant(&self) -> Option<Grant> {
        self.0.opposite.as_ref().and_then(|it| it.grant.clone()).map(Grant)
    }

    /// The refusal of the stream of `with_tag`; `None` if nothing prevents it.
    #[getter]
    fn opposite_refusal(&self) -> Option<Refusal> {
        self.0.opposite.as_ref().and_then(|it| it.refusal.clone()).map(Refusal)
    }

    /// The delay that the period of the samples suggests, in milliseconds: one period on each hop. It is an
    /// estimate; `None` if the publisher declares no period.
    #[getter]
    fn estimate_ms(&self) -> Option<f64> {
        self.0.estimate.map(|estimate| to_ms(estimate.delay().into()))
    }

    fn __repr__(&self) -> String {
        format!(
            "Quote('{}', granted={})",
            self.0.tag,
            if self.granted() { "True" } else { "False" }
        )
    }
}
