//! The answer yes.

use crate::convert::to_ms;
use paceline::{Grant as Told, GrantedHop as Hop};
use pyo3::prelude::*;

/// What is promised of one publisher's samples, as long as it is held.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Grant(pub(crate) Told);

/// What one node of the path holds.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct GrantedHop(Hop);

#[pymethods]
impl Grant {
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
    fn bound_ms(&self) -> f64 {
        to_ms(self.0.bound.into())
    }

    #[getter]
    fn within_ms(&self) -> Option<f64> {
        self.0.within.map(|within| to_ms(within.into()))
    }

    #[getter]
    fn hops(&self) -> Vec<GrantedHop> {
        self.0.hops.iter().cloned().map(GrantedHop).collect()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Grant('{}')", self.0)
    }
}

#[pymethods]
impl GrantedHop {
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
    fn capacity_bits_per_s(&self) -> Option<u64> {
        self.0.capacity.map(paceline::Capacity::bits_per_s)
    }

    #[getter]
    const fn bytes_per_s(&self) -> u64 {
        self.0.bytes_per_s
    }

    #[getter]
    const fn burst_bytes(&self) -> u64 {
        self.0.burst
    }

    #[getter]
    fn bound_ms(&self) -> f64 {
        to_ms(self.0.bound.into())
    }

    fn __repr__(&self) -> String {
        let Hop { node_name, link, bytes_per_s, .. } = &self.0;
        format!("GrantedHop('{node_name}', '{link}', bytes_per_s={bytes_per_s})")
    }
}
