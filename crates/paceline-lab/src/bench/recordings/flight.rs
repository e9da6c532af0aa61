//! A flight's telemetry: every message must arrive once and in order.

use super::case;
use crate::bench::netns::Rig;
use crate::bench::report::{Bound, Section, Unit};
use crate::bench::stats::{Samples, count, float, millis};
use anyhow::Result;
use paceline_tool::scratch::Scratch;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Longer than the flight.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn measure(rig: &Rig, scratch: &Scratch, flight: &str, speed: f64) -> Result<Section> {
    eprintln!("the flight, at {speed} × its original speed");
    let factor = speed.to_string();
    let publish = ["px4", "--file", flight, "--speed", &factor];
    let subscribe = ["px4/**", "--queue", "65536"];
    let outcome = case::run(rig, scratch, &publish, &subscribe, PATIENCE)?;
    let mut section =
        Section::new(format!("The flight, every topic, at {speed} × its original speed"));
    let published = outcome.published;
    let streams = order(&outcome.samples);
    let drops: u64 = outcome.drops().values().sum();
    section.show("messages published", Unit::Count, float(published), f64::NAN);
    section.show("topics", Unit::Count, count(streams.len()), f64::NAN);
    let lost = float(published) - count(outcome.samples.len());
    let none = Bound::AtMost(0.0);
    section.must("messages not delivered", Unit::Count, lost, f64::NAN, none);
    let unexplained = (lost - float(drops)).abs();
    section.must(
        "messages not delivered, without a reason",
        Unit::Count,
        unexplained,
        f64::NAN,
        none,
    );
    let wrong = streams.values().map(|stream| stream.wrong).sum::<usize>();
    let wrong = if outcome.samples.is_empty() { f64::NAN } else { count(wrong) };
    section.must("messages duplicated or out of order", Unit::Count, wrong, f64::NAN, none);
    let unaccounted = float(outcome.unaccounted());
    section.must("samples that no counter explains", Unit::Count, unaccounted, f64::NAN, none);
    let ages = outcome.samples.iter().filter_map(|sample| sample.get("age_us")?.as_u64());
    let ages = Samples::new(ages.map(|age| age * 1_000).collect());
    for (name, per_mille) in [("delay p50", 500), ("delay p99", 990), ("delay p99.9", 999)] {
        section.show(name, Unit::Millis, millis(ages.percentile(per_mille)), f64::NAN);
    }
    let fill = 800.0 * outcome.wire_bytes / outcome.seconds / float(rig.bits_per_s());
    section.show("link filled", Unit::Percent, fill, f64::NAN);
    for (reason, n) in outcome.drops() {
        section.note(format!("dropped: {reason} {n}"));
    }
    Ok(section)
}

#[derive(Debug, Default)]
struct Order {
    last: Option<u64>,
    /// Samples whose sequence number is not greater than the previous one.
    wrong: usize,
}

/// Returns the order of the received samples, per tag.
fn order(samples: &[Value]) -> BTreeMap<String, Order> {
    let mut streams: BTreeMap<String, Order> = BTreeMap::new();
    for sample in samples {
        let tag = sample.get("tag").and_then(Value::as_str).unwrap_or_default();
        let stream = streams.entry(tag.to_owned()).or_default();
        let seq = sample.get("seq").and_then(Value::as_u64);
        stream.wrong += usize::from(seq.is_none() || stream.last.is_some() && seq <= stream.last);
        stream.last = seq;
    }
    streams
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_and_late_samples_are_wrong() {
        let sample = |tag: &str, seq: u64| serde_json::json!({ "tag": tag, "seq": seq });
        let samples = [sample("a", 0), sample("b", 0), sample("a", 1), sample("a", 1)];
        let streams = order(&samples);
        assert_eq!(streams.len(), 2);
        assert_eq!(streams["a"].wrong, 1);
        assert_eq!(streams["b"].wrong, 0);
    }
}
