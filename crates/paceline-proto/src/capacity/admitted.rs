//! The part of a measured capacity that contracts may use.

use super::fall::{CapacityFall, FallTrend};
use super::{CapacityEstimate, CapacityState};
use paceline_sched::{Capacity, Duration, Instant};

/// Contracts may use this part of the conservative end, in percent, so that its noise ends none of them.
const USED: u64 = 95;
/// A capacity that grew by less than this, in percent, changes nothing.
const GROWN: u64 = 110;
/// A capacity must have grown for this time, so that one that flaps does not grant and end contracts in turn: if the last
/// measurements agree, and otherwise.
const GROWS_FOR: Duration = Duration::from_secs(1);
const GROWS_FOR_DIFFERING: Duration = Duration::from_secs(2);
/// Measurements that still differ after this time are used.
const SETTLES: Duration = Duration::from_millis(1_200);

/// The capacity that admission uses for a measured link: it falls at once, and grows when the link had more for 1 s, or for 2 s
/// while the measurements differ.
///
/// ```
/// use paceline_proto::capacity::{AdmittedCapacity, CapacityEstimate, CapacityState};
/// use paceline_sched::Instant;
///
/// let found = |low| CapacityEstimate { estimate: low, low, high: low, pace: low, state: CapacityState::Stable };
/// let mut admitted = AdmittedCapacity::new(None);
/// let at = Instant::from_millis;
/// assert_eq!(admitted.follow(at(0), &found(10_000_000)).unwrap().bits_per_s(), 9_500_000);
/// assert_eq!(admitted.follow(at(10), &found(9_800_000)), None, "95 % of it is used");
/// assert_eq!(admitted.follow(at(20), &found(2_000_000)).unwrap().bits_per_s(), 1_900_000);
/// assert_eq!(admitted.follow(at(30), &found(8_000_000)), None);
/// assert_eq!(admitted.follow(at(1_000), &found(6_000_000)), None);
/// assert_eq!(admitted.follow(at(1_030), &found(9_000_000)).unwrap().bits_per_s(), 5_700_000);
/// ```
#[derive(Clone, Debug)]
pub struct AdmittedCapacity {
    /// The stated minimum, which is admitted without a measurement.
    min: u64,
    present: u64,
    /// The first measurement.
    first: Option<Instant>,
    /// The time since which the capacity is higher, and the least one since then.
    higher: Option<(Instant, u64)>,
    trend: FallTrend,
    /// A fall that was not returned yet.
    fall: Option<CapacityFall>,
}

impl AdmittedCapacity {
    /// Returns the state before the first measurement. Admission may always use `min`.
    #[must_use]
    pub fn new(min: Option<Capacity>) -> Self {
        let min = min.map_or(0, Capacity::bits_per_s);
        let trend = FallTrend::default();
        Self { min, present: 0, first: None, higher: None, trend, fall: None }
    }

    /// Returns the fall that the last estimates show, at most ten times in a second; `None` if the capacity does not fall.
    pub const fn poll_fall(&mut self) -> Option<CapacityFall> {
        self.fall.take()
    }

    /// Processes an estimate. Returns the capacity for admission if it changes.
    pub fn follow(&mut self, now: Instant, found: &CapacityEstimate) -> Option<Capacity> {
        if self.trend.note(now, found) {
            let (bits_per_s, least_bits_per_s) = (found.low / 100 * USED, self.min);
            let loses = self.trend.loses_per_s();
            self.fall =
                loses.map(|loses_per_s| CapacityFall { bits_per_s, loses_per_s, least_bits_per_s });
        }
        match found.state {
            // Nothing is known of the capacity. Contracts that stay are broken by an outage, not by admission.
            CapacityState::Unknown | CapacityState::Outage => {
                self.higher = None;
                return None;
            }
            CapacityState::Measuring if self.present == 0 && self.is_early(now) => return None,
            CapacityState::Measuring | CapacityState::Stable | CapacityState::Falling => {}
        }
        let used = (found.low / 100 * USED).max(self.min);
        if self.present == 0 || found.low.max(self.min) < self.present {
            self.higher = None;
            return self.set(used);
        }
        if used < self.present / 100 * GROWN {
            self.higher = None;
            return None;
        }
        let (since, least) = self.higher.unwrap_or((now, used));
        let least = least.min(used);
        self.higher = Some((since, least));
        let agree = found.state == CapacityState::Stable;
        if now.since(since) < if agree { GROWS_FOR } else { GROWS_FOR_DIFFERING } {
            return None;
        }
        self.higher = None;
        self.set(least)
    }

    /// Returns true if the first measurements are too few.
    fn is_early(&mut self, now: Instant) -> bool {
        now.since(*self.first.get_or_insert(now)) < SETTLES
    }

    fn set(&mut self, bits: u64) -> Option<Capacity> {
        let capacity = Capacity::from_bits_per_s(bits).ok()?;
        (core::mem::replace(&mut self.present, bits) != bits).then_some(capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(low: u64, state: CapacityState) -> CapacityEstimate {
        CapacityEstimate { estimate: low, low, high: low, pace: low, state }
    }

    #[test]
    fn nothing_is_admitted_before_a_measurement_and_an_outage_changes_nothing() {
        let mut admitted = AdmittedCapacity::new(None);
        let mut follow = |millis, low, state| {
            let capacity = admitted.follow(Instant::from_millis(millis), &found(low, state));
            capacity.map(Capacity::bits_per_s)
        };
        assert_eq!(follow(0, 5_000_000, CapacityState::Measuring), None);
        assert_eq!(follow(1, 5_000_000, CapacityState::Stable), Some(4_750_000));
        assert_eq!(follow(2, 0, CapacityState::Outage), None);
        assert_eq!(follow(3, 4_000_000, CapacityState::Measuring), Some(3_800_000));
        let mut admitted = AdmittedCapacity::new(Capacity::from_bits_per_s(2_000_000).ok());
        let mut follow = |millis, low| {
            let found = found(low, CapacityState::Measuring);
            admitted.follow(Instant::from_millis(millis), &found).map(Capacity::bits_per_s)
        };
        assert_eq!(follow(0, 2_050_000), None);
        assert_eq!(follow(1_200, 2_050_000), Some(2_000_000), "the minimum holds");
        assert_eq!(follow(1_300, 2_000_000), None);
    }

    proptest! {
        /// The capacity of admission never exceeds the conservative end for longer than a call, and changes upwards at most
        /// each second.
        #[test]
        fn a_capacity_that_flaps_grows_rarely(
            steps in prop::collection::vec((1..300u64, 100_000..20_000_000u64), 1..300),
        ) {
            let (mut admitted, mut present, mut grew) = (AdmittedCapacity::new(None), 0, None);
            let mut now = 0;
            for (wait, low) in steps {
                now += wait;
                let at = Instant::from_millis(now);
                if let Some(new) = admitted.follow(at, &found(low, CapacityState::Stable)) {
                    let new = new.bits_per_s();
                    if present > 0 && new > present {
                        prop_assert!(grew.is_none_or(|grew| now >= grew + 1_000));
                        grew = Some(now);
                    }
                    present = new;
                }
                prop_assert!(present <= low);
            }
        }
    }
}
