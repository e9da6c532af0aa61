//! Percentiles of delays in bounded memory.

use crate::time::Duration;
use alloc::vec::Vec;

/// The largest number of distinct delays that are stored exactly.
const EXACT: usize = 1_024;
/// Rounding does not change values below this.
const FINE: u64 = 128;

/// A distribution of delays, in at most 60 kB.
///
/// It is exact for up to 1,024 distinct delays. With more, each delay is rounded up by less than 1/64.
/// The maximum is always exact.
#[derive(Clone, Debug, Default)]
pub struct DelayDistribution {
    /// Values in ascending order, with their frequency.
    counts: Vec<(u64, u64)>,
    total: u64,
    max: u64,
    rounded: bool,
}

impl DelayDistribution {
    /// Adds a delay.
    pub fn record(&mut self, delay: Duration) {
        let exact = delay.as_nanos();
        self.max = self.max.max(exact);
        self.total = self.total.saturating_add(1);
        let value = if self.rounded { rounded_up(exact) } else { exact };
        match self.counts.binary_search_by_key(&value, |(value, _)| *value) {
            Ok(place) => {
                if let Some((_, count)) = self.counts.get_mut(place) {
                    *count = count.saturating_add(1);
                }
            }
            Err(place) => {
                self.counts.insert(place, (value, 1));
                if !self.rounded && self.counts.len() > EXACT {
                    self.round();
                }
            }
        }
    }

    fn round(&mut self) {
        self.rounded = true;
        for (value, _) in &mut self.counts {
            *value = rounded_up(*value);
        }
        self.counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
    }

    /// Returns the number of delays.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// Returns the delay that `permille` of 1,000 do not exceed; zero if there are none.
    #[must_use]
    pub fn permille(&self, permille: u64) -> Duration {
        let rank = (u128::from(self.total) * u128::from(permille)).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (value, count) in &self.counts {
            seen += u128::from(*count);
            if seen >= rank {
                return Duration::from_nanos((*value).min(self.max));
            }
        }
        self.max()
    }

    /// Returns the longest delay; zero if there are none.
    #[must_use]
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }
}

/// Returns the largest value with the same seven leading bits.
const fn rounded_up(value: u64) -> u64 {
    if value < FINE {
        return value;
    }
    let shift = 63 - value.leading_zeros() - 6;
    value | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_different_delays_are_exact() {
        let mut delays = DelayDistribution::default();
        assert_eq!((delays.permille(500), delays.max()), (Duration::ZERO, Duration::ZERO));
        for _ in 0..100_000 {
            delays.record(Duration::from_nanos(3_000_001));
        }
        for nanos in 1..=1_000 {
            delays.record(Duration::from_nanos(nanos));
        }
        assert_eq!(delays.permille(500), Duration::from_nanos(3_000_001));
        assert_eq!(delays.permille(1), Duration::from_nanos(101));
        assert_eq!(delays.count(), 101_000);
    }

    #[test]
    fn many_different_delays_are_rounded_up_by_less_than_a_64th_in_bounded_memory() {
        let mut delays = DelayDistribution::default();
        let all: Vec<u64> = (0..200_000u64).map(|n| n * n * 977 % 1_000_000_007).collect();
        for nanos in &all {
            delays.record(Duration::from_nanos(*nanos));
        }
        let mut sorted = all;
        sorted.sort_unstable();
        for permille in [1, 10, 500, 900, 990, 999, 1_000] {
            let exact = sorted[usize::try_from(permille).unwrap() * 200 - 1];
            let told = delays.permille(permille).as_nanos();
            assert!(told >= exact && told <= exact + exact / 64, "{permille}: {told} for {exact}");
        }
        assert_eq!(Some(&delays.max().as_nanos()), sorted.last());
        for shift in 0..64 {
            delays.record(Duration::from_nanos(u64::MAX >> shift));
        }
        assert!(delays.counts.len() < 3_776 && delays.max() == Duration::MAX);
        assert!(delays.counts.is_sorted());
    }
}
