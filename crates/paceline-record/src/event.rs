//! The events on `qos/events`, one JSON object per message (docs/reference/json.md).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The topic of events.
pub const EVENTS_TOPIC: &str = "qos/events";
/// The schema name of events.
pub const EVENTS_SCHEMA: &str = "paceline.QosEvent";

/// The request, which is the same for all streams of a recording.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Asked {
    /// Rate and size, as text.
    pub form: String,
    /// `n` if one sample in `n` was requested.
    pub every: Option<u32>,
    /// The maximum rate in samples per second.
    pub max_hz: Option<f64>,
    /// The width of pictures in pixels.
    pub width: Option<u32>,
    /// The height of pictures in pixels.
    pub height: Option<u32>,
    /// The delay bound in microseconds.
    pub within_us: Option<u64>,
    /// The loss tolerance, x/y.
    pub loss: Option<String>,
    /// The age limit of commands in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_us: Option<u64>,
}

/// One node of a path, and the reservation on it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RecordedHop {
    /// The name of the node.
    pub name: String,
    /// Its link to the next node.
    pub link: String,
    /// The reserved rate in bits per second; 0 in [`RecordedEvent::Path`].
    pub bits_per_s: u64,
    /// The delay bound of this hop in microseconds; 0 in [`RecordedEvent::Path`].
    pub bound_us: u64,
    /// The capacity of the link in bits per second; null without one, and in recordings of earlier versions.
    #[serde(default)]
    pub capacity_bits_per_s: Option<u64>,
}

/// The contracts that would be granted instead of a refused one. Each suffices alone, unless `together` is set.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RecordedOffer {
    /// A lower rate, in samples per second.
    pub max_hz: Option<f64>,
    /// A smaller size of pictures, such as 160x120.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// True if the rate and the size are one alternative.
    #[serde(default)]
    pub together: bool,
    /// A lower bit rate, in bits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bitrate: Option<u32>,
    /// A smaller maximum sample size at the publisher, in bytes.
    pub bytes: Option<u64>,
    /// A longer delay bound, in microseconds.
    pub within_us: Option<u64>,
    /// A larger loss tolerance, x/y.
    pub loss: Option<String>,
}

/// Ages at delivery, in microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct AgeQuantiles {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The maximum.
    pub max: u64,
}

/// Statistics of one publisher's samples since the start of the recording.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct DeliveryStatistics {
    /// The tag.
    pub tag: String,
    /// The id of the publisher.
    pub publisher: String,
    /// The number of samples recorded.
    pub samples: u64,
    /// The number of payload bytes recorded.
    pub bytes: u64,
    /// The rate in samples per second: over the last second, and in the final event over the whole
    /// recording.
    pub rate_hz: f64,
    /// The number of samples later than the delay bound.
    pub late: u64,
    /// The number of missing sequence numbers. Unknown if the request did not cover every sample.
    pub missing: Option<u64>,
    /// The number of windows with more late or missing samples than the loss tolerance allows.
    /// Unknown without one.
    pub beyond: Option<u64>,
    /// The ages of the samples.
    pub age_us: AgeQuantiles,
}

/// The decisions on commands with an age limit, since the start of the recording.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct DecisionCounts {
    /// Commands that were provably young enough.
    pub released: u64,
    /// Commands that were not, and were dropped.
    pub stale: u64,
    /// Starts of the safe action.
    pub silences: u64,
    /// Starts and ends of the safe action that are not listed as events, because there were too many.
    pub unlisted: u64,
}

/// An event of a recording.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RecordedEvent {
    /// The recording starts.
    Begin {
        /// The version of the recorder.
        version: String,
        /// The id of the recording node.
        node: String,
        /// The name of the recording node.
        name: String,
        /// The recorded patterns.
        patterns: Vec<String>,
        /// The request.
        asked: Asked,
    },
    /// The request changes.
    Changed {
        /// The pattern.
        pattern: String,
        /// The new request.
        asked: Asked,
    },
    /// A publisher appeared.
    Joined {
        /// Its tag.
        tag: String,
        /// Its id.
        publisher: String,
        /// The name of its node.
        node: String,
        /// The declared period in microseconds.
        period_us: Option<u64>,
    },
    /// The path of a publisher's samples, or the capacity of a link on it, was found or changed. Also without a contract.
    Path {
        /// The tag.
        tag: String,
        /// The id of the publisher.
        publisher: String,
        /// The nodes with their links, starting at the publisher's node.
        hops: Vec<RecordedHop>,
    },
    /// A publisher left.
    Left {
        /// Its tag.
        tag: String,
        /// Its id.
        publisher: String,
    },
    /// The request was granted.
    Granted {
        /// The tag.
        tag: String,
        /// The id of the publisher.
        publisher: String,
        /// The requested delay bound in microseconds.
        within_us: Option<u64>,
        /// The guaranteed end-to-end delay bound in microseconds.
        bound_us: u64,
        /// The reservations, starting at the publisher's node.
        hops: Vec<RecordedHop>,
    },
    /// The request was refused.
    Refused {
        /// The tag.
        tag: String,
        /// The id of the publisher.
        publisher: String,
        /// The reason, as text.
        reason: String,
        /// The contracts that would be granted instead.
        offer: RecordedOffer,
    },
    /// A sequence number gap.
    Gap {
        /// The tag.
        tag: String,
        /// The id of the publisher.
        publisher: String,
        /// The last sequence number before the gap.
        after: u64,
        /// The number of missing sequence numbers.
        missing: u64,
    },
    /// Statistics, once per second and at the end.
    Delivered(DeliveryStatistics),
    /// The last command of a tag reached the age limit: a safe action would start. At most 20 of these and of the next
    /// kind per second are listed.
    Silent {
        /// The tag.
        tag: String,
        /// The id of the publisher of the last command.
        publisher: String,
        /// The sequence number of the last command.
        seq: u64,
    },
    /// A command was released after a silence: the safe action has ended.
    Resumed {
        /// The tag.
        tag: String,
        /// The id of the publisher of the command.
        publisher: String,
        /// The sequence number of the command.
        seq: u64,
        /// The time since the safe action started, in microseconds.
        silent_us: u64,
    },
    /// The decisions on commands since the start, at most once per second.
    Decisions(DecisionCounts),
    /// Samples dropped at the recorder since the start.
    Dropped {
        /// The number of samples, by reason.
        dropped: BTreeMap<String, u64>,
    },
    /// Statistics of a link for a publisher's samples during the recording.
    Link {
        /// The tag.
        tag: String,
        /// The id of the publisher.
        publisher: String,
        /// The name of the node.
        node: String,
        /// The link.
        link: String,
        /// The number of samples offered to the link.
        offered: u64,
        /// The number of samples sent.
        sent: u64,
        /// The number of samples sent after their deadline.
        late: u64,
        /// The number of windows beyond the loss tolerance.
        violations: u64,
        /// The number of dropped samples, by reason.
        dropped: BTreeMap<String, u64>,
    },
    /// The recording ends.
    End {
        /// The reason.
        why: String,
        /// The duration in seconds.
        seconds: f64,
        /// The number of samples recorded.
        samples: u64,
        /// The number of payload bytes recorded.
        bytes: u64,
        /// The number of attachments that the file does not contain.
        attachments: u64,
    },
}

/// Returns the JSON schema of all events. It lists the common properties and permits others.
pub(crate) fn schema() -> Vec<u8> {
    let text = |what: &str| serde_json::json!({ "type": what });
    let schema = serde_json::json!({
        "title": EVENTS_SCHEMA,
        "type": "object",
        "properties": {
            "event": text("string"),
            "tag": text("string"),
            "publisher": text("string"),
            "samples": text("number"),
            "bytes": text("number"),
            "rate_hz": text("number"),
            "late": text("number"),
            "missing": text("number"),
            "beyond": text("number"),
            "reason": text("string"),
            "age_us": {
                "type": "object",
                "properties": {
                    "p50": text("number"), "p99": text("number"), "max": text("number"),
                },
            },
        },
    });
    serde_json::to_vec(&schema).unwrap_or_default()
}
