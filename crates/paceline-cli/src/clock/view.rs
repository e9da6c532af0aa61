//! The text of `paceline clock`.

use super::document::{ClockDocument, ServerRow};
use crate::pull::rfc3339_of;
use paceline::time::{SourceKind, SourcePart};
use paceline_tool::table::{Align::Left, Align::Right, Table, width};
use std::fmt::Write as _;

/// Formats the state of a clock and the table of its servers.
pub(crate) fn text(document: &ClockDocument) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: String| {
        let _ = writeln!(out, "{name:<10} {value}");
    };
    if let Some(node) = &document.node {
        row("node", node.clone());
    }
    row("status", document.status.to_owned());
    let error = document
        .error_ns
        .map_or("of unknown error".to_owned(), |error| format!("± {}", nanos(error)));
    row("time", format!("{} {error}", rfc3339_of(document.time_ns)));
    if document.error_ns.is_some() {
        row("system", system(document.system_offset_ns));
        row("frequency", format!("{:+.3} ppm", document.frequency_ppm));
    }
    if let Some(stratum) = document.stratum {
        row(
            "stratum",
            format!("{stratum}, jitter {}, leap {}", nanos(document.jitter_ns), document.leap),
        );
    }
    if document.follows_host {
        row("follows", "the clock of this host's node".to_owned());
    }
    if let Some(cause) = &document.disruption {
        row("disrupted", format!("{} times, last by {cause}", document.disruptions));
    }
    if let Some(serves) = &document.serves {
        let over = serves.kissed + serves.limited;
        let wrong = match serves.unauthenticated {
            0 => String::new(),
            count => format!(", {count} by unknown keys"),
        };
        let counts = format!("{} answered, {over} over the rate limit{wrong}", serves.answered);
        row("serves", format!("{}: {counts}", serves.address));
    }
    if document.servers.is_empty() {
        if !document.follows_host {
            out.push_str(
                "no servers: name some under [clock] in the configuration, connect to a node that has a clock, or measure \
                 a server with --server\n",
            );
        }
        return out;
    }
    let _ = write!(out, "\nSERVERS\n{}", servers(&document.servers).render(width()));
    let is_unsure = |row: &ServerRow| {
        row.kind == SourceKind::Neighbour.name() && row.part == SourcePart::Unsynchronised.name()
    };
    if document.servers.iter().all(is_unsure) {
        out.push_str(
            "no neighbour has a clock of its own: name servers under [clock] there or here\n",
        );
    }
    let silent = |row: &&ServerRow| row.key.is_some() && row.part == SourcePart::Unreachable.name();
    for row in document.servers.iter().filter(silent) {
        let _ = writeln!(
            out,
            "{}: no answer; some servers drop requests by a key that they do not have, so compare the key files",
            name(row)
        );
    }
    out
}

/// Returns the name of a server: its address with its key, or the node.
fn name(row: &ServerRow) -> String {
    match row.key {
        Some(key) => format!("{} key {key}", row.address),
        None if row.kind == SourceKind::Neighbour.name() => format!("node {}", row.address),
        None => row.address.clone(),
    }
}

fn servers(rows: &[ServerRow]) -> Table {
    let mut table = Table::new(&[
        ("server", Left),
        ("part", Left),
        ("stratum", Right),
        ("reach", Right),
        ("poll", Right),
        ("offset", Right),
        ("delay", Right),
        ("jitter", Right),
        ("error", Right),
        ("rejected", Left),
    ]);
    for row in rows {
        let measured = |value: u64| row.error_ns.map_or("-".to_owned(), |_| nanos(value));
        let sign = if row.offset_ns < 0 { "-" } else { "+" };
        let rejected: Vec<_> =
            row.rejected.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
        table.row(vec![
            name(row),
            row.part.to_owned(),
            row.stratum.map_or("-".to_owned(), |stratum| stratum.to_string()),
            format!("{}/8", row.reach.count_ones()),
            nanos(row.poll_us.saturating_mul(1_000)),
            row.error_ns.map_or("-".to_owned(), |_| {
                format!("{sign}{}", nanos(row.offset_ns.unsigned_abs()))
            }),
            measured(row.delay_ns),
            measured(row.jitter_ns),
            row.error_ns.map_or("-".to_owned(), nanos),
            rejected.join(", "),
        ]);
    }
    table
}

fn system(offset: i64) -> String {
    let by = nanos(offset.unsigned_abs());
    let way = if offset < 0 { "behind" } else { "ahead" };
    format!("the system clock is {by} {way}")
}

/// Formats a duration in the unit that gives it at least one digit before the point, with three digits.
fn nanos(nanos: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let Some((size, unit)) = units.into_iter().find(|(size, _)| nanos >= *size) else {
        return format!("{nanos}ns");
    };
    let (whole, thousandths) = (nanos / size, nanos % size * 1_000 / size);
    match whole {
        0..10 => format!("{whole}.{:02}{unit}", thousandths / 10),
        10..100 => format!("{whole}.{}{unit}", thousandths / 100),
        _ => format!("{whole}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        for (value, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1.00us"),
            (12_345, "12.3us"),
            (123_456_789, "123ms"),
            (16_000_000_000, "16.0s"),
        ] {
            assert_eq!(nanos(value), text);
        }
    }
}
