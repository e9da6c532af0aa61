//! Statistics of delivered samples: rates, ages, windows. Memory is bounded.

mod windows;

pub(crate) use windows::Windows;

use paceline::Sample;
use paceline_tool::stats::{Histogram, round3};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Ages at delivery in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Ages {
    /// Median.
    pub(crate) p50: u64,
    /// 99th percentile.
    pub(crate) p99: u64,
    /// Maximum.
    pub(crate) max: u64,
}

/// Deliveries to one subscriber, in total or over an interval.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Samples.
    pub(crate) delivered: u64,
    /// Payload bytes.
    pub(crate) bytes: u64,
    /// Samples later than the delay bound.
    pub(crate) late: u64,
    from: Option<Instant>,
    last: Option<Instant>,
    intervals: u32,
    ages: Histogram,
}

impl Tally {
    /// Creates an empty tally.
    pub(crate) fn new() -> Self {
        Self {
            delivered: 0,
            bytes: 0,
            late: 0,
            from: None,
            last: None,
            intervals: 0,
            ages: Histogram::new(),
        }
    }

    /// Counts one sample that arrived at `now`.
    pub(crate) fn add(&mut self, delivery: &Sample, now: Instant) {
        self.add_sized(delivery, delivery.payload.len(), now);
    }

    /// Counts one sample whose payload of `bytes` was already discarded.
    pub(crate) fn add_sized(&mut self, delivery: &Sample, bytes: usize, now: Instant) {
        self.delivered += 1;
        self.bytes += bytes as u64;
        self.late += u64::from(delivery.late);
        self.ages.add(u64::try_from(delivery.age.as_micros()).unwrap_or(u64::MAX));
        self.arrive(now);
    }

    fn arrive(&mut self, now: Instant) {
        match self.from {
            None => self.from = Some(now),
            Some(_) => self.intervals = self.intervals.saturating_add(1),
        }
        self.last = Some(now);
    }

    /// Returns an empty tally whose first interval starts at the last sample of this one.
    pub(crate) fn next(&self) -> Self {
        Self { from: self.last, last: self.last, ..Self::new() }
    }

    /// Returns samples per second: the number of intervals divided by their duration. 0 without an interval.
    pub(crate) fn rate_hz(&self) -> f64 {
        match (self.from, self.last) {
            (Some(from), Some(last)) if last > from => {
                round3(f64::from(self.intervals) / (last - from).as_secs_f64())
            }
            _ => 0.0,
        }
    }

    /// Returns the time since the beginning of the first interval; zero without a sample.
    pub(crate) fn lasts(&self, now: Instant) -> Duration {
        self.from.map(|from| now.saturating_duration_since(from)).unwrap_or_default()
    }

    /// Like [`Self::rate_hz`], but a silence of more than two periods at the end lowers the rate.
    pub(crate) fn rate_until_hz(&self, now: Instant, period: Duration) -> f64 {
        match (self.from, self.last) {
            (Some(from), Some(last)) if last > from => {
                let whole = (now - from).saturating_sub(period * 2).max(last - from);
                round3(f64::from(self.intervals) / whole.as_secs_f64())
            }
            _ => 0.0,
        }
    }

    /// Returns the ages of the samples.
    pub(crate) fn ages(&self) -> Ages {
        Ages { p50: self.ages.permille(500), p99: self.ages.permille(990), max: self.ages.max() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_counts_intervals_not_samples() {
        let start = Instant::now();
        let mut tally = Tally::new();
        assert!(tally.rate_hz().abs() < f64::EPSILON);
        for k in 0..31u32 {
            tally.arrive(start + Duration::from_millis(100) * k);
        }
        assert!((tally.rate_hz() - 10.0).abs() < 1e-9);
        let period = Duration::from_millis(100);
        let until = |ms| tally.rate_until_hz(start + Duration::from_millis(ms), period);
        assert!((until(3_050) - 10.0).abs() < 1e-9, "no sample was due");
        assert!((until(6_200) - 5.0).abs() < 1e-9, "no sample since the middle");
        let mut second = tally.next();
        assert_eq!(second.lasts(start + Duration::from_millis(3_250)), period * 5 / 2);
        second.arrive(start + Duration::from_millis(3_200));
        assert!((second.rate_hz() - 5.0).abs() < 1e-9);
    }
}
