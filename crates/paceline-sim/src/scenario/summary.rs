//! What came of a run: the same figures for both worlds.

mod flow;

pub use flow::{Delays, Flow, Windows};

use super::plan::Plan;
use super::record::Record;
use paceline_proto::reason::Drops;
use paceline_sched::{Duration, Instant};
use serde::Serialize;
use std::collections::BTreeMap;

/// The sums of one run, in the order of the file. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario.
    pub name: String,
    /// What decided about chance.
    pub seed: u64,
    /// What was counted.
    pub duration_ns: u64,
    /// What is allowed and probably not meant.
    pub warnings: Vec<String>,
    /// One row for each publisher that a subscriber asks for.
    pub flows: Vec<Flow>,
    /// One row for each link, way and publisher.
    pub streams: Vec<StreamRow>,
    /// One row for each link and way.
    pub links: Vec<LinkRow>,
    /// One row for each fault.
    pub faults: Vec<FaultRow>,
}

/// What one way of a link made of a publisher's samples, over the whole run with its warm-up.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct StreamRow {
    /// From which node.
    pub from: String,
    /// To which.
    pub to: String,
    /// Whose samples.
    pub publisher: String,
    /// Samples handed to the link.
    pub offered: u64,
    /// Samples whose last byte was sent.
    pub sent: u64,
    /// Payload bytes that were sent.
    pub bytes: u64,
    /// Samples sent after their deadline.
    pub late: u64,
    /// Windows with more misses than the loss tolerance allows.
    pub violations: u64,
    /// Samples that were not sent, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
}

/// What one way of a link carried in the duration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkRow {
    /// From which node.
    pub from: String,
    /// To which.
    pub to: String,
    /// Bytes on the wire, headers of all layers counted.
    pub wire_bytes: u64,
    /// Their share of what the link carries, in millionths; `None` for a link that takes whatever comes.
    pub used_ppm: Option<u64>,
    /// Frames that were lost; `None` where nobody counts them.
    pub lost: Option<u64>,
    /// Samples that were not sent, by reason, over the whole run with its warm-up.
    pub dropped: BTreeMap<&'static str, u64>,
}

/// What followed a fault.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct FaultRow {
    /// What went wrong.
    pub fault: String,
    /// When.
    pub at_ns: u64,
    /// When it was mended; `None` if never.
    pub until_ns: Option<u64>,
    /// Streams that ran before it.
    pub ran: u64,
    /// How many of them ran again after it was mended.
    pub again: u64,
    /// From the mend until the last of those ran: until each subscriber had a sample that was published
    /// after the mend.
    pub again_after_ns: Option<u64>,
}

impl Summary {
    /// The sums of `record`, a run of `plan`.
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

/// Samples by reason, under their names in JSON.
fn by_reason(drops: &Drops) -> BTreeMap<&'static str, u64> {
    drops.iter().map(|(reason, samples)| (reason.name(), samples)).collect()
}

fn ends(plan: &Plan, link: usize, way: usize) -> Option<(String, String)> {
    let [a, b] = plan.links.get(link)?.between.map(|node| plan.node(node).to_owned());
    Some(if way == 0 { (a, b) } else { (b, a) })
}

fn streams(plan: &Plan, record: &Record) -> Vec<StreamRow> {
    let row = |stream: &super::Streamed| {
        let (from, to) = ends(plan, stream.link, stream.way)?;
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
        let most = wiring.capacity.map(|capacity| capacity.bytes_in(plan.duration));
        for (way, carried) in carried.iter().enumerate() {
            let Some((from, to)) = ends(plan, link, way) else { continue };
            let millionths =
                |most: u64| u128::from(carried.bytes) * 1_000_000 / u128::from(most.max(1));
            let used_ppm = most.map(|most| u64::try_from(millionths(most)).unwrap_or(u64::MAX));
            let dropped = record.dropped.get(link).and_then(|ways| ways.get(way));
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

/// How long before a fault a stream must have had a sample to count as running; of a slow one three
/// periods.
const RAN: Duration = Duration::from_secs(2);

fn faults(plan: &Plan, record: &Record, flows: &[(flow::Key, Flow)]) -> Vec<FaultRow> {
    let mut rows = Vec::new();
    for fault in &plan.faults {
        let at = record.start + fault.at;
        let until = fault.until.map(|until| record.start + until);
        let mut row = FaultRow {
            fault: plan.told(fault),
            at_ns: fault.at.as_nanos(),
            until_ns: fault.until.map(Duration::as_nanos),
            ran: 0,
            again: 0,
            again_after_ns: None,
        };
        for (key, _) in flows {
            let samples = key.samples(plan, record);
            let ran = |came: &Instant| {
                *came <= at && at.since(*came) <= RAN.max(key.period(plan).mul_div(3, 1))
            };
            if !samples.iter().any(|(_, came)| ran(came)) {
                continue;
            }
            row.ran += 1;
            let Some(until) = until else { continue };
            let first =
                samples.iter().find(|(published, came)| *published >= until && *came >= until);
            if let Some((_, came)) = first {
                row.again += 1;
                row.again_after_ns = row.again_after_ns.max(Some(came.since(until).as_nanos()));
            }
        }
        rows.push(row);
    }
    rows
}
