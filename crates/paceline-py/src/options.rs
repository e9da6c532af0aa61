//! Applies the keyword arguments from Python to builders.

use crate::convert::{self, NUMBER, TEXT, WHOLE, from_ms, option, pair};
use crate::errors;
use crate::timing;
use crate::wish::Wish;
use paceline::pull::{BufferBuilder, History, ORDERED_SAMPLES, PullBuilder};
use paceline::{Encoding, Late, Node, PublisherBuilder, Size, SubscriberBuilder};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Reads `history_samples`, `history_bytes` and `history_ms`. Returns `None` if none is given.
fn history(asked: &Bound<'_, PyDict>) -> PyResult<Option<History>> {
    let samples: Option<usize> = option(asked, "history_samples", WHOLE)?;
    let bytes: Option<u64> = option(asked, "history_bytes", WHOLE)?;
    let age: Option<f64> = option(asked, "history_ms", NUMBER)?;
    if samples.is_none() && bytes.is_none() && age.is_none() {
        return Ok(None);
    }
    let mut history = History::new();
    if let Some(samples) = samples {
        history = history.samples(samples);
    }
    if let Some(bytes) = bytes {
        history = history.bytes(bytes);
    }
    if let Some(age) = age {
        history = history.age(from_ms("history_ms", age)?);
    }
    history.limits().map_err(|error| errors::value(error.to_string()))?;
    Ok(Some(history))
}

pub(crate) fn publisher<'a>(
    node: &'a Node,
    tag: &str,
    asked: &Bound<'_, PyDict>,
) -> PyResult<PublisherBuilder<'a>> {
    let mut builder = node.publisher(tag);
    if let Some(hertz) = option(asked, "hz", NUMBER)? {
        builder = builder.hz(hertz);
    }
    if let Some(period) = option(asked, "period_ms", NUMBER)? {
        builder = builder.period(from_ms("period_ms", period)?);
    }
    if let Some(encoding) = option::<String>(asked, "encoding", TEXT)? {
        builder = builder.encoding(Encoding::new(&encoding));
    }
    if let Some(kind) = option::<String>(asked, "kind", TEXT)? {
        builder = builder.kind(convert::kind(&kind)?);
    }
    if option(asked, "late", "True or False")? == Some(true) {
        builder = builder.late(Late::Send);
    }
    if option(asked, "latch", "True or False")? == Some(true) {
        builder = builder.latch();
    }
    if let Some(bound) = option(asked, "within_ms", NUMBER)? {
        builder = builder.within(from_ms("within_ms", bound)?);
    }
    if let Some((x, y)) = pair(asked, "loss", '/')? {
        builder = builder.loss(x, y);
    }
    if let Some((width, height)) = pair(asked, "picture_size", 'x')? {
        builder = builder.picture_size(Size { width, height });
    }
    if let Some(bytes) = option(asked, "bytes_max", WHOLE)? {
        builder = builder.bytes_max(bytes);
    }
    if let Some((rate, burst)) = pair(asked, "traffic", '/')? {
        builder = builder.traffic(rate, burst);
    }
    if let Some(history) = history(asked)? {
        builder = builder.history(history);
    }
    Ok(builder)
}

/// Reads the arguments of a subscriber or of an admission question.
pub(crate) fn subscriber<'a>(
    node: &'a Node,
    pattern: &str,
    asked: &Bound<'_, PyDict>,
) -> PyResult<SubscriberBuilder<'a>> {
    let builder = node.subscriber(pattern);
    let mut builder = timing::apply(Wish::read(asked)?.put(builder), asked)?;
    if let Some(level) = option(asked, "priority", WHOLE)? {
        builder = builder.priority(level);
    }
    if let Some(tag) = option::<String>(asked, "with_tag", TEXT)? {
        builder = builder.with_tag(&tag);
    }
    if let Some(idle) = option::<f64>(asked, "idle_s", NUMBER)? {
        builder = builder.idle(from_ms("idle_s", idle * 1e3)?);
    }
    if option(asked, "spare", "True or False")? == Some(true) {
        builder = builder.spare();
    }
    if option(asked, "encrypted", "True or False")? == Some(true) {
        builder = builder.require_encrypted();
    }
    if let Some(samples) = option(asked, "queue", WHOLE)? {
        builder = builder.queue(samples);
    }
    if let Some(history) = history(asked)? {
        builder = builder.history(history);
    }
    Ok(builder)
}

pub(crate) fn buffer<'a>(
    node: &'a Node,
    pattern: &str,
    asked: &Bound<'_, PyDict>,
) -> PyResult<BufferBuilder<'a>> {
    let mut builder = node.buffer(pattern);
    if let Some(history) = history(asked)? {
        builder = builder.history(history);
    }
    if let Some(n) = option(asked, "every", WHOLE)? {
        builder = builder.every(n);
    }
    if let Some(hertz) = option(asked, "max_hz", NUMBER)? {
        builder = builder.max_hz(hertz);
    }
    if let Some((width, height)) = pair(asked, "size", 'x')? {
        builder = builder.size(width, height);
    }
    Ok(builder)
}

pub(crate) fn pull<'a>(
    node: &'a Node,
    tag: &str,
    asked: &Bound<'_, PyDict>,
) -> PyResult<PullBuilder<'a>> {
    let mut builder = selection(node.pull(tag), asked)?;
    if let Some(holder) = option::<String>(asked, "at", TEXT)? {
        builder = builder.from(&holder);
    }
    let samples: Option<u32> = option(asked, "samples", WHOLE)?;
    if let Some(node) = option::<String>(asked, "hold_at", TEXT)? {
        builder = builder.hold_at(&node, samples.unwrap_or(ORDERED_SAMPLES));
    } else if samples.is_some() {
        return Err(errors::value("samples needs hold_at, the node that keeps them".to_owned()));
    }
    if let Some(n) = option(asked, "every", WHOLE)? {
        builder = builder.every(n);
    }
    if let Some(hertz) = option(asked, "max_hz", NUMBER)? {
        builder = builder.max_hz(hertz);
    }
    if let Some((width, height)) = pair(asked, "size", 'x')? {
        builder = builder.size(width, height);
    }
    if let Some((rate, channels)) = pair(asked, "audio", 'x')? {
        builder = builder.audio(rate, channels);
    }
    if let Some(seconds) = option::<f64>(asked, "timeout_s", NUMBER)? {
        builder = builder.timeout(from_ms("timeout_s", seconds * 1e3)?);
    }
    Ok(builder)
}

/// Reads the selection of a pull. At most one of the four selections may be given.
fn selection<'a>(builder: PullBuilder<'a>, asked: &Bound<'_, PyDict>) -> PyResult<PullBuilder<'a>> {
    let newest: Option<u32> = option(asked, "newest", WHOLE)?;
    let nth: Option<u32> = option(asked, "nth", WHOLE)?;
    let seq: Option<(u64, u64)> = option(asked, "seq", "a pair of whole numbers, both included")?;
    let instant = "whole nanoseconds since 1970 UTC";
    let from: Option<u64> = option(asked, "from_ns", instant)?;
    let to: Option<u64> = option(asked, "to_ns", instant)?;
    let time =
        (from.is_some() || to.is_some()).then(|| (from.unwrap_or(0), to.unwrap_or(u64::MAX)));
    match (newest, nth, seq, time) {
        (None, None, None, None) => Ok(builder),
        (Some(n), None, None, None) => Ok(builder.newest(n)),
        (None, Some(n), None, None) => Ok(builder.nth(n)),
        (None, None, Some((first, last)), None) => Ok(builder.seq(first..=last)),
        (None, None, None, Some((first, last))) => Ok(builder.time(first..=last)),
        _ => Err(errors::value(
            "give one of newest, nth, seq and from_ns with to_ns, not several".to_owned(),
        )),
    }
}
