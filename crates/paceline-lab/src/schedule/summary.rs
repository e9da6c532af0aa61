//! The summary of a run.

use super::stream::Id;
use paceline_sched::discipline::StreamIndex;
use paceline_sched::hfsc::ClassIndex;
use paceline_sched::timeline::{Ahead, DelayDistribution, Doubt, Load, Setup, Tally, Timeline};
use paceline_sched::{Duration, Instant};
use paceline_tool::table::{Align, Table};
use serde::Serialize;

/// Limit of the rows in the text table; JSON has all rows.
const ROWS_SHOWN: usize = 100;
const MILLION: f64 = 1_000_000.0;

/// The setup and results of a run.
pub(super) struct Sums<'a> {
    pub(super) setup: Setup,
    pub(super) doubts: Vec<Doubt>,
    pub(super) load: Load,
    pub(super) ids: &'a [Id],
    pub(super) tallies: &'a [Tally],
    pub(super) classes: Vec<(Id, ClassIndex)>,
}

/// The last line.
#[derive(Serialize)]
pub(super) struct SummaryLine<R> {
    summary: Summary<R>,
}

#[derive(Serialize)]
struct Summary<R> {
    discipline: &'static str,
    eligibility: &'static str,
    end_ns: u64,
    decided: u64,
    violations: u64,
    utilisation: f64,
    offered_load: f64,
    link_use: f64,
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<ClassRow>,
    streams: R,
}

/// The service of one class, including all classes below it.
#[derive(Serialize)]
struct ClassRow {
    class: Id,
    bytes: u64,
    by_real_time: u64,
}

/// The results of one stream.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    stream: &'a Id,
    offered: u64,
    on_time: u64,
    late: u64,
    dropped: u64,
    policed: u64,
    waiting: u64,
    windows: u64,
    violations: u64,
    misses_max: u32,
    miss_run_max: u64,
    bytes: u64,
    share: f64,
    delay_ns: Option<DelayLine>,
}

#[derive(Serialize)]
struct DelayLine {
    p50: u64,
    p99: u64,
    max: u64,
}

impl DelayLine {
    fn of(delays: &DelayDistribution) -> Option<Self> {
        let nanos = |permille| delays.permille(permille).as_nanos();
        let max = delays.max().as_nanos();
        (delays.count() > 0).then(|| Self { p50: nanos(500), p99: nanos(990), max })
    }
}

/// Returns `part / whole`, rounded to six decimals.
fn share(part: Duration, whole: Instant) -> f64 {
    let whole = u128::from(whole.as_nanos());
    let millionths = u128::from(part.as_nanos()) * 1_000_000 + whole / 2;
    let millionths = millionths.checked_div(whole).unwrap_or(0);
    millionths_of_one(u64::try_from(millionths).unwrap_or(u64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "small enough for f64")]
fn millionths_of_one(millionths: u64) -> f64 {
    millionths as f64 / MILLION
}

impl<'a> Sums<'a> {
    pub(super) fn rows(&self, timeline: &Timeline) -> impl Iterator<Item = Row<'a>> {
        let all = (0..).zip(self.ids).zip(self.tallies);
        all.map(|((place, stream), tally)| {
            let waiting = timeline.waiting(StreamIndex(place));
            Row {
                stream,
                offered: tally.decided().saturating_add(waiting),
                on_time: tally.on_time,
                late: tally.late,
                dropped: tally.dropped,
                policed: tally.policed,
                waiting,
                windows: tally.windows,
                violations: tally.violations,
                misses_max: tally.misses_max,
                miss_run_max: tally.run_max,
                bytes: tally.bytes,
                share: share(tally.busy, timeline.now()),
                delay_ns: DelayLine::of(&tally.delays),
            }
        })
    }

    fn class_rows(&self, timeline: &Timeline) -> impl Iterator<Item = ClassRow> {
        self.classes.iter().map(|(id, index)| {
            let served = timeline.service(*index).unwrap_or_default();
            let (bytes, by_real_time) = (served.total, served.by_real_time);
            ClassRow { class: id.clone(), bytes, by_real_time }
        })
    }

    fn summary<R>(&self, timeline: &Timeline, streams: R) -> Summary<R> {
        let busy = self.tallies.iter().map(|tally| tally.busy);
        Summary {
            discipline: self.setup.policy.name(),
            eligibility: match self.setup.ahead {
                Ahead::Waits => "once-per-period",
                Ahead::Shares => "shared",
                Ahead::Competes => "work-conserving",
            },
            end_ns: timeline.now().as_nanos(),
            decided: self.tallies.iter().map(Tally::decided).sum(),
            violations: self.tallies.iter().map(|tally| tally.violations).sum(),
            utilisation: millionths_of_one(self.load.utilisation),
            offered_load: millionths_of_one(self.load.offered),
            link_use: share(busy.fold(Duration::ZERO, Duration::saturating_add), timeline.now()),
            warnings: self.doubts.iter().map(ToString::to_string).collect(),
            classes: self.class_rows(timeline).collect(),
            streams,
        }
    }

    pub(super) fn line<R>(&self, timeline: &Timeline, rows: R) -> SummaryLine<R> {
        SummaryLine { summary: self.summary(timeline, rows) }
    }

    /// Formats the summary as text.
    pub(super) fn to_text(
        &self,
        timeline: &Timeline,
        rows: impl Iterator<Item = Row<'a>>,
    ) -> String {
        use Align::{Left, Right};
        let mut table = Table::new(&[
            ("STREAM", Left),
            ("OFFERED", Right),
            ("ON TIME", Right),
            ("LATE", Right),
            ("DROPPED", Right),
            ("POLICED", Right),
            ("VIOLATED", Right),
            ("RUN", Right),
            ("BYTES", Right),
            ("SHARE", Right),
            ("P50", Right),
            ("P99", Right),
            ("MAX", Right),
        ]);
        for row in rows.take(ROWS_SHOWN) {
            table.row(cells(&row));
        }
        let mut text = table.render(usize::MAX);
        if let Some(more) = self.ids.len().checked_sub(ROWS_SHOWN).filter(|more| *more > 0) {
            text.push_str(&format!("and {more} more streams; --json lists all\n"));
        }
        let all = self.summary(timeline, ());
        if !all.classes.is_empty() {
            let columns = [("CLASS", Left), ("BYTES", Right), ("BY REAL TIME", Right)];
            let mut table = Table::new(&columns);
            for row in all.classes.iter().take(ROWS_SHOWN) {
                let (bytes, real) = (row.bytes.to_string(), row.by_real_time.to_string());
                table.row(vec![row.class.to_string(), bytes, real]);
            }
            text.push_str(&table.render(usize::MAX));
        }
        text.push_str(&format!(
            "{} {}: {} decided in {}, {} windows violated; contracts reserve {:.3} of the link, \
             {:.3} is offered, {:.3} was used\n",
            all.discipline,
            all.eligibility,
            all.decided,
            timeline.now(),
            all.violations,
            all.utilisation,
            all.offered_load,
            all.link_use
        ));
        text
    }
}

fn cells(row: &Row<'_>) -> Vec<String> {
    let delay = |of: fn(&DelayLine) -> u64| {
        row.delay_ns
            .as_ref()
            .map_or_else(|| "-".to_owned(), |delays| Duration::from_nanos(of(delays)).to_string())
    };
    vec![
        row.stream.to_string(),
        row.offered.to_string(),
        row.on_time.to_string(),
        row.late.to_string(),
        row.dropped.to_string(),
        row.policed.to_string(),
        row.violations.to_string(),
        row.miss_run_max.to_string(),
        row.bytes.to_string(),
        format!("{:.3}", row.share),
        delay(|delays| delays.p50),
        delay(|delays| delays.p99),
        delay(|delays| delays.max),
    ]
}
