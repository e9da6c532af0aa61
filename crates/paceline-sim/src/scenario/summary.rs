//! Summaries of runs, with the same figures for simulated and live runs.

mod flow;

pub use flow::{DelayQuantiles, Flow, Windows};

use super::plan::Plan;
use super::record::Record;
use paceline_proto::capacity::LinkCapacity;
use paceline_proto::reason::Drops;
use paceline_sched::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;

/// The summary of one run, in the order of the file. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The name of the scenario.
    pub name: String,
    /// The seed of all random decisions.
    pub seed: u64,
    /// The duration of the measurement.
    pub duration_ns: u64,
    /// Messages about values that are valid but probably unintended.
    pub warnings: Vec<String>,
    /// One row per subscriber and matching publisher.
    pub flows: Vec<Flow>,
    /// One row per link, direction and publisher.
    pub streams: Vec<StreamRow>,
    /// One row per link and direction.
    pub links: Vec<LinkRow>,
    /// One row per fault.
    pub faults: Vec<FaultRow>,
}

/// The counters of a publisher's samples in one direction of a link, over the whole run including the
/// warm-up.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct StreamRow {
    /// The sending node.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// The publisher of the samples.
    pub publisher: String,
    /// Samples passed to the link.
    pub offered: u64,
    /// Samples whose last byte was sent.
    pub sent: u64,
    /// Payload bytes sent.
    pub bytes: u64,
    /// Samples sent after their deadline.
    pub late: u64,
    /// Windows with more misses than the loss tolerance permits.
    pub violations: u64,
    /// Samples that were not sent, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
}

/// The traffic in one direction of a link during the measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkRow {
    /// The sending node.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// Bytes on the wire, including the headers of all layers.
    pub wire_bytes: u64,
    /// Utilisation in parts per million of the capacity, of the rate of the wire if that is measured; `None` for a link without a capacity.
    pub used_ppm: Option<u64>,
    /// Frames lost; `None` if unknown.
    pub lost: Option<u64>,
    /// Samples that were not sent, by reason, over the whole run including the warm-up.
    pub dropped: BTreeMap<&'static str, u64>,
}

/// The recovery from a fault.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct FaultRow {
    /// A description of the fault.
    pub fault: String,
    /// Its start.
    pub at_ns: u64,
    /// Its end; `None` if it lasts.
    pub until_ns: Option<u64>,
    /// Streams that ran before it.
    pub ran: u64,
    /// Streams among them that ran again after its end.
    pub again: u64,
    /// The time from the end of the fault until the last of these streams ran again. A stream runs again when
    /// its subscriber receives a sample that was published after the fault.
    pub again_after_ns: Option<u64>,
}

impl Summary {
    /// Summarises `record`, a run of `plan`.
    #[must_use]
    pub fn of(plan: &Plan, record: &Record, seed: u64) -> Self {
        let flows = flow::flows(plan, record);
        Self {
            name: plan.name.clone(),
            seed,
            duration_ns: plan.duration.as_nanos(),
            warnings: plan.warnings.clone(),
            streams: streams(plan, record),
            links: links(plan, record),
            faults: faults(plan, record, &flows),
            flows: flows.into_iter().map(|(_, flow)| flow).collect(),
        }
    }
}

/// Returns the numbers of samples by reason, under their names in JSON.
fn by_reason(drops: &Drops) -> BTreeMap<&'static str, u64> {
    drops.iter().map(|(reason, samples)| (reason.name(), samples)).collect()
}

fn ends(plan: &Plan, link: usize, direction: usize) -> Option<(String, String)> {
    let [a, b] = plan.links.get(link)?.between.map(|node| plan.node(node).to_owned());
    Some(if direction == 0 { (a, b) } else { (b, a) })
}

fn streams(plan: &Plan, record: &Record) -> Vec<StreamRow> {
    let row = |stream: &super::Streamed| {
        let (from, to) = ends(plan, stream.link, stream.direction)?;
        let counters = stream.counters;
        Some(StreamRow {
            from,
            to,
            publisher: plan.publishers.get(stream.publisher)?.tag.as_str().to_owned(),
            offered: counters.offered,
            sent: counters.sent,
            bytes: counters.bytes,
            late: counters.late,
            violations: counters.violations,
            dropped: by_reason(&counters.drops),
        })
    };
    record.streams.iter().filter_map(row).collect()
}

fn links(plan: &Plan, record: &Record) -> Vec<LinkRow> {
    let mut rows = Vec::new();
    for (link, (wiring, carried)) in plan.links.iter().zip(&record.links).enumerate() {
        let capacity = match wiring.capacity {
            Some(LinkCapacity::Measured { .. }) => wiring.wire.rate,
            Some(LinkCapacity::Fixed(capacity)) => Some(capacity),
            None => None,
        };
        let most = capacity.map(|capacity| capacity.bytes_in(plan.duration));
        for (direction, carried) in carried.iter().enumerate() {
            let Some((from, to)) = ends(plan, link, direction) else { continue };
            let millionths =
                |most: u64| u128::from(carried.bytes) * 1_000_000 / u128::from(most.max(1));
            let used_ppm = most.map(|most| u64::try_from(millionths(most)).unwrap_or(u64::MAX));
            let dropped = record.dropped.get(link).and_then(|directions| directions.get(direction));
            rows.push(LinkRow {
                from,
                to,
                wire_bytes: carried.bytes,
                used_ppm,
                lost: carried.lost,
                dropped: dropped.map(by_reason).unwrap_or_default(),
            });
        }
    }
    rows
}

/// A stream counts as running if it had a sample within this time before a fault, or within three periods if
/// it is slow.
const RAN: Duration = Duration::from_secs(2);

fn faults(plan: &Plan, record: &Record, flows: &[(flow::Key, Flow)]) -> Vec<FaultRow> {
    let mut rows = Vec::new();
    for fault in &plan.faults {
        let at = record.start + fault.at;
        let until = fault.until.map(|until| record.start + until);
        let mut row = FaultRow {
            fault: plan.describe(fault),
            at_ns: fault.at.as_nanos(),
            until_ns: fault.until.map(Duration::as_nanos),
            ran: 0,
            again: 0,
            again_after_ns: None,
        };
        for (key, _) in flows {
            let samples = key.samples(plan, record);
            let ran = |arrived: &Instant| {
                *arrived <= at && at.since(*arrived) <= RAN.max(key.period(plan).mul_div(3, 1))
            };
            if !samples.iter().any(|(_, arrived)| ran(arrived)) {
                continue;
            }
            row.ran += 1;
            let Some(until) = until else { continue };
            let first = samples
                .iter()
                .find(|(published, arrived)| *published >= until && *arrived >= until);
            if let Some((_, arrived)) = first {
                row.again += 1;
                row.again_after_ns = row.again_after_ns.max(Some(arrived.since(until).as_nanos()));
            }
        }
        rows.push(row);
    }
    rows
}
