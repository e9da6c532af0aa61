//! The counters of a stream on a link.

use super::counters::LinkCounters;
use super::form;
use super::units::{maybe_micros, maybe_text, micros, text};
use paceline_proto::link::StreamSpec;
use paceline_proto::{Form, NodeId, PublisherId, StreamAges};
use paceline_sched::LossTolerance;
use serde::{Deserialize, Serialize};
use std::net::SocketAddrV4;
use std::time::Duration;

/// The counters of a stream on a link.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Stream"))]
pub struct StreamStatus {
    /// Id of the publisher.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub publisher: PublisherId,
    /// Tag; null if the node does not know the publisher.
    pub tag: Option<String>,
    /// Requested form.
    #[serde(rename = "asked", with = "form")]
    #[cfg_attr(feature = "typescript", ts(type = "RequestedForm"))]
    pub form: Form,
    /// Id of the next node.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub hop: NodeId,
    /// True if it has a contract; false for best effort.
    pub contracted: bool,
    /// Contract of the stream on this link.
    pub contract: Option<StreamContract>,
    /// Sums of the ages of its samples.
    pub ages: SummedAges,
    /// The counters of its samples.
    #[serde(flatten)]
    pub counters: LinkCounters,
    /// Time from the last violation to the reading of the counters, with a resolution of 250 ms; null if there was none since
    /// the stream was opened.
    #[serde(rename = "broken_ago_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub broken_ago: Option<Duration>,
    /// Multicast group from which the hop receives it; null with unicast. Lost pieces are unicast in both cases.
    #[serde(with = "maybe_text")]
    #[cfg_attr(feature = "typescript", ts(type = "string | null"))]
    pub group: Option<SocketAddrV4>,
}

/// The contract of a stream on a link.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Contract"))]
pub struct StreamContract {
    /// Shortest time between two samples.
    #[serde(rename = "period_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub period: Duration,
    /// Longest time from the arrival of a sample at the link to the end of its transmission.
    #[serde(rename = "deadline_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub deadline: Duration,
    /// Loss tolerance, such as `1/10`.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub loss: LossTolerance,
    /// Reserved rate; 0 if it is unknown.
    pub bits_per_s: u64,
}

/// The ages of a stream's samples at a link, as sums since the stream was opened.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Ages"))]
pub struct SummedAges {
    /// Samples that the link accepted.
    pub entered: u64,
    /// Sum of their ages at that time.
    #[serde(rename = "entered_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub entered_age: Duration,
    /// Sum of the ages of the sent samples when they left the link.
    #[serde(rename = "left_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub left_age: Duration,
}

impl StreamContract {
    /// Returns the contract of a stream; `None` for best effort.
    #[must_use]
    pub fn of(spec: &StreamSpec) -> Option<Self> {
        let contract = spec.contract.as_ref()?;
        Some(Self {
            period: contract.period.into(),
            deadline: contract.deadline.into(),
            loss: contract.loss,
            bits_per_s: spec.demand.map_or(0, |demand| demand.bytes_per_s.saturating_mul(8)),
        })
    }
}

impl SummedAges {
    /// Adds other sums to these.
    pub fn merge(&mut self, other: &Self) {
        self.entered = self.entered.saturating_add(other.entered);
        self.entered_age = self.entered_age.saturating_add(other.entered_age);
        self.left_age = self.left_age.saturating_add(other.left_age);
    }
}

impl From<StreamAges> for SummedAges {
    fn from(StreamAges { entered, entered_ns, left_ns }: StreamAges) -> Self {
        let [entered_age, left_age] = [entered_ns, left_ns].map(Duration::from_nanos);
        Self { entered, entered_age, left_age }
    }
}
