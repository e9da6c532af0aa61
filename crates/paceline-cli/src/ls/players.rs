//! The table of the players of RTSP servers.

use paceline_http::status::StatusDocument;
use paceline_tool::show;
use paceline_tool::table::{Align::Left, Align::Name, Align::Right, Table};

/// Returns the players of each form, and their reception.
pub(super) fn table(document: &StatusDocument) -> Table {
    let mut table = Table::new(&[
        ("pattern", Name),
        ("node", Left),
        ("asked", Left),
        ("players", Right),
        ("left out", Left),
        ("lost", Right),
        ("loss", Right),
        ("jitter", Right),
        ("round trip", Right),
    ]);
    for node in &document.nodes {
        for subscription in &node.subscriptions {
            let Some(players) = &subscription.players else { continue };
            let left_out = players.left_out();
            let left_out = left_out.iter().filter(|(_, count)| *count > 0);
            let left_out: Vec<_> =
                left_out.map(|(reason, count)| format!("{count} {reason}")).collect();
            let trip = players.round_trip_max.map(show::time);
            table.row(vec![
                subscription.pattern.clone(),
                node.name.clone(),
                subscription.form_in_words(),
                players.players.to_string(),
                if left_out.is_empty() { "0".to_owned() } else { left_out.join(", ") },
                players.lost.to_string(),
                format!("{:.1} %", players.loss_max * 100.0),
                show::time(players.jitter_max),
                trip.unwrap_or_else(|| "-".to_owned()),
            ]);
        }
    }
    table
}
