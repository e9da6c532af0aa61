//! The counters of a subscription.

use super::by_reason;
use super::form;
use super::health::SubscriptionHealth;
use super::players::PlayersStatus;
use super::timed::TimedStatus;
use super::units::{hertz, in_hertz, maybe_micros, maybe_text, micros, text, texts};
use paceline_proto::control::{IMPORTANCE_DEFAULT, SubscriptionSpec};
use paceline_proto::{Drops, Form, Proxy, PublisherId, SubscriptionId};
use paceline_sched::LossTolerance;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The steps of an elastic contract.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Elastic"))]
pub struct ElasticStatus {
    /// Number of the current step in `ladder`, from 0.
    pub step: usize,
    /// Forms of all steps in words, from the most that is requested to the least that is accepted.
    pub ladder: Vec<String>,
}

impl ElasticStatus {
    /// Returns the steps of a request; `None` if it is not elastic.
    #[must_use]
    pub fn of(request: &SubscriptionSpec) -> Option<Self> {
        let (steps, step) = request.steps()?;
        Some(Self { step, ladder: steps.iter().map(ToString::to_string).collect() })
    }
}

const fn default_importance() -> u8 {
    IMPORTANCE_DEFAULT
}

/// The counters of a subscription.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Subscription"))]
pub struct SubscriptionStatus {
    /// Id of the subscription.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub id: SubscriptionId,
    /// Pattern of its tags.
    pub pattern: String,
    /// Requested form.
    #[serde(rename = "asked", with = "form")]
    #[cfg_attr(feature = "typescript", ts(type = "RequestedForm"))]
    pub form: Form,
    /// Steps of an elastic contract; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<ElasticStatus>", optional))]
    pub elastic: Option<ElasticStatus>,
    /// Importance of its contract, 0 to 100.
    #[serde(default = "default_importance")]
    pub importance: u8,
    /// Requested delay bound; null if none is requested.
    #[serde(rename = "within_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub within: Option<Duration>,
    /// Requested loss tolerance, such as `1/10`; null if none is requested.
    #[serde(with = "maybe_text")]
    #[cfg_attr(feature = "typescript", ts(type = "string | null"))]
    pub loss: Option<LossTolerance>,
    /// Place of the scaling: `publisher`, `subscriber`, `auto` or `node:NAME`.
    #[serde(with = "text")]
    #[cfg_attr(feature = "typescript", ts(type = "string"))]
    pub proxy: Proxy,
    /// Names of the nodes that scale the samples, one per publisher of `publishers`, in order.
    pub scaled_at: Vec<String>,
    /// Ids of the received publishers.
    #[serde(with = "texts")]
    #[cfg_attr(feature = "typescript", ts(type = "Array<string>"))]
    pub publishers: Vec<PublisherId>,
    /// Reasons of the publishers that refuse it, in words.
    pub refusals: Vec<String>,
    /// Samples since the start.
    pub delivered: u64,
    /// Payload bytes since the start.
    pub bytes: u64,
    /// Delivered samples per second, over the last second or more; in Rust in millihertz.
    #[serde(rename = "rate_hz", with = "hertz")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub rate_millihertz: u64,
    /// Samples that were older than `within` at their arrival, or when the application took them, since the start. The dropped
    /// ones of them also count in `dropped`.
    pub late: u64,
    /// The part of `late` that arrived in time: the samples waited in the process of the subscription, because it was slow or
    /// not scheduled.
    pub overdue: u64,
    /// Largest age of the samples that the application took in the last second or more, or that were dropped unread; zero
    /// without any. Samples that wait unread do not count yet.
    #[serde(rename = "age_max_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub age_max: Duration,
    /// Mean age of the same samples, at most the largest; null without any.
    #[serde(rename = "age_mean_us", with = "maybe_micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number | null"))]
    pub age_mean: Option<Duration>,
    /// Sum of the ages of all samples that the application took since the start. Divided by `delivered` it is their mean,
    /// apart from samples that wait unread.
    #[serde(rename = "age_sum_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub age_sum: Duration,
    /// Samples dropped at this node since the start.
    #[serde(with = "by_reason")]
    #[cfg_attr(feature = "typescript", ts(type = "Drops"))]
    pub dropped: Drops,
    /// Largest jitter of a publisher's samples at arrival, by RFC 3550: the running mean of the changes of their ages.
    #[serde(rename = "jitter_us", with = "micros")]
    #[cfg_attr(feature = "typescript", ts(type = "number"))]
    pub jitter: Duration,
    /// Samples that were published between two that arrived, but did not arrive. 0 unless every sample is requested.
    pub lost: u64,
    /// Delivery by time; null without one.
    pub timed: Option<TimedStatus>,
    /// The players of an RTSP server that share the subscription; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(as = "Option<PlayersStatus>", optional))]
    pub players: Option<PlayersStatus>,
    /// The requested, delivered and lost samples of the last seconds, and whether that is as requested.
    #[serde(default)]
    pub health: SubscriptionHealth,
}

impl SubscriptionStatus {
    /// Returns the requested form in words, with the step of an elastic contract.
    #[must_use]
    pub fn form_in_words(&self) -> String {
        match &self.elastic {
            Some(ElasticStatus { step, ladder }) => {
                format!("{} (step {} of {})", self.form, step + 1, ladder.len())
            }
            None => self.form.to_string(),
        }
    }

    /// Returns the rate in samples per second.
    #[must_use]
    pub fn rate_hz(&self) -> f64 {
        in_hertz(self.rate_millihertz)
    }
}
