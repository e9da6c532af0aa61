//! The summary of a run as tables.

use paceline_sched::Duration;
use paceline_sim::scenario::{FaultRow, Flow, LinkRow, StreamRow, Summary};
use paceline_tool::table::{Align, Table};
use std::collections::BTreeMap;
use std::fmt::Write as _;

use Align::{Left, Right};

/// Limit of the rows in a text table; JSON has all rows.
const ROWS_SHOWN: usize = 100;

/// Formats the summary as text.
pub(crate) fn text(summary: &Summary) -> String {
    let duration = Duration::from_nanos(summary.duration_ns);
    let mut out = format!("{}: {duration}, seed {}\n", summary.name, summary.seed);
    for warning in &summary.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    flows(&mut out, &summary.flows);
    streams(&mut out, &summary.streams);
    links(&mut out, &summary.links);
    faults(&mut out, &summary.faults);
    for flow in &summary.flows {
        if let Some(why) = &flow.refused {
            let _ = writeln!(out, "{} refused {}: {why}", flow.subscriber, flow.publisher);
        }
    }
    out
}

/// Formats nanoseconds as milliseconds with two decimals.
fn millis(nanos: u64) -> String {
    let hundredths = nanos.saturating_add(5_000) / 10_000;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn seconds(nanos: u64) -> String {
    let millis = nanos.saturating_add(500_000) / 1_000_000;
    format!("{}.{:03} s", millis / 1_000, millis % 1_000)
}

fn hertz(millihertz: u64) -> String {
    format!("{}.{:02}", millihertz / 1_000, millihertz % 1_000 / 10)
}

/// Formats samples by reason: `superseded 12, queue_full 3`.
fn reasons(dropped: &BTreeMap<&str, u64>) -> String {
    let all = dropped.iter().map(|(reason, samples)| format!("{reason} {samples}"));
    let all = all.collect::<Vec<_>>().join(", ");
    if all.is_empty() { "-".to_owned() } else { all }
}

fn table<T>(
    out: &mut String,
    columns: &[(&'static str, Align)],
    rows: &[T],
    cells: impl Fn(&T) -> Vec<String>,
) {
    if rows.is_empty() {
        return;
    }
    let mut table = Table::new(columns);
    rows.iter().take(ROWS_SHOWN).for_each(|row| table.row(cells(row)));
    let _ = write!(out, "\n{}", table.render(usize::MAX));
    if let Some(more) = rows.len().checked_sub(ROWS_SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(out, "and {more} more; --json prints all");
    }
}

fn flows(out: &mut String, flows: &[Flow]) {
    let columns = [
        ("SUBSCRIBER", Left),
        ("TAG", Left),
        ("ASKED", Left),
        ("SENT", Right),
        ("DELIVERED", Right),
        ("HZ", Right),
        ("BYTES", Right),
        ("LATE", Right),
        ("P50 MS", Right),
        ("P99", Right),
        ("P99.9", Right),
        ("MAX", Right),
        ("VIOLATED", Right),
        ("GAP MS", Right),
        ("LOST HERE", Left),
    ];
    table(out, &columns, flows, |flow| {
        let delay = |of: fn(&paceline_sim::scenario::DelayQuantiles) -> u64| {
            flow.delay_ns.as_ref().map_or_else(|| "-".to_owned(), |delays| millis(of(delays)))
        };
        let violated = flow.windows.map(|windows| format!("{}/{}", windows.violated, windows.all));
        let nothing = || "-".to_owned();
        vec![
            flow.subscriber.clone(),
            flow.publisher.clone(),
            flow.asked.clone(),
            flow.sent.to_string(),
            if flow.refused.is_some() { "refused".to_owned() } else { flow.delivered.to_string() },
            hertz(flow.rate_millihertz),
            flow.bytes.to_string(),
            flow.late.to_string(),
            delay(|delays| delays.p50),
            delay(|delays| delays.p99),
            delay(|delays| delays.p999),
            delay(|delays| delays.max),
            violated.unwrap_or_else(nothing),
            millis(flow.gap_ns),
            reasons(&flow.dropped),
        ]
    });
}

fn streams(out: &mut String, streams: &[StreamRow]) {
    let columns = [
        ("STREAM", Left),
        ("FROM", Left),
        ("TO", Left),
        ("OFFERED", Right),
        ("SENT", Right),
        ("BYTES", Right),
        ("LATE", Right),
        ("VIOLATED", Right),
        ("DROPPED", Left),
    ];
    table(out, &columns, streams, |stream| {
        vec![
            stream.publisher.clone(),
            stream.from.clone(),
            stream.to.clone(),
            stream.offered.to_string(),
            stream.sent.to_string(),
            stream.bytes.to_string(),
            stream.late.to_string(),
            stream.violations.to_string(),
            reasons(&stream.dropped),
        ]
    });
}

fn links(out: &mut String, links: &[LinkRow]) {
    let columns =
        [("FROM", Left), ("TO", Left), ("WIRE BYTES", Right), ("USED", Right), ("LOST", Right)];
    table(out, &columns, links, |link| {
        let used = link.used_ppm.map(|ppm| format!("{}.{} %", ppm / 10_000, ppm % 10_000 / 1_000));
        let nothing = || "-".to_owned();
        vec![
            link.from.clone(),
            link.to.clone(),
            link.wire_bytes.to_string(),
            used.unwrap_or_else(nothing),
            link.lost.map_or_else(nothing, |lost| lost.to_string()),
        ]
    });
}

fn faults(out: &mut String, faults: &[FaultRow]) {
    let columns =
        [("FAULT", Left), ("AT", Right), ("UNTIL", Right), ("RAN AGAIN", Right), ("AFTER", Right)];
    table(out, &columns, faults, |fault| {
        let until = fault.until_ns.map_or_else(|| "the end".to_owned(), seconds);
        let after = fault.again_after_ns.map_or_else(|| "-".to_owned(), seconds);
        let again = format!("{} of {}", fault.again, fault.ran);
        vec![fault.fault.clone(), seconds(fault.at_ns), until, again, after]
    });
}
