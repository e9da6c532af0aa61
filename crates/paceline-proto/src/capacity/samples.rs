//! The last measurements of a link's capacity, and the interval that they support.
//!
//! The estimate is the maximum of a window, as the bottleneck bandwidth of BBR (Cardwell et al., 2016). The window is counted in
//! measurements, not in time: an idle or half-used link adds none, so its estimate stays.
//!
//! The results are computed with each measurement, because every frame that is sent or acknowledged reads them.

use std::collections::VecDeque;

/// The number of measurements in the window.
pub(super) const KEPT: usize = 4;
/// The part of the estimate that admission may use when all measurements agree, in percent. The rest absorbs measurement errors,
/// and drains a queue.
const LOW: u64 = 95;
/// The smallest such part, however much the measurements differ, in percent.
const LEAST: u64 = 50;
/// Measurements agree if the least is at least this part of the greatest, in percent.
const AGREES: u64 = 75;

/// The measurements of the window, oldest first, in bits per second.
#[derive(Debug, Default)]
pub(super) struct RateSamples {
    rates: VecDeque<u64>,
    /// The greatest measurement, and the conservative end; `None` before the first measurement.
    interval: Option<(u64, u64)>,
    /// The last stressed measurement was delivered as fast as it was sent, so the capacity may be much higher.
    unlimited: bool,
}

impl RateSamples {
    /// Adds a measurement that is close to the capacity.
    pub(super) fn note(&mut self, rate: u64) {
        if self.rates.len() >= KEPT {
            self.rates.pop_front();
        }
        self.rates.push_back(rate.max(1));
        self.unlimited = false;
        self.interval = self.measured();
    }

    /// Adds a lower bound of the capacity. It changes the estimate only if it exceeds it.
    pub(super) fn note_bound(&mut self, rate: u64) {
        if self.estimate().is_none_or(|estimate| estimate < rate) {
            self.note(rate);
            self.unlimited = true;
        }
    }

    /// Replaces all measurements by one of the present: earlier ones are higher and do not hold any more.
    pub(super) fn replace(&mut self, rate: u64) {
        self.rates.clear();
        self.note(rate);
    }

    /// Returns the maximum; `None` before the first measurement.
    pub(super) fn estimate(&self) -> Option<u64> {
        self.interval.map(|(estimate, _)| estimate)
    }

    /// Returns `true` if the window is full of measurements that agree.
    pub(super) fn agree(&self) -> bool {
        let least = self.rates.iter().copied().min().unwrap_or_default();
        self.rates.len() >= KEPT && least >= part(self.estimate().unwrap_or(u64::MAX), AGREES)
    }

    /// Returns the conservative end: the estimate, less 5 % and half of the distance to the median.
    pub(super) fn low(&self) -> Option<u64> {
        self.interval.map(|(_, low)| low)
    }

    fn measured(&self) -> Option<(u64, u64)> {
        let estimate = self.rates.iter().copied().max()?;
        let mut sorted = [u64::MAX; KEPT];
        sorted.iter_mut().zip(&self.rates).for_each(|(place, rate)| *place = *rate);
        sorted.sort_unstable();
        let median = sorted.get(self.rates.len() / 2).copied().unwrap_or(estimate);
        let doubt = (estimate - median.min(estimate)) / 2;
        let low = part(estimate, LOW).saturating_sub(doubt).max(part(estimate, LEAST));
        Some((estimate, low))
    }

    /// Returns the optimistic end: the estimate with the same margin above it, or `None` if nothing bounds the capacity.
    pub(super) fn high(&self) -> Option<u64> {
        let (estimate, low) = (self.estimate()?, self.low()?);
        (!self.unlimited).then(|| estimate.saturating_add(estimate - low))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rates.len()
    }
}

/// Returns a part of `rate` in percent.
pub(super) fn part(rate: u64, percent: u64) -> u64 {
    let scaled = u128::from(rate) * u128::from(percent) / 100;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rates: &[u64]) -> RateSamples {
        let mut samples = RateSamples::default();
        rates.iter().for_each(|rate| samples.note(*rate));
        samples
    }

    #[test]
    fn the_estimate_is_the_maximum_of_the_last_measurements() {
        assert_eq!((RateSamples::default().estimate(), RateSamples::default().low()), (None, None));
        assert_eq!(of(&[900, 100, 80, 90]).estimate(), Some(900));
        let four = of(&[900, 100, 80, 90, 95]);
        assert_eq!((four.estimate(), four.len()), (Some(100), KEPT));
    }

    #[test]
    fn a_lower_bound_only_raises() {
        let mut samples = of(&[100, 100, 100, 100]);
        for _ in 0..10 {
            samples.note_bound(99);
        }
        assert_eq!((samples.estimate(), samples.high()), (Some(100), Some(105)));
        samples.note_bound(120);
        assert_eq!((samples.estimate(), samples.high()), (Some(120), None));
    }

    #[test]
    fn measurements_that_differ_widen_the_interval() {
        let equal = of(&[1_000; KEPT]);
        assert_eq!((equal.low(), equal.high(), equal.agree()), (Some(950), Some(1_050), true));
        let raised = of(&[500, 500, 500, 1_000]);
        assert_eq!((raised.low(), raised.agree()), (Some(700), false));
        assert_eq!(of(&[1, 1, 1, 1_000]).low(), Some(500), "at least half");
        assert!(!of(&[1_000; KEPT - 1]).agree(), "too few");
    }

    #[test]
    fn extreme_rates_stay_in_range() {
        let samples = of(&[0, u64::MAX, 0, u64::MAX]);
        assert_eq!((samples.estimate(), samples.high().is_some()), (Some(u64::MAX), true));
        assert_eq!(part(u64::MAX, 100), u64::MAX);
    }
}
