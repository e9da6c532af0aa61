//! The offset and the frequency of the raw clock, by linear regression over the last measurements.
//!
//! RFC 5905's loop of phase and frequency takes 15 minutes to find a frequency, because it was designed to adjust a
//! system clock in small steps. A clock of one's own can use all measurements at once: a line through the last 64, as
//! in chrony, finds the frequency within seconds. If the line leaves the interval of the newest measurement, the oldest
//! half is removed until it fits.
//!
//! The frequency has a bound, too: the true mean frequency between two measurements lies between those of the steepest
//! and the flattest line through both intervals.

use crate::ntp::{FREQUENCY_MAX, PHI};
use std::collections::VecDeque;

/// The number of measurements in a regression.
const POINTS_MAX: usize = 64;
/// The largest age of a measurement in a regression, in nanoseconds.
const AGE_MAX: u64 = 2_000_000_000_000;
/// The shortest span of measurements from which a frequency is computed, in nanoseconds.
const SPAN_MIN: u64 = 1_000_000_000;
/// The largest difference of offsets within a regression, in nanoseconds.
const SPREAD_MAX: u64 = 1 << 36;

/// An offset of UTC from the raw clock, with its interval, in nanoseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServoPoint {
    /// The instant of the raw clock.
    pub raw: u64,
    /// The offset.
    pub offset: i64,
    /// The lowest possible offset.
    pub low: i64,
    /// The highest possible offset.
    pub high: i64,
}

/// The result of a regression.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServoEstimate {
    /// The offset at the newest measurement, in nanoseconds.
    pub offset: i64,
    /// The frequency of UTC compared with the raw clock, minus 1, in picoseconds per second.
    pub rate: i64,
    /// The largest error of the frequency until the next measurement, in picoseconds per second: what the intervals leave
    /// open, plus 15 ppm for changes of the frequency.
    pub phi: u64,
}

/// The measurements of a regression.
#[derive(Clone, Debug, Default)]
pub struct Servo {
    points: VecDeque<ServoPoint>,
    rate: i64,
}

impl Servo {
    /// Removes all measurements but keeps the frequency, whose bound grows to that of an unknown one.
    pub fn forget(&mut self) {
        self.points.clear();
    }

    /// Adds a measurement, at an instant after all earlier ones, and returns the new estimate.
    pub fn update(&mut self, point: ServoPoint) -> ServoEstimate {
        if self.points.back().is_some_and(|last| last.raw >= point.raw) {
            self.points.clear();
        }
        let is_near = |old: &ServoPoint| {
            point.raw.saturating_sub(old.raw) <= AGE_MAX
                && point.offset.abs_diff(old.offset) <= SPREAD_MAX
        };
        self.points.retain(is_near);
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(point);
        let bound = self.frequency_bound(&point);
        let offset = loop {
            let Some((offset, rate)) = self.line(&point) else { break point.offset };
            if (point.low..=point.high).contains(&offset) {
                self.rate = rate;
                break offset;
            }
            let half = self.points.len() / 2;
            self.points.drain(..half);
        };
        let (slowest, fastest) = bound;
        self.rate = self.rate.clamp(slowest, fastest);
        let open = self.rate.abs_diff(slowest).max(self.rate.abs_diff(fastest));
        ServoEstimate { offset, rate: self.rate, phi: open.saturating_add(PHI) }
    }

    /// Returns the lowest and the highest mean frequency since an earlier measurement: that with the narrowest result.
    fn frequency_bound(&self, newest: &ServoPoint) -> (i64, i64) {
        let limit = i64::try_from(FREQUENCY_MAX).unwrap_or(i64::MAX);
        let earlier = self.points.iter().filter(|old| newest.raw - old.raw >= SPAN_MIN);
        let bounds = earlier.map(|old| {
            let span = i128::from(newest.raw - old.raw);
            let slope = |change: i128| {
                let rate = change.saturating_mul(1_000_000_000_000).div_euclid(span);
                i64::try_from(rate.clamp(i128::from(-limit), i128::from(limit))).unwrap_or_default()
            };
            let slowest = slope(i128::from(newest.low) - i128::from(old.high));
            let fastest = slope(i128::from(newest.high) - i128::from(old.low)).saturating_add(1);
            (slowest, fastest.max(slowest))
        });
        bounds.min_by_key(|(slowest, fastest)| fastest - slowest).unwrap_or((-limit, limit))
    }

    /// Returns the offset at the newest point and the frequency of the line of least squares. `None` if the measurements
    /// span less than a second. Measurements with wider intervals weigh less.
    fn line(&self, newest: &ServoPoint) -> Option<(i64, i64)> {
        let oldest = self.points.front()?;
        if newest.raw - oldest.raw < SPAN_MIN || self.points.len() < 3 {
            return None;
        }
        let width = |one: &ServoPoint| u128::from(one.high.abs_diff(one.low).clamp(1, 1 << 40));
        let narrowest = self.points.iter().map(width).min()?;
        let (mut s, mut sx, mut sy, mut sxx, mut sxy) = (0_i128, 0_i128, 0_i128, 0_i128, 0_i128);
        for one in &self.points {
            // In microseconds before the newest: at most 2e9, and offsets of at most 2^36 ns. No sum exceeds 2^110.
            let x = -i128::from((newest.raw - one.raw) / 1_000);
            let y = i128::from(one.offset) - i128::from(newest.offset);
            let weight = i128::try_from((narrowest * 1_000 / width(one)).max(1)).ok()?;
            s += weight;
            sx += weight * x;
            sy += weight * y;
            sxx += weight * x * x;
            sxy += weight * x * y;
        }
        let below = s * sxx - sx * sx;
        if below <= 0 {
            return None;
        }
        let offset = (sxx * sy - sx * sxy).div_euclid(below);
        // Nanoseconds per microsecond.
        let rate = (s * sxy - sx * sy).checked_mul(1_000_000_000)?.div_euclid(below);
        let offset = newest.offset.saturating_add(i64::try_from(offset).ok()?);
        Some((offset, i64::try_from(rate).ok()?))
    }
}
