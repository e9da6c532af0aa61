//! The interval at which the ends of an idle hop probe each other, and the silence after which it is down.
//!
//! A probe costs its headers, so a slow link probes more rarely, and detects a dead hop later. A probe is also not sent before
//! the answer to the last one could have arrived: a new or repaired TCP connection may carry a single packet per round trip
//! (RFC 5681, section 3.1), and its ends are silent as long. Each end announces its own interval in every frame, and both use
//! the longer of the two. So the ends of a link may have different capacities, and a capacity may change.

use paceline_sched::{Capacity, Duration};

/// The bytes of a probe and its answer that each end sends, at most, with the headers of IPv6, TLS or QUIC and the
/// acknowledgements of the transport; and a share of the digests of [`crate::control`].
const PROBE_BYTES: u64 = 300;
/// The part of the capacity that idle hops may use, as the fraction 1/`IDLE_SHARE`: 2 %.
const IDLE_SHARE: u64 = 50;
/// The number of intervals of silence after which a hop is down.
const SILENT_INTERVALS: u64 = 3;

/// The interval of probes on an idle hop: 600 ms, and longer on a slow link or a long path.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ProbeInterval(u16);

impl ProbeInterval {
    /// The shortest interval, 600 ms.
    pub const SHORTEST: Self = Self(6);
    /// The longest interval, 10 minutes.
    pub const LONGEST: Self = Self(6_000);
    const UNIT: Duration = Duration::from_millis(100);

    /// Returns the interval for a link with so many hops: their probes use at most 2 % of `capacity`, or 4 kbit/s each on a
    /// link without one.
    #[must_use]
    pub fn of(capacity: Option<Capacity>, hops: usize) -> Self {
        let Some(capacity) = capacity else { return Self::SHORTEST };
        let bytes = PROBE_BYTES.saturating_mul(IDLE_SHARE).saturating_mul(hops.max(1) as u64);
        Self::at_least(capacity.time_for(bytes))
    }

    /// Returns the shortest interval that is not shorter than `time`, within the range.
    #[must_use]
    pub fn at_least(time: Duration) -> Self {
        let units = time.as_nanos().div_ceil(Self::UNIT.as_nanos());
        let units = u16::try_from(units).unwrap_or(u16::MAX);
        Self(units).clamp(Self::SHORTEST, Self::LONGEST)
    }

    /// Returns the interval of this number of tenths of a second; `None` outside of the range.
    #[must_use]
    pub fn from_tenths(tenths: u64) -> Option<Self> {
        let interval = Self(u16::try_from(tenths).ok()?);
        (Self::SHORTEST..=Self::LONGEST).contains(&interval).then_some(interval)
    }

    /// Returns the interval in tenths of a second.
    #[must_use]
    pub fn tenths(self) -> u64 {
        self.0.into()
    }

    /// Returns the interval.
    #[must_use]
    pub fn time(self) -> Duration {
        Self::UNIT.mul_div(self.0.into(), 1)
    }

    /// Returns the silence after which a hop is down: three intervals, 1.8 s if the link is not slow.
    #[must_use]
    pub fn silence_max(self) -> Duration {
        self.time().mul_div(SILENT_INTERVALS, 1)
    }
}

impl Default for ProbeInterval {
    fn default() -> Self {
        Self::SHORTEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bits: u64, hops: usize) -> Duration {
        ProbeInterval::of(Capacity::from_bits_per_s(bits).ok(), hops).time()
    }

    #[test]
    fn probes_take_a_fiftieth_of_the_capacity() {
        let millis = Duration::from_millis;
        assert_eq!(ProbeInterval::of(None, 100).time(), millis(600));
        assert_eq!((of(1_000_000_000, 1), of(200_000, 1)), (millis(600), millis(600)));
        assert_eq!((of(57_600, 1), of(57_600, 3)), (millis(2_100), millis(6_300)));
        assert_eq!((of(9_600, 1), of(2_400, 1)), (millis(12_500), millis(50_000)));
        assert_eq!((of(8, 1), of(8, usize::MAX)), (millis(600_000), millis(600_000)));
        assert_eq!(of(2_400, 0), of(2_400, 1));
    }

    #[test]
    fn a_probe_waits_for_the_answer_to_the_last_one() {
        let of = |micros| ProbeInterval::at_least(Duration::from_micros(micros)).tenths();
        assert_eq!((of(0), of(600_000), of(600_001)), (6, 6, 7));
        assert_eq!((of(4_000_000), of(u64::MAX / 1_000)), (40, 6_000));
    }

    #[test]
    fn intervals_round_trip_as_tenths() {
        for tenths in [6, 7, 500, 6_000] {
            let interval = ProbeInterval::from_tenths(tenths).unwrap();
            assert_eq!(interval.tenths(), tenths);
            assert_eq!(interval.silence_max(), Duration::from_millis(tenths * 300));
        }
        for tenths in [0, 5, 6_001, 65_536 + 6, u64::MAX] {
            assert_eq!(ProbeInterval::from_tenths(tenths), None);
        }
    }
}
