//! Percentiles by nearest rank, and medians over runs.

/// A sorted set of measurements.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<u64>);

impl Samples {
    pub(super) fn new(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        Self(values)
    }

    /// Returns the smallest value that at least `per_mille` of 1,000 values do not exceed; `None`
    /// if there are no values.
    pub(super) fn percentile(&self, per_mille: usize) -> Option<u64> {
        let rank = (self.0.len() * per_mille).div_ceil(1_000);
        self.0.get(rank.saturating_sub(1)).copied()
    }

    pub(super) fn max(&self) -> Option<u64> {
        self.0.last().copied()
    }
}

/// Returns the middle value, or the mean of the two middle ones; NaN for no values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    match values.len() % 2 {
        1 => at(middle),
        _ if values.is_empty() => f64::NAN,
        _ => f64::midpoint(at(middle - 1), at(middle)),
    }
}

/// Converts nanoseconds to milliseconds; returns NaN for `None`.
pub(crate) fn millis(nanos: Option<u64>) -> f64 {
    nanos.map_or(f64::NAN, |nanos| float(nanos) / 1e6)
}

/// Returns the nearest float.
#[expect(clippy::cast_precision_loss, reason = "measurements are far below 2^53")]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
}

/// Converts a length to a float.
pub(crate) fn count(length: usize) -> f64 {
    float(u64::try_from(length).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let samples = Samples::new((1..=10_000).rev().collect());
        assert_eq!(samples.percentile(500), Some(5_000));
        assert_eq!(samples.percentile(999), Some(9_990));
        assert_eq!(samples.max(), Some(10_000));
        assert_eq!(Samples::new(vec![7]).percentile(1), Some(7));
        assert_eq!(Samples::default().percentile(500), None);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let same = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(same(median(&[3.0, 1.0, 2.0]), 2.0));
        assert!(same(median(&[4.0, 1.0, 2.0, 3.0]), 2.5));
        assert!(median(&[]).is_nan());
        assert!(same(millis(Some(1_500_000)), 1.5) && millis(None).is_nan());
    }
}
