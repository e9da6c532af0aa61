//! Conversions from Python values to builder arguments. Each error names the keyword, the value and
//! the remedy.

use crate::errors;
use crate::time::to_ms;
use paceline::Kind;
use paceline::contract::{Proxy, Retransmit};
use paceline::status::{Drops, SubscriptionId};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

/// The greatest accepted time in milliseconds, about 30 years. A [`Duration`] can represent it.
const MS_MAX: f64 = 1e12;

/// The expected types, for error messages.
pub(crate) const NUMBER: &str = "a number";
pub(crate) const WHOLE: &str = "a whole number that is not negative";
pub(crate) const TEXT: &str = "a text";

/// Converts millihertz to hertz.
#[expect(clippy::cast_precision_loss, reason = "for people to read")]
pub(crate) fn hertz(millihertz: u64) -> f64 {
    millihertz as f64 / 1_000.0
}

/// Returns the mean age in milliseconds, or `None` without samples.
#[expect(clippy::cast_precision_loss, reason = "for people to read")]
pub(crate) fn mean_ms(ages: Duration, samples: u64) -> Option<f64> {
    (samples > 0).then(|| to_ms(ages) / samples as f64)
}

/// Converts milliseconds, rounded to the nearest nanosecond: rounding down could turn an offered
/// bound into a refused one.
pub(crate) fn from_ms(name: &str, ms: f64) -> PyResult<Duration> {
    if !(0.0..=MS_MAX).contains(&ms) {
        return Err(errors::value(format!(
            "{name}={ms}: it must be from 0 to {MS_MAX:.0} milliseconds"
        )));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let nanos = (ms * 1e6).round() as u64;
    Ok(Duration::from_nanos(nanos))
}

/// Returns the value of keyword `name`, or `None` if it is `None`.
pub(crate) fn option<'py, T>(
    asked: &Bound<'py, PyDict>,
    name: &str,
    what: &str,
) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let Some(value) = asked.get_item(name)?.filter(|value| !value.is_none()) else {
        return Ok(None);
    };
    match value.extract() {
        Ok(value) => Ok(Some(value)),
        Err(_) => Err(errors::wrong_type(format!("{name}={}: it must be {what}", value.repr()?))),
    }
}

/// Rejects unknown keywords.
pub(crate) fn only(asked: &Bound<'_, PyDict>, known: &[&str]) -> PyResult<()> {
    for name in asked.keys() {
        let name: String = name.extract()?;
        if !known.contains(&name.as_str()) {
            let known = known.join(", ");
            return Err(errors::wrong_type(format!(
                "there is no keyword '{name}': there are {known}"
            )));
        }
    }
    Ok(())
}

/// Reads two numbers: a pair, or a text with `between` as the separator.
pub(crate) fn pair<A, B>(
    asked: &Bound<'_, PyDict>,
    name: &str,
    between: char,
) -> PyResult<Option<(A, B)>>
where
    A: for<'a, 'py> FromPyObject<'a, 'py> + std::str::FromStr,
    B: for<'a, 'py> FromPyObject<'a, 'py> + std::str::FromStr,
{
    let Some(value) = asked.get_item(name)?.filter(|value| !value.is_none()) else {
        return Ok(None);
    };
    if let Ok(pair) = value.extract() {
        return Ok(Some(pair));
    }
    let read = |text: String| {
        let (a, b) = text.split_once(between)?;
        Some((a.trim().parse().ok()?, b.trim().parse().ok()?))
    };
    match value.extract().ok().and_then(read) {
        Some(pair) => Ok(Some(pair)),
        None => Err(errors::wrong_type(format!(
            "{name}={}: it must be two whole numbers that are not negative, as a tuple (A, B) or a text 'A{between}B'",
            value.repr()?
        ))),
    }
}

/// Parses the text form of a subscription id.
pub(crate) fn subscription(text: &str) -> PyResult<SubscriptionId> {
    text.parse().map_err(|_| {
        errors::value(format!(
            "subscription='{text}': it must be the id of one, as in node.subscriptions()"
        ))
    })
}

/// Returns the value of one of several words.
fn word<T: Copy>(name: &str, text: &str, words: &[(&str, T)]) -> PyResult<T> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let known: Vec<String> = words.iter().map(|(word, _)| format!("'{word}'")).collect();
    Err(errors::value(format!("{name}='{text}': it must be one of {}", known.join(", "))))
}

pub(crate) fn kind(text: &str) -> PyResult<Kind> {
    let words = [
        ("data", Kind::Data),
        ("state", Kind::State),
        ("picture", Kind::Picture),
        ("audio", Kind::Audio),
        ("video", Kind::VideoI),
    ];
    word("kind", text, &words)
}

pub(crate) fn proxy(text: &str) -> PyResult<Proxy> {
    text.parse().map_err(|_| {
        let words =
            "'publisher', 'subscriber', 'auto', or 'node:' and a node's name of 1 to 255 bytes";
        errors::value(format!("proxy='{text}': it must be one of {words}"))
    })
}

pub(crate) fn retransmit(text: &str) -> PyResult<Retransmit> {
    let words = [
        ("none", Retransmit::None),
        ("selective", Retransmit::Selective),
        ("go-back-n", Retransmit::GoBackN),
    ];
    word("retransmit", text, &words)
}

/// Returns a dict from drop reason to samples.
pub(crate) fn drops<'py>(py: Python<'py>, drops: &Drops) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (reason, samples) in drops.iter() {
        dict.set_item(reason.name(), samples)?;
    }
    Ok(dict)
}
