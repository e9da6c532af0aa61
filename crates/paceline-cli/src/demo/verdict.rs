//! Compares the delivered quality with the requested one.

use super::children::Event;
use super::line::{Dropped, Line, LinkLine, Measured, PublisherLine, RobotLine, RowLine};
use super::scenario::{RATE_BAND_HZ, ROWS, Row};
use paceline_tool::stats::round3;
use serde::Serialize;
use std::time::Duration;

/// The latest reports of the nodes.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) robot: RobotLine,
    rows: [RowLine; ROWS.len()],
}

/// One line of `--json`.
#[derive(Serialize)]
pub(crate) struct SecondLine<'a> {
    t_s: f64,
    rows: Vec<RowReport>,
    publishers: &'a [PublisherLine],
    links: &'a [LinkLine],
}

/// The last line of `--json`.
#[derive(Serialize)]
pub(crate) struct SummaryLine<'a> {
    pub(crate) summary: &'a Summary,
}

/// The result of the run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    /// True if every row is.
    pub(crate) ok: bool,
    /// The result of each subscriber.
    pub(crate) rows: Vec<RowReport>,
    publishers: Vec<PublisherLine>,
    links: Vec<LinkLine>,
}

/// The requested and the delivered quality of one subscriber.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RowReport {
    pub(crate) row: &'static str,
    tag: &'static str,
    asked: Asked,
    /// The figures of the last second, or in the summary since the warm-up.
    pub(crate) delivered: Measured,
    width: Option<u32>,
    height: Option<u32>,
    /// The number of dropped samples by reason.
    pub(crate) dropped: Dropped,
    refused: Vec<String>,
    /// True if the request was met; only in the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ok: Option<bool>,
    /// The reasons if it was not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) why: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Asked {
    rate_hz: u32,
    width: Option<u32>,
    height: Option<u32>,
    within_us: Option<u64>,
    loss: Option<String>,
}

impl State {
    /// Stores a report.
    pub(crate) fn take(&mut self, event: Event) {
        let Event::Line(line) = event else { return };
        match *line {
            Line::Robot(robot) => self.robot = robot,
            Line::Row(line) => {
                if let Some(row) = self.rows.get_mut(line.row) {
                    *row = line;
                }
            }
        }
    }

    /// Returns each subscriber with its latest report.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static Row, &RowLine)> {
        ROWS.iter().zip(&self.rows)
    }

    /// Returns true if every subscriber has received a sample.
    pub(crate) fn all_begun(&self) -> bool {
        self.rows.iter().all(|line| line.delivered > 0)
    }

    /// Returns the subscribers without samples, with the reason if it is known.
    pub(crate) fn silent(&self) -> Vec<String> {
        let silent = self.rows().filter(|(_, line)| line.delivered == 0);
        silent
            .map(|(row, line)| match line.refused.last() {
                Some(refusal) => format!("'{}' ({refusal})", row.name),
                None => format!("'{}'", row.name),
            })
            .collect()
    }

    /// Returns the report of one second.
    pub(crate) fn second(&self, since: Duration) -> SecondLine<'_> {
        SecondLine {
            t_s: round3(since.as_secs_f64()),
            rows: self.rows().map(|(row, line)| self.report(row, line, line.second)).collect(),
            publishers: &self.robot.publishers,
            links: &self.robot.links,
        }
    }

    /// Returns the result since the warm-up.
    pub(crate) fn summary(&self) -> Summary {
        let rows: Vec<RowReport> = self
            .rows()
            .map(|(row, line)| {
                let why = failings(row, line);
                let report = self.report(row, line, line.whole);
                RowReport { ok: Some(why.is_empty()), why, ..report }
            })
            .collect();
        Summary {
            ok: rows.iter().all(|row| row.why.is_empty()),
            rows,
            publishers: self.robot.publishers.clone(),
            links: self.robot.links.clone(),
        }
    }

    fn report(&self, row: &'static Row, line: &RowLine, delivered: Measured) -> RowReport {
        RowReport {
            row: row.name,
            tag: row.tag,
            asked: Asked {
                rate_hz: row.hz,
                width: row.size.map(|size| size.width),
                height: row.size.map(|size| size.height),
                within_us: row.within.map(paceline_tool::show::micros),
                loss: row.loss.map(|(x, y)| format!("{x}/{y}")),
            },
            delivered,
            width: line.size.map(|(width, _)| width),
            height: line.size.map(|(_, height)| height),
            dropped: self.dropped(row, line),
            refused: line.refused.clone(),
            ok: None,
            why: Vec::new(),
        }
    }

    /// Returns the dropped samples of a row: on the robot's link to it and at the subscriber.
    pub(crate) fn dropped(&self, row: &Row, line: &RowLine) -> Dropped {
        let form = row.form().to_string();
        let links = self.robot.links.iter().filter(|link| link.name == row.role.link());
        let streams = links
            .flat_map(|link| &link.streams)
            .filter(|stream| stream.tag.as_deref() == Some(row.tag) && stream.form == form);
        let mut all = line.dropped.clone();
        for (reason, count) in streams.flat_map(|stream| &stream.dropped) {
            *all.entry(reason.clone()).or_default() += count;
        }
        all
    }
}

/// Returns the differences between the request and the delivery.
fn failings(row: &Row, line: &RowLine) -> Vec<String> {
    let mut why = Vec::new();
    if let Some(refusal) = line.refused.last() {
        why.push(format!("refused: {refusal}"));
    }
    let (asked, got) = (f64::from(row.hz), line.whole.rate_hz);
    if (got - asked).abs() > RATE_BAND_HZ {
        why.push(format!("{got:.2} Hz, requested {asked} ± {RATE_BAND_HZ}"));
    }
    let size = row.size.map(|size| (size.width, size.height));
    if line.size != size {
        let text = |size: Option<(u32, u32)>| {
            size.map_or_else(|| "no picture".to_owned(), |(w, h)| format!("{w}x{h}"))
        };
        why.push(format!("{}, requested {}", text(line.size), text(size)));
    }
    if let Some((x, y)) = row.loss
        && line.whole.beyond > 0
    {
        why.push(format!(
            "{} windows of {y} samples had more than {x} late or lost",
            line.whole.beyond
        ));
    }
    why
}

#[cfg(test)]
pub(crate) mod tests;
