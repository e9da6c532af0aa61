//! Feedback from subscribers to a publisher.

use crate::convert::{hertz, mean_ms};
use crate::grant::Grant;
use crate::refusal::Refusal;
use crate::time::to_ms;
use paceline::status::{Feedback as Told, Measured as Counted};
use pyo3::prelude::*;

/// The request, the contract and the measurements of one subscription.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Feedback(pub(crate) Told);

/// Measurements of a subscription by its node, over all publishers that it receives.
#[pyclass(frozen, module = "paceline")]
pub(crate) struct Measured(Counted);

#[pymethods]
impl Feedback {
    /// The id of the subscription.
    #[getter]
    fn subscription(&self) -> String {
        self.0.subscription.to_string()
    }

    /// The name of its node.
    #[getter]
    fn node(&self) -> &str {
        &self.0.node
    }

    /// The requested rate and size that the publisher can provide, as text.
    #[getter]
    fn form(&self) -> String {
        self.0.form.to_string()
    }

    /// The expected time between samples in milliseconds; `None` if it is unknown.
    #[getter]
    fn period_ms(&self) -> Option<f64> {
        self.0.period.map(to_ms)
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

    /// The contract in force; `None` for best effort.
    #[getter]
    fn grant(&self) -> Option<Grant> {
        self.0.grant.clone().map(Grant)
    }

    /// The refusal; `None` if the subscription was not refused.
    #[getter]
    fn refusal(&self) -> Option<Refusal> {
        self.0.refusal.clone().map(Refusal)
    }

    /// The node's measurements; `None` if the node did not answer in time.
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

    /// The number of samples that were older than the delay bound at their arrival, or when the application took them.
    #[getter]
    const fn late(&self) -> u64 {
        self.0.late
    }

    /// The part of `late` that arrived in time: the samples waited in the process of the subscription.
    #[getter]
    const fn overdue(&self) -> u64 {
        self.0.overdue
    }

    /// The number of samples dropped at the subscription's node. Drops on earlier links are not
    /// included.
    #[getter]
    const fn dropped(&self) -> u64 {
        self.0.dropped
    }

    /// The delivery rate over the last second or more, in samples per second.
    #[getter]
    fn rate_hz(&self) -> f64 {
        hertz(self.0.rate_millihertz)
    }

    /// The greatest age of the samples that the application took in the last second or more, in milliseconds.
    #[getter]
    fn age_max_ms(&self) -> f64 {
        to_ms(self.0.age_max)
    }

    /// The mean age of all samples delivered, in milliseconds; `None` before the first.
    #[getter]
    fn age_mean_ms(&self) -> Option<f64> {
        mean_ms(self.0.age_sum, self.0.delivered)
    }

    /// The number of RTSP players that share the subscription; `None` without a server of players.
    #[getter]
    fn players(&self) -> Option<u64> {
        self.0.players.map(|players| players.players)
    }

    /// The number of RTP packets that these players reported as lost; `None` without a server of players.
    #[getter]
    fn players_lost(&self) -> Option<u64> {
        self.0.players.map(|players| players.lost)
    }

    fn __repr__(&self) -> String {
        let Counted { delivered, late, dropped, .. } = self.0;
        format!("Measured(delivered={delivered}, late={late}, dropped={dropped})")
    }
}
