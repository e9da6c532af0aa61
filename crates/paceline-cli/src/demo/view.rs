//! The demo's table.

use super::line::Dropped;
use super::scenario::{LAN, THIN};
use super::verdict::{State, Summary};
use paceline_tool::show;
use paceline_tool::table::{Align::Left, Align::Right, Table, width};
use std::time::Duration;

/// Formats the table: of the last second if `since` is given, which is the time since the start;
/// otherwise of the whole run.
pub(crate) fn table(state: &State, since: Option<Duration>) -> String {
    let mut table = Table::new(&[
        ("subscriber", Left),
        ("asked", Left),
        ("Hz", Right),
        ("size", Left),
        ("p50 ms", Right),
        ("p99 ms", Right),
        ("late", Right),
        ("lost", Right),
        ("dropped", Left),
    ]);
    for (row, line) in state.rows() {
        let got = if since.is_some() { line.second } else { line.whole };
        let size = line.size.map_or_else(|| "-".to_owned(), |(w, h)| format!("{w}x{h}"));
        table.row(vec![
            row.name.to_owned(),
            row.request(),
            format!("{:.1}", got.rate_hz),
            size,
            show::millis(got.p50_us),
            show::millis(got.p99_us),
            line.whole.late.to_string(),
            line.whole.lost.to_string(),
            line.refused.last().cloned().unwrap_or_else(|| why(&state.dropped(row, line))),
        ]);
    }
    let when = since.map_or_else(
        || "over the whole run after the first 2 s".to_owned(),
        |since| format!("{} s", since.as_secs()),
    );
    format!(
        "robot/camera 640x480 at 30 Hz and robot/steer at 100 Hz; {when}\n\n{}\n{}",
        table.render(width()),
        links(state)
    )
}

/// Formats the rates of one second, for output that cannot be updated in place.
pub(crate) fn seconds_line(state: &State, since: Duration) -> String {
    let rates: Vec<String> = state
        .rows()
        .map(|(row, line)| {
            format!("{} {:.1} of {} Hz", row.name.replace(", ", " "), line.second.rate_hz, row.hz)
        })
        .collect();
    format!("{:>3} s: {}", since.as_secs(), rates.join("; "))
}

/// Formats the result.
pub(crate) fn verdict(summary: &Summary) -> String {
    if summary.ok {
        return "every subscriber received the requested service".to_owned();
    }
    let failed = summary.rows.iter().filter(|row| !row.why.is_empty());
    let lines: Vec<String> = failed
        .map(|row| format!("NOT delivered to '{}': {}", row.row, row.why.join("; ")))
        .collect();
    lines.join("\n")
}

fn links(state: &State) -> String {
    let mut out = String::new();
    for link in state.robot.links.iter().filter(|link| [THIN, LAN].contains(&link.name.as_str())) {
        let used = show::bits(link.use_bits_per_s.unwrap_or_default());
        let of = link.capacity_bits_per_s.map_or_else(
            || "no limit".to_owned(),
            |capacity| {
                let percent = link.use_bits_per_s.unwrap_or_default() * 100 / capacity.max(1);
                format!("of {}, {percent} %", show::bits(capacity))
            },
        );
        out.push_str(&format!("link {}: {used}, {of}\n", link.name));
    }
    out
}

fn why(dropped: &Dropped) -> String {
    let reasons: Vec<String> =
        dropped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if reasons.is_empty() { "0".to_owned() } else { reasons.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::good;
    use super::*;

    #[test]
    fn the_table_fits_and_shows_requested_next_to_delivered() {
        let text = table(&good(), Some(Duration::from_secs(7)));
        assert!(text.lines().all(|line| line.chars().count() <= width()), "{text}");
        let operator = text.lines().find(|line| line.starts_with("operator")).unwrap();
        for part in ["5 Hz 160x120 ≤200 ms 1/10", "5.0", "1.23", "4.56", "2 superseded"] {
            assert!(operator.contains(part), "{operator}");
        }
        assert!(text.contains("link thin: 500 kbit/s, of 2 Mbit/s, 25 %"), "{text}");
    }

    #[test]
    fn one_second_is_one_line_without_a_terminal() {
        let line = seconds_line(&good(), Duration::from_secs(7));
        assert_eq!(
            line,
            "  7 s: console all 30.0 of 30 Hz; console some 10.0 of 10 Hz; operator 5.0 of 5 Hz; \
             steering 100.0 of 100 Hz"
        );
    }

    #[test]
    fn the_verdict_names_the_unserved_subscribers() {
        assert_eq!(verdict(&good().summary()), "every subscriber received the requested service");
        let bad = verdict(&State::default().summary());
        assert!(
            bad.starts_with("NOT delivered to 'console, all': 0.00 Hz, requested 30 ± 0.5"),
            "{bad}"
        );
    }
}
