//! The document of `paceline clock --json`, described in docs/reference/json.md.

use paceline::time::{ClockReport, SourceReport};
use serde::Serialize;
use std::collections::BTreeMap;

/// The state of a clock.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClockDocument {
    pub(crate) schema: u32,
    pub(crate) node: Option<String>,
    pub(crate) status: &'static str,
    pub(crate) time_ns: u64,
    pub(crate) error_ns: Option<u64>,
    pub(crate) epoch: u64,
    pub(crate) system_offset_ns: i64,
    pub(crate) frequency_ppm: f64,
    pub(crate) jitter_ns: u64,
    pub(crate) stratum: Option<u8>,
    pub(crate) leap: String,
    pub(crate) updates: u64,
    pub(crate) disruptions: u64,
    pub(crate) disruption: Option<String>,
    pub(crate) follows_host: bool,
    pub(crate) serves: Option<Serves>,
    pub(crate) servers: Vec<ServerRow>,
}

/// The service of a node for NTP clients.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Serves {
    pub(crate) address: String,
    pub(crate) answered: u64,
    pub(crate) kissed: u64,
    pub(crate) limited: u64,
    pub(crate) malformed: u64,
    pub(crate) unauthenticated: u64,
}

/// A server of a clock.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ServerRow {
    pub(crate) kind: &'static str,
    pub(crate) address: String,
    pub(crate) key: Option<u32>,
    pub(crate) part: &'static str,
    pub(crate) stratum: Option<u8>,
    pub(crate) reach: u8,
    pub(crate) poll_us: u64,
    pub(crate) offset_ns: i64,
    pub(crate) delay_ns: u64,
    pub(crate) jitter_ns: u64,
    pub(crate) error_ns: Option<u64>,
    pub(crate) answers: u64,
    pub(crate) rejected: BTreeMap<String, u64>,
}

impl ClockDocument {
    /// Returns the document of a clock; `node` is the name of its node.
    pub(crate) fn new(node: Option<&str>, report: &ClockReport) -> Self {
        let [answered, kissed, limited, malformed, unauthenticated] = report.served;
        let serves = report.serves.clone();
        Self {
            schema: 1,
            node: node.map(str::to_owned),
            status: report.status.name(),
            time_ns: report.nanos,
            error_ns: report.error_nanos,
            epoch: report.epoch,
            system_offset_ns: report.system_offset_nanos,
            frequency_ppm: parts_per_million(report.frequency_ppt),
            jitter_ns: report.jitter_nanos,
            stratum: report.stratum,
            leap: report.leap.clone(),
            updates: report.updates,
            disruptions: report.disruptions,
            disruption: report.disruption.clone(),
            follows_host: report.is_follower,
            serves: serves.map(|address| Serves {
                address,
                answered,
                kissed,
                limited,
                malformed,
                unauthenticated,
            }),
            servers: report.sources.iter().map(server).collect(),
        }
    }
}

/// Converts parts per trillion; three decimals.
fn parts_per_million(ppt: i64) -> f64 {
    // Below 2^53, so exact.
    #[expect(clippy::cast_precision_loss, reason = "at most 5e8 parts per trillion")]
    let thousandths = (ppt / 1_000) as f64;
    thousandths / 1_000.0
}

fn server(source: &SourceReport) -> ServerRow {
    ServerRow {
        kind: source.kind.name(),
        address: source.address.clone(),
        key: source.key,
        part: source.selection.name(),
        stratum: source.stratum,
        reach: source.reach,
        poll_us: u64::try_from(source.poll.as_micros()).unwrap_or(u64::MAX),
        offset_ns: source.offset_nanos,
        delay_ns: source.delay_nanos,
        jitter_ns: source.jitter_nanos,
        error_ns: source.error_nanos,
        answers: source.answers,
        rejected: source.rejected.iter().cloned().collect(),
    }
}
