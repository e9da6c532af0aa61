//! Temporal scaling: selects the samples of a source that a stream carries.

use crate::rate::Rate;
use crate::sample::RawSample;
use crate::spacing::Spacing;
use core::num::NonZeroU32;
use paceline_sched::{Duration, Instant};

/// Selects samples at the requested rate, evenly spread, at the same instants as every other scaler of this rate.
///
/// The instants are those of a fixed grid: multiples of the requested interval since 1970 in capture time. One in n takes the
/// multiples of n, by the publisher's grid, or by its sequence numbers if [aligned](Self::align). So streams of several
/// publishers that capture together carry the same instants, and scalers on several nodes take the same samples, whenever
/// they began. For example 30 → 20 Hz takes two of three samples, 30 → 10 Hz one in three, and 30 → 29 Hz drops one per
/// second.
///
/// A scaler that has seen no sample takes the first one, so that a single sample is not lost; an aligned one takes only
/// the first one of the publisher.
///
/// If the publisher declared its period, the time of a sample is its number on the [`CaptureGrid`](crate::CaptureGrid) ×
/// period, so jitter has no effect. Otherwise it is the capture time, and one in n counts sequence numbers. The rate is then
/// exact under jitter too: an instant without a sample is left to the next one. A step of the clock costs one or two samples;
/// the series then continues.
///
/// Paper: seed 000 §2.1 (a proxy that scales in time), made exact.
#[derive(Clone, Debug)]
pub struct TemporalScaler {
    rate: Rate,
    period: Option<Duration>,
    aligned: bool,
    /// The newest sample, as one in n counts.
    newest: Option<u64>,
    /// The newest sample is one of [`Self::begin_after`].
    begins: bool,
    /// The last instant that has its sample, in intervals of the limit; only without a declared period.
    instant: Option<u64>,
    /// The arrival of the last sample that was due, or of the first one.
    since: Option<Instant>,
    /// The spacing of the samples that an aligned scaler takes for a limit.
    spacing: Option<Spacing>,
    /// The sequence number and the number on the grid of the last sample that an aligned scaler counted as one in n.
    counted: Option<(u64, u64)>,
}

impl TemporalScaler {
    /// Creates a scaler; `period` is the source's declared period, if any.
    #[must_use]
    pub const fn new(rate: Rate, period: Option<Duration>) -> Self {
        let period = match period {
            Some(period) if !period.is_zero() => Some(period),
            Some(_) | None => None,
        };
        Self {
            rate,
            period,
            aligned: false,
            newest: None,
            begins: false,
            instant: None,
            spacing: None,
            counted: None,
            since: None,
        }
    }

    /// Takes the multiples of n by sequence numbers from now on, as the loss windows of contracts are counted, and never
    /// replaces a lost sample by the next one, because another stream may have carried it.
    pub const fn align(&mut self) {
        self.aligned = true;
    }

    /// Begins after a sample with this number on its publisher's grid, which another stream may have carried.
    ///
    /// If the first sample is not after it, it was held for this stream, and the scaler begins with the held sample.
    pub fn begin_after(&mut self, number: u64, captured_ns: u64) {
        (self.newest, self.begins) = (Some(number), true);
        self.instant = self.rate.interval().map(|each| captured_ns / each.as_nanos().max(1));
    }

    /// Returns true if the sample `seq`, captured at `captured_ns`, belongs to the scaled stream.
    ///
    /// Call this or [`Self::take_sample`] once for each sample of the source, in order. Missing samples do no harm.
    pub fn take(&mut self, seq: u64, captured_ns: u64) -> bool {
        self.take_numbered((seq, seq), captured_ns, None)
    }

    /// Like [`Self::take`], by the number of the sample on its publisher's grid.
    pub fn take_sample(&mut self, sample: &RawSample) -> bool {
        let numbers = (sample.seq, sample.number(self.period));
        self.take_numbered(numbers, sample.captured.nanos, Some(sample.published_at))
    }

    fn take_numbered(
        &mut self,
        (seq, number): (u64, u64),
        captured_ns: u64,
        arrival: Option<Instant>,
    ) -> bool {
        if self.takes_all() {
            return true;
        }
        let n = u64::from(self.rate.every.get());
        let counted = if self.aligned { seq } else { number };
        if core::mem::take(&mut self.begins) && self.newest.is_some_and(|newest| counted <= newest)
        {
            (self.newest, self.instant) = (None, None);
        }
        let newest = self.newest.replace(counted);
        if newest.is_none() && !self.aligned {
            return self.is_due(captured_ns, arrival);
        }
        if newest == Some(counted) {
            return false; // The publisher gave the instant two samples.
        }
        let previous = newest.filter(|newest| !self.aligned && *newest < counted);
        let previous = previous.or_else(|| counted.checked_sub(1));
        if previous.is_some_and(|previous| previous / n == counted / n) {
            return false;
        }
        let Some((limit, period)) = self.rate.interval().zip(self.period) else {
            return self.is_due(captured_ns, arrival);
        };
        // The last capture of which one in n is taken, and this one. An aligned scaler may lack it, because another stream
        // carried it; the publisher's captures then count as complete.
        let last = self
            .counted
            .replace((seq, number))
            .filter(|last| last.0.checked_add(n) == Some(seq) && last.1 < number);
        let (before, here) = match previous {
            Some(previous) if !self.aligned => (previous / n * n, number / n * n),
            _ => (last.map_or_else(|| number.saturating_sub(n), |last| last.1), number),
        };
        // A rounded period or interval must not move a capture across an instant.
        let slack = u128::from(period.as_nanos() / 16 * 7);
        let instant = |number: u64| {
            let at = u128::from(number) * u128::from(period.as_nanos());
            (at + slack) / u128::from(limit.as_nanos().max(1))
        };
        // The first sample of a publisher passes.
        let due = previous.is_none() || instant(before) < instant(here);
        if !self.aligned {
            return due;
        }
        // The grid of the publisher moves by an instant at times, and its first sample is not on it. A sample that would
        // then be too early for a contract is left out, and its instant too: the next one would move the stream to other
        // instants than those of the streams that belong to it.
        let each = period.mul_div(n, 1);
        let jitter = period.mul_div(7, 16);
        let spacing = self.spacing.get_or_insert_with(|| Spacing::new(limit, each, jitter));
        due && spacing.take(captured_ns, arrival)
    }

    /// Returns true if the source is no faster than the rate.
    fn takes_all(&self) -> bool {
        let slow = |limit| self.period.is_some_and(|period| limit <= period);
        self.rate.every == NonZeroU32::MIN && self.rate.interval().is_none_or(slow)
    }

    /// Returns true if an instant of the limit is due at `captured_ns`, which then has its sample.
    ///
    /// The clock of a publisher may stand still. So a sample is due too if none was for two intervals of arrival.
    fn is_due(&mut self, captured_ns: u64, arrival: Option<Instant>) -> bool {
        let Some(interval) = self.rate.interval().filter(|_| self.period.is_none()) else {
            return true;
        };
        let here = captured_ns / interval.as_nanos().max(1);
        // A clock that was set back by more than jitter begins a new series.
        let last = self.instant.filter(|last| here.saturating_add(1) >= *last);
        let next = last.is_none_or(|last| last < here);
        let since = self.since.or(arrival);
        let passed = arrival.zip(since).map(|(arrival, since)| arrival.since(since));
        let stands = passed.is_some_and(|passed| passed >= interval.mul_div(2, 1));
        self.since = if next || stands { arrival } else { since };
        if next {
            // One instant without a sample is left to the next one, unless several are without: that is a pause.
            let left = last.map_or(here, |last| last.saturating_add(1));
            let is_pause = here > left.saturating_add(2);
            self.instant = Some(if is_pause { here } else { left.max(here.saturating_sub(1)) });
        }
        next || stands
    }
}

#[cfg(test)]
#[path = "temporal/tests.rs"]
mod tests;
