//! A stream of the description.

use paceline_sched::discipline::{ServiceClass, Terms};
use paceline_sched::police::Police;
use paceline_sched::timeline::{Arrivals, Spec};
use paceline_sched::units::{self, In, Quantity, TIMES};
use paceline_sched::{Contract, ContractError, Duration, Instant, Late, LossTolerance};
use paceline_tool::describe::curves;
use paceline_tool::describe::fields::{Fields, TIME_MAX, amount};
use paceline_tool::describe::json::Json;
use serde::Serialize;
use std::fmt;

/// The fields of a stream.
pub(super) const FIELDS: [&str; 16] = [
    "id",
    "period",
    "deadline",
    "loss",
    "droppable",
    "jitter",
    "background",
    "priority",
    "rate",
    "size",
    "arrivals",
    "police",
    "class",
    "real_time",
    "link_share",
    "upper_limit",
];
const EVERY_FIELDS: [&str; 3] = ["every", "first", "count"];

const ID: &str = "must be text of 1 to 64 characters without control characters, or a whole number \
     from 0 to 18446744073709551615";
const SIZE: &str = "for example 10kB, or a list of sizes, which the samples use in turn";
const ARRIVALS: &str = "must be \"backlogged\", a list of instants such as \"5ms\", or an object such \
     as {\"every\": \"10ms\"}";

/// The id of a stream, as written in the description.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Id {
    Number(u64),
    Text(Box<str>),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A stream before its class is resolved.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: Id,
    pub(super) spec: Spec,
    /// The class that the stream names.
    pub(super) class: Option<String>,
}

/// Reads the stream at index `number` of the list.
pub(super) fn read(number: usize, value: Json) -> Result<Stream, String> {
    let mut fields = Fields::open(format!("streams[{number}]"), value, &FIELDS)?;
    let id = id(&mut fields)?;
    let class = class(&mut fields)?;
    let mut terms = Terms::new(class);
    let fix = "the lowest number is served first";
    if let Some(level) = fields.whole("priority", 0..=u64::from(u32::MAX), fix)? {
        terms = terms.with_priority(u32::try_from(level).unwrap_or(u32::MAX));
    }
    let fix = "omit it for the same share as 1B/s";
    if let Some(bits) = fields.rate("rate", 8..=u64::MAX, fix)? {
        terms = terms.with_rate(bits / 8);
    }
    if let Some(curves) = curves::read(&mut fields)? {
        terms = terms.with_curves(curves);
    }
    let home = name(&mut fields, "class")?;
    let sizes = sizes(&mut fields)?;
    let arrivals = arrivals(&mut fields)?;
    let police = police(&mut fields, &arrivals)?;
    let spec = Spec { terms, sizes, arrivals, police, class: None };
    Ok(Stream { id, spec, class: home })
}

pub(super) fn id(fields: &mut Fields) -> Result<Id, String> {
    named(fields, "id")?.ok_or_else(|| fields.missing("id", ID))
}

/// Reads a reference to another object's id.
pub(super) fn name(fields: &mut Fields, field: &str) -> Result<Option<String>, String> {
    Ok(named(fields, field)?.map(|id| id.to_string()))
}

fn named(fields: &mut Fields, field: &str) -> Result<Option<Id>, String> {
    let Some(value) = fields.take(field) else { return Ok(None) };
    let found = match &value {
        Json::Text(text)
            if (1..=64).contains(&text.chars().count()) && !text.chars().any(char::is_control) =>
        {
            Some(Id::Text(text.as_str().into()))
        }
        Json::Number(number) => number.as_u64().map(Id::Number),
        Json::Null | Json::Bool(_) | Json::Text(_) | Json::List(_) | Json::Object(_) => None,
    };
    found.map(Some).ok_or_else(|| format!("{} is {value}: {ID}", fields.at(field)))
}

fn class(fields: &mut Fields) -> Result<ServiceClass, String> {
    let fix = "true serves the stream only if no other stream waits";
    let background = fields.flag("background", fix)?.unwrap_or(false);
    let Some(period) = fields.nanos("period", 1)? else {
        for name in ["deadline", "loss", "droppable", "jitter"] {
            if fields.has(name) {
                return Err(format!(
                    "{} is part of a contract, but there is no period: set the time between two \
                     samples, or omit it for best effort",
                    fields.at(name)
                ));
            }
        }
        return Ok(if background { ServiceClass::Background } else { ServiceClass::BestEffort });
    };
    if background {
        return Err(format!(
            "{} is true, but period is set: background streams have no contract; omit one of them",
            fields.at("background")
        ));
    }
    contract(fields, Duration::from_nanos(period)).map(ServiceClass::Contracted)
}

fn contract(fields: &mut Fields, period: Duration) -> Result<Contract, String> {
    let deadline = fields.nanos("deadline", 1)?.map_or(period, Duration::from_nanos);
    let loss = fields.text("loss", loss)?.unwrap_or(LossTolerance::NONE);
    let fix = "true drops late samples, false sends them late";
    let droppable = fields.flag("droppable", fix)?.unwrap_or(true);
    let jitter = fields.nanos("jitter", 0)?.map_or(Duration::ZERO, Duration::from_nanos);
    let late = if droppable { Late::Drop } else { Late::Send };
    Ok(Contract { period, deadline, loss, late, jitter })
}

/// Parses a loss tolerance; 0/0 requests deadlines without a window.
fn loss(text: &str) -> Result<LossTolerance, ContractError> {
    let zero = |part: &str| part.trim().parse() == Ok(0_u32);
    match text.split_once('/') {
        Some((x, y)) if zero(x) && zero(y) => Ok(LossTolerance::EDF),
        _ => text.parse(),
    }
}

fn sizes(fields: &mut Fields) -> Result<Vec<u32>, String> {
    let place = fields.at("size");
    let size = |place: &str, value: &Json| {
        let bytes = amount(place, value, Quantity::Size, &(1..=u64::from(u32::MAX)), SIZE)?;
        Ok(u32::try_from(bytes).unwrap_or(u32::MAX))
    };
    match fields.take("size") {
        None => Ok(Vec::new()),
        Some(Json::List(list)) if list.is_empty() => {
            Err(format!("{place} is an empty list: add at least one size"))
        }
        Some(Json::List(list)) => {
            let all = list.iter().enumerate();
            all.map(|(at, value)| size(&format!("{place}[{at}]"), value)).collect()
        }
        Some(one) => size(&place, &one).map(|size| vec![size]),
    }
}

fn arrivals(fields: &mut Fields) -> Result<Arrivals, String> {
    let place = fields.at("arrivals");
    match fields.take("arrivals") {
        None => Ok(Arrivals::Backlogged),
        Some(Json::Text(text)) if text == "backlogged" => Ok(Arrivals::Backlogged),
        Some(Json::List(list)) => instants(&place, &list).map(Arrivals::At),
        Some(object @ Json::Object(_)) => every(place, object),
        Some(other) => Err(format!("{place} is {other}: {ARRIVALS}")),
    }
}

fn police(fields: &mut Fields, arrivals: &Arrivals) -> Result<Option<Police>, String> {
    let place = fields.at("police");
    let Some(police) = fields.text("police", str::parse::<Police>)? else { return Ok(None) };
    if *arrivals == Arrivals::Backlogged {
        return Err(format!(
            "{place} conflicts with backlogged arrivals, which arrive all at once: use instants, \
             or an object such as {{\"every\": \"10ms\"}}"
        ));
    }
    Ok(Some(police))
}

/// Reads instants in ascending order. Rejects others: sorting would change the samples' sequence numbers.
fn instants(place: &str, list: &[Json]) -> Result<Vec<Instant>, String> {
    let mut instants = Vec::with_capacity(list.len());
    let mut before = 0;
    for (number, value) in list.iter().enumerate() {
        let found = value_at(place, number, value)?;
        if found < before {
            return Err(format!(
                "{place}[{number}] is {}, which is before the previous entry, {}: sort the list",
                In(found, TIMES),
                In(before, TIMES)
            ));
        }
        before = found;
        instants.push(Instant::from_nanos(found));
    }
    Ok(instants)
}

fn value_at(place: &str, number: usize, value: &Json) -> Result<u64, String> {
    if let Json::Text(text) = value
        && let Ok(at) = units::in_range(text, Quantity::Duration, &(0..=TIME_MAX))
    {
        return Ok(at);
    }
    // Builds the path only for an error.
    let place = format!("{place}[{number}]");
    amount(&place, value, Quantity::Duration, &(0..=TIME_MAX), "for example 5ms")
}

fn every(place: String, object: Json) -> Result<Arrivals, String> {
    let mut fields = Fields::open(place, object, &EVERY_FIELDS)?;
    let fix = "set the time between two samples";
    let every = fields.nanos("every", 1)?.ok_or_else(|| fields.missing("every", fix))?;
    let first = fields.nanos("first", 0)?.unwrap_or(0);
    let fix = "omit it for samples until the end";
    let count = fields.whole("count", 0..=u64::MAX, fix)?.unwrap_or(u64::MAX);
    let (first, every) = (Instant::from_nanos(first), Duration::from_nanos(every));
    Ok(Arrivals::Every { first, every, count })
}
