//! Percentiles with bounded memory, and the form of rates in JSON.

/// Values below this have one slot each; above it, each doubling has half as many slots.
const EXACT: u64 = 128;
const SLOTS_PER_DOUBLING: u64 = EXACT / 2;
const SLOTS: usize = 58 * 64 + 64;

/// A histogram of microseconds with a relative error of at most 1/64.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// Creates an empty histogram.
    pub fn new() -> Self {
        Self { counts: vec![0; SLOTS], total: 0, max: 0 }
    }

    /// Counts one value.
    pub fn add(&mut self, value: u64) {
        let slot = usize::try_from(slot_of(value)).unwrap_or(SLOTS - 1);
        if let Some(count) = self.counts.get_mut(slot) {
            *count += 1;
            self.total += 1;
            self.max = self.max.max(value);
        }
    }

    /// Returns the value that `permille` of 1000 values do not exceed; 0 if the histogram is empty.
    pub fn permille(&self, permille: u64) -> u64 {
        let rank = (self.total * permille).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (slot, count) in (0u64..).zip(&self.counts) {
            seen += count;
            if seen >= rank {
                return highest_of(slot).min(self.max);
            }
        }
        self.max
    }

    /// Returns the exact maximum.
    pub const fn max(&self) -> u64 {
        self.max
    }
}

/// Returns the slot of `value`.
const fn slot_of(value: u64) -> u64 {
    if value < EXACT {
        return value;
    }
    let shift = (63 - value.leading_zeros() - 6) as u64;
    shift * SLOTS_PER_DOUBLING + (value >> shift)
}

/// Returns the greatest value of a slot.
const fn highest_of(slot: u64) -> u64 {
    if slot < EXACT {
        return slot;
    }
    let shift = slot / SLOTS_PER_DOUBLING - 1;
    let mantissa = slot - shift * SLOTS_PER_DOUBLING;
    (mantissa << shift) + ((1 << shift) - 1)
}

/// Rounds to three decimals, as for all rates in JSON.
pub fn round3(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_each_other_without_gaps() {
        for slot in 0..SLOTS as u64 - 1 {
            let high = highest_of(slot);
            assert_eq!(slot_of(high), slot);
            assert_eq!(slot_of(high + 1), slot + 1);
        }
        assert_eq!(slot_of(u64::MAX), SLOTS as u64 - 1);
        assert_eq!(highest_of(SLOTS as u64 - 1), u64::MAX);
    }

    #[test]
    fn percentiles_are_exact_below_128_and_to_a_64th_above() {
        let mut ages = Histogram::new();
        assert_eq!(ages.permille(990), 0);
        for value in 1..=100 {
            ages.add(value);
        }
        assert_eq!((ages.permille(500), ages.permille(990), ages.max()), (50, 99, 100));
        ages.add(1_000_000);
        assert_eq!(ages.permille(1_000), 1_000_000);
        let mut late = Histogram::new();
        late.add(100_000);
        late.add(200_000);
        let median = late.permille(500);
        assert!((100_000..100_000 + 100_000 / 64 + 1).contains(&median), "{median}");
    }
}
