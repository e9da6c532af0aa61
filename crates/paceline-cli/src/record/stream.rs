//! The statistics of one publisher's samples: count, age and gaps.

use super::args::Wish;
use crate::tally::{Tally, Windows};
use paceline::Sample;
use paceline_record::{AgeQuantiles, DeliveryStatistics, RecordedEvent};
use std::time::Instant;

/// The statistics of one publisher.
pub(super) struct Stream {
    tag: String,
    pub(super) publisher: String,
    /// Index of the pattern that delivers the samples; other matching patterns are ignored.
    pub(super) pattern: usize,
    step: Option<u64>,
    judged: bool,
    windows: Windows,
    last: Option<u64>,
    second: Tally,
    total: Tally,
    reported: u64,
}

impl Stream {
    pub(super) fn new(delivery: &Sample, pattern: usize, wish: &Wish) -> Self {
        let Wish { step, loss, .. } = *wish;
        Self {
            tag: delivery.tag.to_string(),
            publisher: delivery.publisher.to_string(),
            pattern,
            step,
            judged: loss.is_some(),
            windows: Windows::new(loss, step.unwrap_or(1)),
            last: None,
            second: Tally::new(),
            total: Tally::new(),
            reported: u64::MAX,
        }
    }

    /// Applies a changed request.
    pub(super) fn change(&mut self, wish: &Wish) {
        let (lost, beyond) = (self.windows.lost, self.windows.beyond);
        self.windows = Windows::new(wish.loss, wish.step.unwrap_or(1));
        (self.windows.lost, self.windows.beyond) = (lost, beyond);
        (self.step, self.judged) = (wish.step, wish.loss.is_some());
        self.last = None;
    }

    /// Counts a sample; returns the gap in sequence numbers before it, if any.
    pub(super) fn take(&mut self, delivery: &Sample, now: Instant) -> Option<RecordedEvent> {
        self.second.add(delivery, now);
        self.total.add(delivery, now);
        let Some(step) = self.step else {
            // The expected sequence numbers are unknown: the windows count received samples.
            self.windows.add(self.total.delivered, delivery.late);
            return None;
        };
        let before = self.windows.lost;
        self.windows.add(delivery.seq, delivery.late);
        let after = self.last.replace(delivery.seq).filter(|last| *last < delivery.seq)?;
        let missing = self.windows.lost - before;
        debug_assert!(
            missing <= (delivery.seq - after) / step.max(1),
            "no more samples than exist"
        );
        (missing > 0).then(|| RecordedEvent::Gap {
            tag: self.tag.clone(),
            publisher: self.publisher.clone(),
            after,
            missing,
        })
    }

    /// Returns the statistics so far, `None` if no sample arrived since the last call.
    pub(super) fn news(&mut self) -> Option<RecordedEvent> {
        let event = self.event(self.second.rate_hz());
        self.second = self.second.next();
        let reported = std::mem::replace(&mut self.reported, self.total.delivered);
        (reported != self.total.delivered).then_some(event)
    }

    /// Returns the final statistics, with the average rate of the whole recording.
    pub(super) fn delivered(&self) -> RecordedEvent {
        self.event(self.total.rate_hz())
    }

    fn event(&self, rate_hz: f64) -> RecordedEvent {
        let ages = self.total.ages();
        RecordedEvent::Delivered(DeliveryStatistics {
            tag: self.tag.clone(),
            publisher: self.publisher.clone(),
            samples: self.total.delivered,
            bytes: self.total.bytes,
            rate_hz,
            late: self.total.late,
            missing: self.step.map(|_| self.windows.lost),
            beyond: self.judged.then_some(self.windows.beyond),
            age_us: AgeQuantiles { p50: ages.p50, p99: ages.p99, max: ages.max },
        })
    }

    pub(super) const fn late(&self) -> u64 {
        self.total.late
    }

    pub(super) const fn missing(&self) -> u64 {
        self.windows.lost
    }
}
