//! Measures the quality that one subscriber of the demo receives.

use super::line::{Dropped, Measured, RowLine};
use super::scenario::{Row, WARM_UP};
use crate::payload::picture_size;
use crate::tally::{Tally, Windows};
use paceline::status::Drops;
use paceline::{Sample, Subscriber};
use paceline_tool::stats::round3;
use std::time::{Duration, Instant};

/// Measures one subscriber, per second and since the end of the warm-up.
pub(super) struct Gauge<'a> {
    index: usize,
    row: &'a Row,
    delivered: u64,
    size: Option<(u32, u32)>,
    judged_from: Option<Instant>,
    second: (Instant, Tally, Windows),
    whole: (Tally, Windows),
    refused: Vec<String>,
}

impl<'a> Gauge<'a> {
    /// Creates a gauge for row `index` of the scenario.
    pub(super) fn new(index: usize, row: &'a Row) -> Self {
        let windows = Windows::new(row.loss, row.step);
        Self {
            index,
            row,
            delivered: 0,
            size: None,
            judged_from: None,
            second: (Instant::now(), Tally::new(), windows.clone()),
            whole: (Tally::new(), windows),
            refused: Vec::new(),
        }
    }

    /// Counts a sample that arrived at `now`.
    pub(super) fn add(&mut self, delivery: &Sample, now: Instant) {
        self.delivered += 1;
        self.refused.clear();
        if self.row.size.is_some() {
            self.size = picture_size(delivery).map(|size| (size.width, size.height));
        }
        let (_, tally, windows) = &mut self.second;
        tally.add(delivery, now);
        windows.add(delivery.seq, delivery.late);
        if now >= *self.judged_from.get_or_insert(now + WARM_UP) {
            let (tally, windows) = &mut self.whole;
            tally.add(delivery, now);
            windows.add(delivery.seq, delivery.late);
        }
    }

    /// Records the reason for a refused publisher; the next sample clears it.
    pub(super) fn refuse(&mut self, why: String) {
        self.refused.push(why);
    }

    /// Returns the report at `now` and starts the next second.
    pub(super) fn line(&mut self, subscriber: &Subscriber, now: Instant) -> RowLine {
        let (begun, tally, windows) = &self.second;
        let second = measured(tally, windows, now - *begun, tally.rate_hz());
        let judged = self.judged_from.map(|from| now.saturating_duration_since(from));
        let (whole_tally, whole_windows) = &self.whole;
        let rate = whole_tally.rate_until_hz(now, Duration::from_secs(1) / self.row.hz);
        let whole = measured(whole_tally, whole_windows, judged.unwrap_or_default(), rate);
        self.second = (now, tally.next(), Windows::new(self.row.loss, self.row.step));
        RowLine {
            row: self.index,
            delivered: self.delivered,
            size: self.size,
            second,
            whole,
            dropped: dropped(&subscriber.drops()),
            refused: self.refused.clone(),
        }
    }
}

/// Returns the figures that `tally` and `windows` counted in `time`.
fn measured(tally: &Tally, windows: &Windows, time: Duration, rate_hz: f64) -> Measured {
    let ages = tally.ages();
    Measured {
        seconds: round3(time.as_secs_f64()),
        delivered: tally.delivered,
        rate_hz,
        p50_us: ages.p50,
        p99_us: ages.p99,
        max_us: ages.max,
        late: tally.late,
        lost: windows.lost,
        beyond: windows.beyond,
    }
}

/// Converts drop counters to a map by the name of the reason.
pub(super) fn dropped(drops: &Drops) -> Dropped {
    drops.iter().map(|(reason, count)| (reason.name().to_owned(), count)).collect()
}
