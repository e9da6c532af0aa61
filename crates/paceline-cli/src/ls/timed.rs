//! The table of subscriptions with delivery by time.

use paceline_http::status::StatusDocument;
use paceline_tool::show;
use paceline_tool::table::{Align::Left, Align::Name, Align::Right, Table};
use std::time::Duration;

/// Returns the settings and counters of delivery by time.
pub(super) fn table(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        ("pattern", Name),
        ("node", Left),
        ("delivery", Left),
        ("setting", Left),
        ("released", Right),
        ("late", Right),
        ("dropped", Right),
        ("jitter in", Right),
        ("out", Right),
        ("error", Right),
        ("notes", Left),
    ]);
    let micros = |time: Option<Duration>| {
        time.map_or_else(|| "-".to_owned(), |time| format!("{} us", show::micros(time)))
    };
    for node in &document.nodes {
        for subscription in &node.subscriptions {
            let Some(timed) = &subscription.timed else { continue };
            let notes = [
                (timed.silences, "silences"),
                (timed.unknown, "of unknown order"),
                (timed.beyond, "beyond the jitter"),
                (timed.early, "early"),
                (timed.jumps, "jumps"),
            ];
            let notes = notes.iter().filter(|(count, _)| *count > 0);
            let notes: Vec<_> = notes.map(|(count, what)| format!("{count} {what}")).collect();
            table.row(vec![
                subscription.pattern.clone(),
                node.name.clone(),
                timed.method.name().replace('_', "-"),
                timed.setting.clone(),
                timed.released.to_string(),
                timed.late.to_string(),
                timed.refused.to_string(),
                micros(timed.jitter_in),
                micros(timed.jitter_out),
                micros(timed.bound),
                if notes.is_empty() { "-".to_owned() } else { notes.join(", ") },
            ]);
        }
    }
    table
}
