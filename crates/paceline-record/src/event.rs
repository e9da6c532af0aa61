//! What is told on `qos/events`: one JSON object a message (docs/json.md).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The topic of events.
pub const EVENTS_TOPIC: &str = "qos/events";
/// Their schema's name.
pub const EVENTS_SCHEMA: &str = "paceline.QosEvent";

/// What was asked for, of all streams of a recording alike.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Asked {
    /// Rate and size in words.
    pub form: String,
    /// One sample in so many.
    pub every: Option<u32>,
    /// So many samples a second at most.
    pub max_hz: Option<f64>,
    /// Pictures of this width.
    pub width: Option<u32>,
    /// And height.
    pub height: Option<u32>,
    /// The delay bound.
    pub within_us: Option<u64>,
    /// The loss tolerance, x/y.
    pub loss: Option<String>,
}

/// What one node of a path holds.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Hop {
    /// What people call the node.
    pub name: String,
    /// Its link to the next one.
    pub link: String,
    /// Bits held each second.
    pub bits_per_s: u64,
    /// Its part of the delay.
    pub bound_us: u64,
}

/// What would be granted in place of what was refused, each alone.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Offer {
    /// The same samples, so many a second.
    pub max_hz: Option<f64>,
    /// As many, each of at most so many bytes.
    pub bytes: Option<u64>,
    /// The same within this delay bound.
    pub within_us: Option<u64>,
    /// The same, this part of which may miss it.
    pub loss: Option<String>,
}

/// Ages at delivery in microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Ages {
    /// Half of the samples were no older.
    pub p50: u64,
    /// 99 in 100 were no older.
    pub p99: u64,
    /// The oldest.
    pub max: u64,
}

/// What came of one publisher's samples since the beginning.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Delivered {
    /// The tag.
    pub tag: String,
    /// Whose samples.
    pub publisher: String,
    /// Samples recorded.
    pub samples: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Samples a second, over the last second; at the end over the whole.
    pub rate_hz: f64,
    /// Later than the delay bound.
    pub late: u64,
    /// Sequence numbers that never came; unknown where not every sample was asked for.
    pub missing: Option<u64>,
    /// Windows with more late or missing samples than the loss tolerance allows; unknown without one.
    pub beyond: Option<u64>,
    /// How old they were.
    pub age_us: Ages,
}

/// One event.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The recording begins.
    Begin {
        /// The version that records.
        version: String,
        /// The node that records, by id.
        node: String,
        /// What people call it.
        name: String,
        /// What is recorded.
        patterns: Vec<String>,
        /// What is asked for.
        asked: Asked,
    },
    /// Something else is asked for from now on.
    Changed {
        /// On this pattern.
        pattern: String,
        /// What is asked for.
        asked: Asked,
    },
    /// A publisher is there.
    Joined {
        /// Its tag.
        tag: String,
        /// Its id.
        publisher: String,
        /// Its node's name.
        node: String,
        /// The period that it declared.
        period_us: Option<u64>,
    },
    /// A publisher has gone.
    Left {
        /// Its tag.
        tag: String,
        /// Its id.
        publisher: String,
    },
    /// What was asked for is promised.
    Granted {
        /// The tag.
        tag: String,
        /// Whose samples.
        publisher: String,
        /// The delay bound asked for.
        within_us: Option<u64>,
        /// What the links promise together.
        bound_us: u64,
        /// The publisher's node first.
        hops: Vec<Hop>,
    },
    /// What was asked for can't be promised.
    Refused {
        /// The tag.
        tag: String,
        /// Whose samples.
        publisher: String,
        /// Why, in words.
        reason: String,
        /// What would be.
        offer: Offer,
    },
    /// Sequence numbers were left out.
    Gap {
        /// The tag.
        tag: String,
        /// Whose samples.
        publisher: String,
        /// The last number before.
        after: u64,
        /// How many.
        missing: u64,
    },
    /// What came, once a second and at the end.
    Delivered(Delivered),
    /// What was dropped at the recorder since the beginning, by reason.
    Dropped {
        /// Reason and samples.
        dropped: BTreeMap<String, u64>,
    },
    /// What a link did with a publisher's samples while it was recorded.
    Link {
        /// The tag.
        tag: String,
        /// Whose samples.
        publisher: String,
        /// The node's name.
        node: String,
        /// The link.
        link: String,
        /// Samples handed to it.
        offered: u64,
        /// Those sent.
        sent: u64,
        /// Those sent after their deadline.
        late: u64,
        /// Windows beyond the loss tolerance.
        violations: u64,
        /// Reason and samples.
        dropped: BTreeMap<String, u64>,
    },
    /// The recording ends.
    End {
        /// Why.
        why: String,
        /// How long it took.
        seconds: f64,
        /// Samples recorded.
        samples: u64,
        /// Their payload bytes.
        bytes: u64,
        /// Attachments, which have no place in a file.
        attachments: u64,
    },
}

/// The JSON schema of all events: what they have in common, and that there is more.
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
