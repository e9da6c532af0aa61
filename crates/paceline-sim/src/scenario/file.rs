//! The file format. Every field is optional, and unknown fields are errors.
//!
//! [`super::check`] determines defaults and valid ranges.

use serde::Deserialize;
use toml::Spanned;

/// A value with its position in the file.
pub(super) type Field<T> = Option<Spanned<T>>;

/// A whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Field<String>,
    pub(super) seed: Field<i64>,
    pub(super) duration_s: Field<f64>,
    pub(super) warm_up_s: Field<f64>,
    #[serde(default)]
    pub(super) node: Vec<Spanned<Node>>,
    #[serde(default)]
    pub(super) link: Vec<Spanned<Link>>,
    #[serde(default)]
    pub(super) publisher: Vec<Spanned<Publisher>>,
    #[serde(default)]
    pub(super) subscriber: Vec<Spanned<Subscriber>>,
    #[serde(default)]
    pub(super) fault: Vec<Spanned<Fault>>,
}

/// `[[node]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    pub(super) name: Field<String>,
    pub(super) clock: Field<Clock>,
}

/// `clock = { … }` of a node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clock {
    pub(super) drift_ppm: Field<i64>,
    #[serde(default)]
    pub(super) steps: Vec<Spanned<Step>>,
}

/// One of the `steps` of a clock.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) at_s: Field<f64>,
    pub(super) by_ms: Field<f64>,
}

/// `[[link]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) between: Field<Vec<Spanned<String>>>,
    pub(super) rate: Field<String>,
    pub(super) capacity: Field<String>,
    pub(super) discipline: Field<String>,
    pub(super) protocol: Field<String>,
    pub(super) delay_ms: Field<f64>,
    pub(super) jitter_ms: Field<f64>,
    pub(super) loss: Field<Loss>,
    pub(super) reorder: Field<f64>,
    pub(super) duplicate: Field<f64>,
    pub(super) queue_bytes: Field<i64>,
}

/// `loss` of a link: a share of all frames, or bursts.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "must be a share from 0 to 1, such as 0.01, or \
                 { good_to_bad = …, bad_to_good = …, loss_good = …, loss_bad = … }"
)]
pub(super) enum Loss {
    Share(f64),
    Bursts(Bursts),
}

/// The two-state loss model of Gilbert and Elliott.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bursts {
    pub(super) good_to_bad: Option<f64>,
    pub(super) bad_to_good: Option<f64>,
    pub(super) loss_good: Option<f64>,
    pub(super) loss_bad: Option<f64>,
}

/// `[[publisher]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Publisher {
    pub(super) node: Field<String>,
    pub(super) tag: Field<String>,
    pub(super) kind: Field<String>,
    pub(super) hz: Field<f64>,
    pub(super) bytes: Field<i64>,
    pub(super) group: Field<String>,
    pub(super) jitter_ms: Field<f64>,
    pub(super) from_s: Field<f64>,
    pub(super) to_s: Field<f64>,
    pub(super) late: Field<bool>,
}

/// `[[subscriber]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subscriber {
    pub(super) node: Field<String>,
    pub(super) tag: Field<String>,
    pub(super) max_hz: Field<f64>,
    pub(super) every: Field<i64>,
    pub(super) within_ms: Field<f64>,
    pub(super) loss: Field<String>,
    pub(super) proxy: Field<String>,
    pub(super) from_s: Field<f64>,
    pub(super) to_s: Field<f64>,
}

/// `[[fault]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    pub(super) at_s: Field<f64>,
    pub(super) for_s: Field<f64>,
    pub(super) cut: Field<Vec<Spanned<String>>>,
    pub(super) crash: Field<String>,
    pub(super) restart_after_s: Field<f64>,
    pub(super) stall: Field<String>,
    pub(super) impair: Field<Vec<Spanned<String>>>,
    pub(super) rate: Field<String>,
    pub(super) delay_ms: Field<f64>,
    pub(super) jitter_ms: Field<f64>,
    pub(super) loss: Field<Loss>,
    pub(super) reorder: Field<f64>,
    pub(super) duplicate: Field<f64>,
    pub(super) queue_bytes: Field<i64>,
}
