//! The keyword arguments of delivery by time.

use crate::convert::{NUMBER, TEXT, WHOLE, from_ms, option};
use crate::errors;
use paceline::SubscriberBuilder;
use paceline::delivery::{LateArrival, OrderedBy, Otherwise, TimeBuffering};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::time::Duration;

/// The keywords that only a time buffer has.
const HOLD: [&str; 5] = ["hold_ms", "hold_samples", "hold_bytes", "hold_factor", "hold_late"];

/// Applies the arguments of delivery by time.
pub(crate) fn apply<'a>(
    builder: SubscriberBuilder<'a>,
    asked: &Bound<'_, PyDict>,
) -> PyResult<SubscriberBuilder<'a>> {
    let mut builder = builder;
    let otherwise: Option<String> = option(asked, "otherwise", TEXT)?;
    match (option::<f64>(asked, "fresh_within_ms", NUMBER)?, otherwise.as_deref()) {
        (Some(limit), action) => {
            let otherwise = match action {
                None | Some("hold") => Otherwise::Hold,
                Some("zero") => Otherwise::Zero,
                Some(other) => {
                    return Err(errors::value(format!(
                        "otherwise '{other}': must be hold or zero"
                    )));
                }
            };
            builder = builder.fresh_within(from_ms("fresh_within_ms", limit)?, otherwise);
        }
        (None, None) => {}
        (None, Some(_)) => {
            return Err(errors::value(
                "otherwise without fresh_within_ms: add the age limit".to_owned(),
            ));
        }
    }
    if let Some(order) = order(asked)? {
        builder = builder.ordered(order);
    }
    if let Some(longest) = option::<f64>(asked, "spacing_ms", NUMBER)? {
        builder = builder.spacing(Duration::ZERO..=from_ms("spacing_ms", longest)?);
    }
    if let Some(jitter) = option::<f64>(asked, "max_jitter_ms", NUMBER)? {
        builder = builder.max_jitter(from_ms("max_jitter_ms", jitter)?);
    }
    let delay = option::<f64>(asked, "sync_delay_ms", NUMBER)?;
    match (option::<String>(asked, "sync_group", TEXT)?, delay) {
        (Some(group), delay) => {
            let delay = from_ms("sync_delay_ms", delay.unwrap_or(200.0))?;
            builder = builder.sync_group(&group, delay);
        }
        (None, None) => {}
        (None, Some(_)) => {
            let text = "sync_delay_ms without sync_group: add the name of the group";
            return Err(errors::value(text.to_owned()));
        }
    }
    Ok(builder)
}

/// Reads the time buffer; `None` without one.
fn order(asked: &Bound<'_, PyDict>) -> PyResult<Option<TimeBuffering>> {
    let by = match option::<String>(asked, "ordered", TEXT)?.as_deref() {
        Some("time") => OrderedBy::Time,
        Some("publisher") => OrderedBy::Publisher,
        None | Some("none") => {
            for key in HOLD {
                if asked.get_item(key)?.is_some_and(|value| !value.is_none()) {
                    return Err(errors::value(format!(
                        "{key} without an order: add ordered=\"time\""
                    )));
                }
            }
            return Ok(None);
        }
        Some(other) => {
            return Err(errors::value(format!(
                "ordered '{other}': must be time, publisher or none"
            )));
        }
    };
    let hold = option::<f64>(asked, "hold_ms", NUMBER)?.unwrap_or(50.0);
    let mut order = TimeBuffering::by_time(from_ms("hold_ms", hold)?).by(by);
    if let Some(samples) = option(asked, "hold_samples", WHOLE)? {
        order = order.entries(samples);
    }
    if let Some(bytes) = option(asked, "hold_bytes", WHOLE)? {
        order = order.bytes(bytes);
    }
    if let Some(factor) = option(asked, "hold_factor", NUMBER)? {
        order = order.factor(factor);
    }
    match option::<String>(asked, "hold_late", TEXT)?.as_deref() {
        None => {}
        Some("deliver") => order = order.late(LateArrival::Deliver),
        Some("flag") => order = order.late(LateArrival::Flag),
        Some("drop") => order = order.late(LateArrival::Drop),
        Some(other) => {
            return Err(errors::value(format!(
                "hold_late '{other}': must be deliver, flag or drop"
            )));
        }
    }
    Ok(Some(order))
}
