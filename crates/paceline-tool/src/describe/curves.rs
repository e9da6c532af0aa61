//! Service curves of streams and classes.

use super::fields::{Fields, amount};
use super::json::Json;
use paceline_sched::Capacity;
use paceline_sched::Duration;
use paceline_sched::curve::{self, Curve, RATE_MAX};
use paceline_sched::hfsc::Curves;
use paceline_sched::units::Quantity;

/// The names of the curves of a stream or class.
pub const NAMES: [&str; 3] = ["real_time", "link_share", "upper_limit"];
const PIECES: [&str; 3] = ["m1", "d", "m2"];
const BURST: [&str; 3] = ["burst", "within", "rate"];
const RATE: &str = "for example 2mbit";
const CURVE: &str = "must be a rate such as \"2mbit\", {\"m1\", \"d\", \"m2\"} or \
     {\"burst\", \"within\", \"rate\"}";

/// Reads the curves of an object; returns `None` if it has none.
pub fn read(fields: &mut Fields) -> Result<Option<Curves>, String> {
    let [real_time, link_share, upper_limit] = NAMES.map(|name| curve(fields, name));
    let curves =
        Curves { real_time: real_time?, link_share: link_share?, upper_limit: upper_limit? };
    if curves.upper_limit.is_some() && curves.link_share.is_none() {
        return Err(format!(
            "{} is given without the link_share that it limits: add a link_share, or leave it out",
            fields.at("upper_limit")
        ));
    }
    Ok((curves != Curves::default()).then_some(curves))
}

fn curve(fields: &mut Fields, name: &str) -> Result<Option<Curve>, String> {
    let place = fields.at(name);
    fields.take(name).map(|value| value_of(&place, value)).transpose()
}

/// Reads the curve `value`; `place` is its path for errors.
pub fn value_of(place: &str, value: Json) -> Result<Curve, String> {
    let made = match value {
        rate @ (Json::Text(_) | Json::Number(_)) => {
            Curve::linear(amount(place, &rate, Quantity::Rate, &(1..=RATE_MAX), RATE)?)
        }
        Json::Object(entries) => {
            let old = ["burst_bytes", "within_ns", "rate_bits_per_s"];
            let is_burst = |name: &str| BURST.contains(&name) || old.contains(&name);
            let burst = entries.iter().any(|(name, _)| is_burst(name));
            let known = if burst { &BURST } else { &PIECES };
            let mut object = Fields::open(place.to_owned(), Json::Object(entries), known)?;
            let [first, second, third] = *known;
            let one = match burst {
                true => object.size(first, 0..=u64::from(u32::MAX), "for example 10kB")?,
                false => object.rate(first, 0..=RATE_MAX, RATE)?,
            };
            let one = one.ok_or_else(|| object.missing(first, CURVE))?;
            let time = object.nanos(second, 0)?.ok_or_else(|| object.missing(second, CURVE))?;
            let rate = object.rate(third, 1..=RATE_MAX, RATE)?;
            let rate = rate.ok_or_else(|| object.missing(third, CURVE))?;
            let time = Duration::from_nanos(time);
            if burst { Curve::burst(one, time, rate) } else { Curve::two_piece(one, time, rate) }
        }
        other @ (Json::Null | Json::Bool(_) | Json::List(_)) => {
            return Err(format!("{place} is {other}: {CURVE}"));
        }
    };
    made.map_err(|error| format!("{place}: {error}"))
}

/// Returns the name of the first curve that is present, for an error.
pub const fn first(curves: &Curves) -> &'static str {
    match (curves.real_time, curves.link_share) {
        (Some(_), _) => "real_time",
        (None, Some(_)) => "link_share",
        (None, None) => "upper_limit",
    }
}

/// Refuses real-time curves whose sum exceeds the capacity. The error names the first curve with
/// which it does. Each curve has its index in `list`.
pub fn fit(list: &str, all: &[(usize, Curve)], capacity: Capacity) -> Result<(), String> {
    let curves: Vec<Curve> = all.iter().map(|(_, curve)| *curve).collect();
    let check = |count: usize| curve::fits(curves.get(..count).unwrap_or(&curves), capacity);
    let Err(_) = check(curves.len()) else { return Ok(()) };
    // The sum grows with each curve, so a binary search finds the first excess.
    let counts: Vec<usize> = (1..=curves.len()).collect();
    let fitting = counts.partition_point(|count| check(*count).is_ok());
    let number = all.get(fitting).map_or(0, |(number, _)| *number);
    match check(fitting + 1) {
        Err(error) => {
            Err(format!("{list}[{number}].real_time and those before it exceed the link: {error}"))
        }
        Ok(()) => Ok(()),
    }
}
