//! The text of `paceline clock`.

use super::document::ClockDocument;
use crate::pull::rfc3339_of;
use paceline::time::{SourceKind, SourcePart, SourceReport};
use paceline_tool::show::micros;
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
    let clock = &document.clock;
    row("status", clock.status.to_string());
    let error = clock
        .error_nanos
        .map_or("of unknown error".to_owned(), |error| format!("± {}", nanos(error)));
    row("time", format!("{} {error}", rfc3339_of(clock.nanos)));
    if clock.error_nanos.is_some() {
        row("system", system(clock.system_offset_nanos));
        row("frequency", format!("{} ppm", parts_per_million(clock.frequency_ppt)));
    }
    if let Some(stratum) = clock.stratum {
        row(
            "stratum",
            format!("{stratum}, jitter {}, leap {}", nanos(clock.jitter_nanos), clock.leap),
        );
    }
    if clock.is_follower {
        row("follows", "the clock of this host's node".to_owned());
    }
    if let Some(cause) = &clock.disruption {
        row("disrupted", format!("{} times, last by {cause}", clock.disruptions));
    }
    if let Some(serves) = &clock.serves {
        let over = serves.kissed + serves.limited;
        let wrong = match serves.unauthenticated {
            0 => String::new(),
            count => format!(", {count} by unknown keys"),
        };
        let counts = format!("{} answered, {over} over the rate limit{wrong}", serves.answered);
        row("serves", format!("{}: {counts}", serves.address));
    }
    if clock.sources.is_empty() {
        if !clock.is_follower {
            out.push_str(
                "no servers: name some under [clock] in the configuration, connect to a node that has a clock, or measure \
                 a server with --server\n",
            );
        }
        return out;
    }
    let _ = write!(out, "\nSERVERS\n{}", servers(&clock.sources).render(width()));
    let is_unsure = |row: &SourceReport| {
        row.kind == SourceKind::Neighbour && row.selection == SourcePart::Unsynchronised
    };
    if clock.sources.iter().all(is_unsure) {
        out.push_str(
            "no neighbour has a clock of its own: name servers under [clock] there or here\n",
        );
    }
    let silent =
        |row: &&SourceReport| row.key.is_some() && row.selection == SourcePart::Unreachable;
    for row in clock.sources.iter().filter(silent) {
        let _ = writeln!(
            out,
            "{}: no answer; some servers drop requests by a key that they do not have, so compare the key files",
            name(row)
        );
    }
    out
}

/// Returns the name of a server: its address with its key, or the node.
fn name(row: &SourceReport) -> String {
    match row.key {
        Some(key) => format!("{} key {key}", row.address),
        None if row.kind == SourceKind::Neighbour => format!("node {}", row.address),
        None => row.address.clone(),
    }
}

fn servers(rows: &[SourceReport]) -> Table {
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
        let measured = |value: u64| row.error_nanos.map_or("-".to_owned(), |_| nanos(value));
        let sign = if row.offset_nanos < 0 { "-" } else { "+" };
        let rejected: Vec<_> =
            row.rejected.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
        table.row(vec![
            name(row),
            row.selection.name().to_owned(),
            row.stratum.map_or("-".to_owned(), |stratum| stratum.to_string()),
            format!("{}/8", row.reach.count_ones()),
            nanos(micros(row.poll).saturating_mul(1_000)),
            row.error_nanos.map_or("-".to_owned(), |_| {
                format!("{sign}{}", nanos(row.offset_nanos.unsigned_abs()))
            }),
            measured(row.delay_nanos),
            measured(row.jitter_nanos),
            row.error_nanos.map_or("-".to_owned(), nanos),
            rejected.join(", "),
        ]);
    }
    table
}

/// Formats parts per trillion as parts per million with a sign and three decimals.
fn parts_per_million(ppt: i64) -> String {
    let sign = if ppt <= -1_000 { '-' } else { '+' };
    let thousandths = ppt.unsigned_abs() / 1_000;
    format!("{sign}{}.{:03}", thousandths / 1_000, thousandths % 1_000)
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
