//! Positive admission answers.

use crate::time::to_ms;
use paceline::contract::{Grant as Told, GrantedHop as Hop};
use pyo3::prelude::*;

/// The contract on one publisher's samples, in force as long as it is reserved.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Grant(pub(crate) Told);

/// The reservation on one node of a path.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct GrantedHop(Hop);

#[pymethods]
impl Grant {
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

    /// The granted rate and size, as text.
    #[getter]
    fn form(&self) -> String {
        self.0.form.to_string()
    }

    /// The largest rate in hertz; `None` without one.
    #[getter]
    fn max_hz(&self) -> Option<f64> {
        self.0.form.rate.max_hz()
    }

    /// The id of the subscription.
    #[getter]
    fn subscription(&self) -> String {
        self.0.subscription.to_string()
    }

    /// True if the reserved traffic was learned from the last minute and not declared.
    #[getter]
    const fn learned(&self) -> bool {
        self.0.learned
    }

    /// The end-to-end delay bound that the path guarantees, in milliseconds.
    #[getter]
    fn bound_ms(&self) -> f64 {
        to_ms(self.0.bound.into())
    }

    /// The requested delay bound in milliseconds; `None` without one.
    #[getter]
    fn within_ms(&self) -> Option<f64> {
        self.0.within.map(|within| to_ms(within.into()))
    }

    /// The reservations along the path, from the publisher's node to the last one before the
    /// subscription's node.
    #[getter]
    fn hops(&self) -> Vec<GrantedHop> {
        self.0.hops.iter().cloned().map(GrantedHop).collect()
    }

    /// The reservations along the path of the spare; empty without one.
    #[getter]
    fn spare(&self) -> Vec<GrantedHop> {
        self.0.spare.iter().cloned().map(GrantedHop).collect()
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
    /// The name of the node.
    #[getter]
    fn node(&self) -> &str {
        &self.0.node_name
    }

    /// The id of the node.
    #[getter]
    fn node_id(&self) -> String {
        self.0.node.to_string()
    }

    /// The name of the link.
    #[getter]
    fn link(&self) -> &str {
        &self.0.link
    }

    /// The link's capacity in bits per second; `None` if the link has none.
    #[getter]
    fn capacity_bits_per_s(&self) -> Option<u64> {
        self.0.capacity.map(paceline::Capacity::bits_per_s)
    }

    /// The reserved rate in bytes per second, headers included, less the share that the loss
    /// tolerance permits to drop.
    #[getter]
    const fn bytes_per_s(&self) -> u64 {
        self.0.bytes_per_s
    }

    /// The reserved burst in bytes.
    #[getter]
    const fn burst_bytes(&self) -> u64 {
        self.0.burst
    }

    /// The delay bound of this hop in milliseconds.
    #[getter]
    fn bound_ms(&self) -> f64 {
        to_ms(self.0.bound.into())
    }

    /// True if the processor is reserved for the node: its threads have real-time priorities.
    #[getter]
    const fn realtime(&self) -> bool {
        self.0.realtime
    }

    fn __repr__(&self) -> String {
        let Hop { node_name, link, bytes_per_s, .. } = &self.0;
        format!("GrantedHop('{node_name}', '{link}', bytes_per_s={bytes_per_s})")
    }
}
