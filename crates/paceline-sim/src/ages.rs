//! A histogram of sample ages.

use paceline_sched::Duration;

/// Buckets per doubling of the age, which bounds the error of a quantile to an eighth.
const PARTS: u64 = 8;

/// A histogram of ages, of bounded size.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AgeHistogram {
    counts: Vec<u64>,
    samples: u64,
    max: Duration,
}

/// Returns the bucket of an age: one per microsecond below [`PARTS`], then eight per doubling.
fn place(age: Duration) -> usize {
    let micros = age.as_micros();
    if micros < PARTS {
        return usize::try_from(micros).unwrap_or_default();
    }
    let doubling = u64::from(micros.ilog2());
    let part = (micros >> (doubling - 3)) - PARTS;
    usize::try_from((doubling - 2) * PARTS + part).unwrap_or_default()
}

/// Returns the least age of a bucket.
fn least(place: usize) -> Duration {
    let place = place as u64;
    if place < PARTS {
        return Duration::from_micros(place);
    }
    let (doubling, part) = (place / PARTS + 2, place % PARTS);
    Duration::from_micros((PARTS + part) << (doubling - 3))
}

impl AgeHistogram {
    /// Counts a sample.
    pub(super) fn note(&mut self, age: Duration) {
        let place = place(age);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.samples += 1;
        self.max = self.max.max(age);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        self.samples += other.samples;
        self.max = self.max.max(other.max);
    }

    /// Returns the greatest age.
    #[must_use]
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// Returns an age that at least `per_mille` of a thousand samples do not exceed, or zero without samples.
    ///
    /// The result exceeds the least such age by at most an eighth.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> Duration {
        let wanted = self.samples.saturating_mul(per_mille).div_ceil(1_000);
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return least(place + 1).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_age_falls_into_its_bucket() {
        for micros in (0..2_000).chain([65_535, 65_536, 1 << 40, u64::MAX / 1_000]) {
            let age = Duration::from_micros(micros);
            let place = place(age);
            assert!(least(place) <= age && age < least(place + 1), "{micros} in {place}");
        }
    }

    #[test]
    fn quantiles_are_no_more_than_an_eighth_too_large() {
        let mut ages = AgeHistogram::default();
        (1..=1_000).for_each(|micros| ages.note(Duration::from_micros(micros)));
        for per_mille in [1, 10, 500, 990, 1_000] {
            let got = ages.quantile(per_mille).as_micros();
            assert!((per_mille..=per_mille * 9 / 8 + 1).contains(&got), "{per_mille}: {got}");
        }
        let mut both = AgeHistogram::default();
        both.merge(&ages);
        assert_eq!(both, ages);
        assert_eq!(
            (both.max().as_micros(), AgeHistogram::default().quantile(500).as_micros()),
            (1_000, 0)
        );
    }
}
