//! The file format. Every field is optional, and unknown fields are errors.
//!
//! [`super::check`] determines defaults and valid ranges.

use core::fmt;
use serde::de::{Deserialize, Deserializer, Visitor};
use toml::Spanned;

/// A value with its position in the file.
pub(super) type Field<T> = Option<Spanned<T>>;

/// A duration or size as written. A bare number is kept as text, so that the error can suggest a unit.
#[derive(Clone, Debug)]
pub(super) struct Amount(pub(super) String);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text with a number and a unit, such as \"200ms\" or \"10MB\"")
    }

    fn visit_str<E>(self, text: &str) -> Result<Amount, E> {
        Ok(Amount(text.to_owned()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Amount, E> {
        Ok(Amount(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Amount, E> {
        Ok(Amount(number.to_string()))
    }
}

/// A whole file.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: Field<String>,
    pub(super) seed: Field<i64>,
    pub(super) duration: Field<Amount>,
    pub(super) warm_up: Field<Amount>,
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
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Node {
    pub(super) name: Field<String>,
    pub(super) clock: Field<Clock>,
}

/// `clock = { … }` of a node.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clock {
    pub(super) drift_ppm: Field<i64>,
    #[serde(default)]
    pub(super) steps: Vec<Spanned<Step>>,
}

/// One of the `steps` of a clock.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) at: Field<Amount>,
    pub(super) by: Field<Amount>,
}

/// `[[link]]`
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) between: Field<Vec<Spanned<String>>>,
    pub(super) rate: Field<String>,
    pub(super) capacity: Field<String>,
    pub(super) discipline: Field<String>,
    pub(super) protocol: Field<String>,
    pub(super) delay: Field<Amount>,
    pub(super) jitter: Field<Amount>,
    pub(super) loss: Field<Loss>,
    pub(super) reorder: Field<f64>,
    pub(super) duplicate: Field<f64>,
    pub(super) queue: Field<Amount>,
}

/// `loss` of a link: a share of all frames, or bursts.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
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
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bursts {
    pub(super) good_to_bad: Option<f64>,
    pub(super) bad_to_good: Option<f64>,
    pub(super) loss_good: Option<f64>,
    pub(super) loss_bad: Option<f64>,
}

/// `[[publisher]]`
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Publisher {
    pub(super) node: Field<String>,
    pub(super) tag: Field<String>,
    pub(super) kind: Field<String>,
    pub(super) hz: Field<f64>,
    pub(super) bytes: Field<Amount>,
    pub(super) group: Field<String>,
    pub(super) jitter: Field<Amount>,
    pub(super) from: Field<Amount>,
    pub(super) to: Field<Amount>,
    pub(super) late: Field<bool>,
}

/// `[[subscriber]]`
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subscriber {
    pub(super) node: Field<String>,
    pub(super) tag: Field<String>,
    pub(super) max_hz: Field<f64>,
    pub(super) min_hz: Field<f64>,
    pub(super) every: Field<i64>,
    pub(super) bitrate: Field<String>,
    pub(super) importance: Field<i64>,
    pub(super) within: Field<Amount>,
    pub(super) loss: Field<String>,
    pub(super) proxy: Field<String>,
    pub(super) from: Field<Amount>,
    pub(super) to: Field<Amount>,
}

/// `[[fault]]`
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fault {
    pub(super) at: Field<Amount>,
    #[serde(rename = "for")]
    pub(super) lasts: Field<Amount>,
    pub(super) cut: Field<Vec<Spanned<String>>>,
    pub(super) crash: Field<String>,
    pub(super) restart_after: Field<Amount>,
    pub(super) stall: Field<String>,
    pub(super) impair: Field<Vec<Spanned<String>>>,
    pub(super) capacity: Field<Vec<Spanned<String>>>,
    pub(super) ramp: Field<Amount>,
    pub(super) rates: Field<Vec<String>>,
    pub(super) every: Field<Amount>,
    pub(super) rate: Field<String>,
    pub(super) delay: Field<Amount>,
    pub(super) jitter: Field<Amount>,
    pub(super) loss: Field<Loss>,
    pub(super) reorder: Field<f64>,
    pub(super) duplicate: Field<f64>,
    pub(super) queue: Field<Amount>,
}
