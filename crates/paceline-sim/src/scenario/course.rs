//! The capacity of a link over time.

use paceline_sched::{Capacity, Duration};

/// A ramp changes the capacity in steps of this time.
const RAMP_STEP: Duration = Duration::from_millis(100);

/// The capacity of a link from the start of a fault on: each capacity with the time since that start, in ascending order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CapacityCourse(Vec<(Duration, Capacity)>);

impl CapacityCourse {
    /// The most changes of one fault.
    pub const CHANGES_MAX: usize = 100_000;

    /// Returns one change.
    #[must_use]
    pub fn step(to: Capacity) -> Self {
        Self(vec![(Duration::ZERO, to)])
    }

    /// Returns a linear change within a time, in steps of 100 ms.
    #[must_use]
    pub fn ramp(from: Capacity, to: Capacity, within: Duration) -> Self {
        let steps = (within.as_nanos() / RAMP_STEP.as_nanos()).max(1);
        let (from, end) = (i128::from(from.bits_per_s()), i128::from(to.bits_per_s()));
        let at = |step: u64| {
            let bits = from + (end - from) * i128::from(step) / i128::from(steps);
            let capacity = Capacity::from_bits_per_s(u64::try_from(bits).unwrap_or_default());
            (within.mul_div(step, steps), capacity.unwrap_or(to))
        };
        Self((1..=steps).map(at).collect())
    }

    /// Returns one capacity after the other, each for a time.
    #[must_use]
    pub fn trace(rates: &[Capacity], every: Duration) -> Self {
        Self((0..).zip(rates).map(|(place, rate)| (every.mul_div(place, 1), *rate)).collect())
    }

    /// Returns changes at any times since the start, in ascending order.
    #[must_use]
    pub const fn recorded(changes: Vec<(Duration, Capacity)>) -> Self {
        Self(changes)
    }

    /// Returns the changes in order.
    #[must_use]
    pub fn changes(&self) -> &[(Duration, Capacity)] {
        &self.0
    }

    /// Returns the course with its times changed by `scale`.
    pub(super) fn scaled(&self, scale: impl Fn(Duration) -> Duration) -> Self {
        Self(self.0.iter().map(|(at, capacity)| (scale(*at), *capacity)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(mbit: u64) -> Capacity {
        Capacity::from_bits_per_s(mbit * 1_000_000).unwrap()
    }

    #[test]
    fn a_ramp_ends_at_its_end_in_both_directions() {
        for (from, to) in [(20, 2), (2, 20), (5, 5)] {
            let course = CapacityCourse::ramp(mbit(from), mbit(to), Duration::from_secs(9));
            assert_eq!(course.changes().len(), 90);
            assert_eq!(course.changes().last(), Some(&(Duration::from_secs(9), mbit(to))));
            assert_eq!(course.changes()[44].1.bits_per_s(), (from + to) * 500_000);
        }
        let short = CapacityCourse::ramp(mbit(2), mbit(9), Duration::from_millis(1));
        assert_eq!(short.changes(), [(Duration::from_millis(1), mbit(9))]);
    }
}
