//! The description of a link and its streams, read from JSON.

use super::classes::{self, Classes};
use super::stream::{self, Id, Stream};
use paceline_sched::discipline::{Policy, RuleSet, ServiceClass};
use paceline_sched::hfsc::CLASSES_MAX;
use paceline_sched::timeline::{Ahead, LinkTiming, Setup, Spec};
use paceline_sched::units::{In, TIMES};
use paceline_sched::{Capacity, Duration, Instant};
use paceline_tool::describe::curves;
use paceline_tool::describe::fields::Fields;
use paceline_tool::describe::json::Json;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt;
use std::io::Read;

/// Limit of a description in bytes.
const INPUT_MAX: u64 = 1 << 30;
/// Limit of the number of streams.
const STREAMS_MAX: usize = 1 << 22;

/// The top-level fields.
pub(super) const FIELDS: [&str; 7] =
    ["discipline", "options", "capacity", "slot", "duration", "classes", "streams"];
pub(super) const OPTION_FIELDS: [&str; 4] = ["ordering", "adjustment", "eligibility", "segment"];

const STREAMS: &str = "must be a list of 1 to 4194304 streams";
const LINK: &str = "set one of them: the rate of the link, or the time per segment";

/// A complete description.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) setup: Setup,
    pub(super) ids: Vec<Id>,
    pub(super) streams: Vec<Spec>,
    pub(super) classes: Option<Classes>,
}

/// Reads a description.
///
/// # Errors
/// Returns a message with the path of the faulty field.
pub(super) fn read(from: impl Read) -> Result<Plan, String> {
    // One byte more than allowed distinguishes an oversized description from a truncated one.
    let mut from = from.take(INPUT_MAX + 1);
    let mut reader = serde_json::Deserializer::from_reader(&mut from);
    let document = reader.deserialize_any(Document).and_then(|found| reader.end().map(|()| found));
    if from.limit() == 0 {
        return Err(format!("longer than {INPUT_MAX} bytes: use fewer streams or arrivals"));
    }
    let (fields, streams) = document.map_err(|error| error.to_string())?;
    plan(fields, streams)
}

/// The whole document. Streams are read one at a time, because there may be millions.
struct Document;

impl<'de> Visitor<'de> for Document {
    type Value = (Fields, Vec<Stream>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with discipline, duration and streams")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let (mut entries, mut streams) = (Vec::new(), None);
        while let Some(name) = from.next_key::<String>()? {
            if name == "streams" {
                if streams.is_some() {
                    return Err(A::Error::custom("streams is given twice: keep one"));
                }
                streams = Some(from.next_value_seed(Streams)?);
            } else {
                // Checks the name before reading the value, so that the error has the right position.
                Fields::open(
                    String::new(),
                    Json::Object(vec![(name.clone(), Json::Null)]),
                    &FIELDS,
                )
                .map_err(A::Error::custom)?;
                entries.push((name, from.next_value()?));
            }
        }
        let fields = Fields::open(String::new(), Json::Object(entries), &FIELDS);
        let fields = fields.map_err(A::Error::custom)?;
        let missing = || A::Error::custom(format!("streams is missing: {STREAMS}"));
        Ok((fields, streams.ok_or_else(missing)?))
    }
}

struct Streams;

impl<'de> DeserializeSeed<'de> for Streams {
    type Value = Vec<Stream>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Vec<Stream>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Streams {
    type Value = Vec<Stream>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "streams, which {STREAMS}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<Stream>, A::Error> {
        let mut streams = Vec::new();
        while let Some(value) = from.next_element::<Json>()? {
            if streams.len() == STREAMS_MAX {
                return Err(A::Error::custom(format!("streams has too many entries: {STREAMS}")));
            }
            streams.push(stream::read(streams.len(), value).map_err(A::Error::custom)?);
        }
        Ok(streams)
    }
}

fn plan(mut fields: Fields, mut streams: Vec<Stream>) -> Result<Plan, String> {
    let policy = fields.text("discipline", str::parse::<Policy>)?.ok_or_else(|| {
        let names: Vec<_> = Policy::ALL.iter().map(|policy| policy.name()).collect();
        fields.missing("discipline", &format!("set it to one of {}", names.join(", ")))
    })?;
    let link = link(&mut fields)?;
    let fix = "set the time to simulate, such as \"10s\"";
    let end = fields.nanos("duration", 1)?.ok_or_else(|| fields.missing("duration", fix))?;
    let options = fields.take("options").unwrap_or(Json::Object(Vec::new()));
    let options = Fields::open("options".to_owned(), options, &OPTION_FIELDS)?;
    let setup = with_options(options, policy, link, Instant::from_nanos(end))?;
    if streams.is_empty() {
        return Err(format!("streams is empty: {STREAMS}"));
    }
    distinct(&streams)?;
    let classes = fields.take("classes");
    if policy == Policy::Hfsc && classes.is_none() && streams.len() > CLASSES_MAX as usize {
        return Err(format!(
            "streams has {} entries, but hfsc has at most {CLASSES_MAX} classes, one per stream: \
             put several streams in one of \"classes\"",
            streams.len()
        ));
    }
    if classes.is_some() && policy != Policy::Hfsc {
        return Err(format!(
            "classes need the discipline hfsc, but it is {policy}: set it to hfsc, and set \
             {policy} on a class"
        ));
    }
    let classes = classes.map(|value| classes::read(value, setup.ahead)).transpose()?;
    for (number, stream) in streams.iter_mut().enumerate() {
        seat(number, stream, policy, classes.as_ref())?;
    }
    promises(&setup, &streams, classes.as_ref())?;
    for (number, stream) in streams.iter().enumerate() {
        check(number, &stream.spec, &setup)?;
    }
    let (ids, streams) = streams.into_iter().map(|stream| (stream.id, stream.spec)).unzip();
    Ok(Plan { setup, ids, streams, classes })
}

/// Assigns a stream to its class, and rejects curves that would have no effect.
fn seat(
    number: usize,
    stream: &mut Stream,
    policy: Policy,
    classes: Option<&Classes>,
) -> Result<(), String> {
    let mut policy = policy;
    match (classes, &stream.class) {
        (Some(classes), name) => {
            let (class, within) = classes.leaf(number, name.as_deref())?;
            stream.spec.class = Some(class);
            policy = within;
        }
        (None, Some(name)) => {
            return Err(format!(
                "streams[{number}].class is {name:?}, but there are no classes: add it to classes"
            ));
        }
        (None, None) => {}
    }
    let Some(curves) = stream.spec.terms.curves else { return Ok(()) };
    let at = format!("streams[{number}].{}", curves::first(&curves));
    if policy != Policy::Hfsc {
        return Err(format!("{at} applies only to hfsc, but the discipline is {policy}: omit it"));
    }
    if stream.spec.terms.class == ServiceClass::Background {
        return Err(format!(
            "{at} conflicts with background, which has no share: omit one of them"
        ));
    }
    if classes.is_some() && curves.real_time.is_some() {
        return Err(format!(
            "{at} is a guarantee of the link, but the stream is in a class: set the curve on the \
             class"
        ));
    }
    Ok(())
}

/// Checks that the link's capacity covers all real-time curves.
fn promises(setup: &Setup, streams: &[Stream], classes: Option<&Classes>) -> Result<(), String> {
    let (list, curves): (_, Vec<_>) = match classes {
        Some(classes) => {
            let real = |(at, class): (usize, &classes::Class)| Some((at, class.curves.real_time?));
            ("classes", classes.list.iter().enumerate().filter_map(real).collect())
        }
        None => {
            let real =
                |(at, stream): (usize, &Stream)| Some((at, stream.spec.terms.curves?.real_time?));
            ("streams", streams.iter().enumerate().filter_map(real).collect())
        }
    };
    match (setup.link, curves.first()) {
        (_, None) => Ok(()),
        (LinkTiming::Capacity(capacity), Some(_)) => curves::fit(list, &curves, capacity),
        (LinkTiming::Slots(_), Some((number, _))) => Err(format!(
            "{list}[{number}].real_time is a rate in bits, but slot defines no capacity: set \
             capacity instead of slot"
        )),
    }
}

fn link(fields: &mut Fields) -> Result<LinkTiming, String> {
    let capacity = fields.rate("capacity", 8..=u64::MAX, "for example 2mbit")?;
    match (capacity, fields.nanos("slot", 1)?) {
        (Some(bits), None) => Capacity::from_bits_per_s(bits)
            .map(LinkTiming::Capacity)
            .map_err(|error| format!("capacity: {error}")),
        (None, Some(slot)) => Ok(LinkTiming::Slots(Duration::from_nanos(slot))),
        (None, None) => Err(format!("capacity and slot are missing: {LINK}")),
        (Some(_), Some(_)) => Err(format!("capacity and slot are both set: {LINK}")),
    }
}

fn with_options(
    mut options: Fields,
    policy: Policy,
    link: LinkTiming,
    end: Instant,
) -> Result<Setup, String> {
    let mut policy = policy;
    for name in ["ordering", "adjustment"] {
        let Some(rules) = options.text(name, rules)? else { continue };
        match (&mut policy, name) {
            (Policy::Dwcs { ordering, .. }, "ordering") => *ordering = rules,
            (Policy::Dwcs { adjustment, .. }, _) => *adjustment = rules,
            (other, _) => {
                return Err(format!(
                    "{} applies only to dwcs, but the discipline is {other}: omit it",
                    options.at(name)
                ));
            }
        }
    }
    let ahead = options.text("eligibility", ahead)?.unwrap_or_default();
    let fix = "omit it for samples in one piece";
    let segment = options.size("segment", 1..=u64::from(u32::MAX), fix)?;
    let segment = u32::try_from(segment.unwrap_or(u64::MAX)).unwrap_or(u32::MAX);
    Ok(Setup { policy, ahead, link, segment, end })
}

fn rules(text: &str) -> Result<RuleSet, &'static str> {
    match text {
        "later" | "N" => Ok(RuleSet::Later),
        "original" | "O" => Ok(RuleSet::Original),
        _ => Err("must be later or original (N or O)"),
    }
}

fn ahead(text: &str) -> Result<Ahead, &'static str> {
    match text {
        "once-per-period" => Ok(Ahead::Waits),
        "shared" => Ok(Ahead::Shares),
        "work-conserving" => Ok(Ahead::Competes),
        _ => Err("must be once-per-period (early samples wait), shared (early samples alternate \
                  with best effort) or work-conserving (early samples compete)"),
    }
}

/// Checks that stream ids are unique.
fn distinct(streams: &[Stream]) -> Result<(), String> {
    let mut seen = HashMap::with_capacity(streams.len());
    for (number, stream) in streams.iter().enumerate() {
        if let Some(first) = seen.insert(stream.id.to_string(), number) {
            let id = &stream.id;
            return Err(format!(
                "streams[{number}].id is {id}, the same as streams[{first}].id: give each stream a \
                 unique id"
            ));
        }
    }
    Ok(())
}

/// Checks that the link meets a stream's contract if no other stream uses it.
fn check(number: usize, spec: &Spec, setup: &Setup) -> Result<(), String> {
    if spec.sizes.is_empty() && matches!(setup.link, LinkTiming::Capacity(_)) {
        return Err(format!(
            "streams[{number}].size is missing: set the size of its samples, which a link with a \
             capacity requires"
        ));
    }
    let Some(contract) = spec.terms.contract() else { return Ok(()) };
    let (bytes, service) = (spec.largest(), setup.service(spec.largest()));
    if service > contract.deadline {
        return Err(format!(
            "streams[{number}].deadline is {}: must be at least {}, the transmission time of a \
             sample of {bytes} bytes; use a longer deadline, smaller samples or more capacity",
            In(contract.deadline.as_nanos(), TIMES),
            In(service.as_nanos(), TIMES)
        ));
    }
    Ok(())
}
