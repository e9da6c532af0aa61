//! The clocks of a node: a monotonic one that drifts, and UTC that may be stepped.

use paceline_proto::sample::Timestamp;
use paceline_sched::Instant;

/// UTC at the origin of the world's time, in nanoseconds since 1970.
const EPOCH_NANOS: i128 = 1_700_000_000_000_000_000;
const MILLION: i128 = 1_000_000;
/// A larger deviation means a broken clock, not drift.
const DRIFT_MAX_PPM: i32 = 100_000;

/// The rate of a node's clock relative to the world's time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ClockSpec {
    /// Parts per million by which the clock runs fast; negative values run slow. Limited to ±100,000.
    pub drift_ppm: i32,
}

/// The clocks of one node. The pure parts see only the monotonic clock, which never steps back. Clock steps
/// affect only the timestamps of samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeClock {
    /// The world's time when the drift was set. `shown` is the node's clock at that time.
    since: Instant,
    shown: Instant,
    drift_ppm: i32,
    utc_off_ns: i128,
}

impl NodeClock {
    /// Creates a clock that shows the world's time.
    pub(super) const fn new() -> Self {
        Self { since: Instant::ZERO, shown: Instant::ZERO, drift_ppm: 0, utc_off_ns: 0 }
    }

    /// Runs by `spec` from `world` on.
    pub(super) fn set(&mut self, world: Instant, spec: ClockSpec) {
        (self.shown, self.since) = (self.shows(world), world);
        self.drift_ppm = spec.drift_ppm.clamp(-DRIFT_MAX_PPM, DRIFT_MAX_PPM);
    }

    /// Steps UTC. Timestamps before 1970 or after 2554 saturate.
    pub(super) fn step(&mut self, by_ns: i64) {
        self.utc_off_ns += i128::from(by_ns);
    }

    /// Returns the time of the monotonic clock at `world`.
    pub(super) fn shows(&self, world: Instant) -> Instant {
        if self.drift_ppm == 0 && self.since == self.shown {
            return world;
        }
        let passed = i128::from(world.since(self.since).as_nanos());
        let passed = passed + (passed * i128::from(self.drift_ppm)).div_euclid(MILLION);
        instant(i128::from(self.shown.as_nanos()) + passed)
    }

    /// Returns the first instant of the world at which the monotonic clock shows at least `local`.
    pub(super) fn world(&self, local: Instant) -> Instant {
        if local == Instant::FAR || self.drift_ppm == 0 && self.since == self.shown {
            return local;
        }
        let ahead = i128::from(local.since(self.shown).as_nanos());
        let rate = MILLION + i128::from(self.drift_ppm);
        let passed = (ahead * MILLION).div_euclid(rate);
        // The two roundings leave it at most two nanoseconds early.
        let least = instant(i128::from(self.since.as_nanos()) + passed);
        let mut at = least;
        while self.shows(at) < local && at < Instant::FAR {
            at = instant(i128::from(at.as_nanos()) + 1);
        }
        at
    }

    /// Returns the timestamp of a sample when the monotonic clock shows `local`.
    pub(super) fn stamp(&self, local: Instant) -> Timestamp {
        let nanos = EPOCH_NANOS + i128::from(local.as_nanos()) + self.utc_off_ns;
        let nanos = nanos.clamp(0, i128::from(u64::MAX));
        Timestamp { nanos: u64::try_from(nanos).unwrap_or_default(), error: 0 }
    }
}

fn instant(nanos: i128) -> Instant {
    let nanos = nanos.clamp(0, i128::from(Instant::FAR.as_nanos()));
    Instant::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_sched::Duration;

    #[test]
    fn clock_round_trips_are_never_early_and_at_most_two_nanoseconds_late() {
        for drift_ppm in [-100_000, -200, -1, 0, 1, 200, 100_000] {
            let mut clock = NodeClock::new();
            let start = Instant::from_millis(60_000);
            clock.set(start, ClockSpec { drift_ppm });
            for nanos in [0, 1, 2, 999_999, 1_000_001, 3_600_000_000_007] {
                let local = start + Duration::from_nanos(nanos);
                let world = clock.world(local);
                assert!(clock.shows(world) >= local, "{drift_ppm}: {local}");
                let before = world - Duration::from_nanos(1);
                assert!(world == start || clock.shows(before) < local, "{drift_ppm}: {local}");
            }
            assert_eq!(clock.world(Instant::FAR), Instant::FAR);
        }
    }

    #[test]
    fn a_new_drift_starts_at_the_current_clock() {
        let mut clock = NodeClock::new();
        clock.set(Instant::ZERO, ClockSpec { drift_ppm: 200 });
        let hour = Instant::ZERO + Duration::from_secs(3_600);
        assert_eq!(clock.shows(hour).since(hour), Duration::from_millis(720));
        clock.set(hour, ClockSpec { drift_ppm: -200 });
        assert_eq!(clock.shows(hour).since(hour), Duration::from_millis(720));
        let two = hour + Duration::from_secs(3_600);
        assert_eq!(clock.shows(two), two);
    }

    #[test]
    fn steps_move_only_utc_and_stay_representable() {
        let mut clock = NodeClock::new();
        let before = clock.stamp(Instant::ZERO).nanos;
        clock.step(-1_000);
        assert_eq!(clock.stamp(Instant::ZERO).nanos, before - 1_000);
        assert_eq!(clock.shows(Instant::from_millis(5)), Instant::from_millis(5));
        clock.step(i64::MIN);
        assert_eq!(clock.stamp(Instant::ZERO).nanos, 0);
        (0..4).for_each(|_| clock.step(i64::MAX));
        assert_eq!(clock.stamp(Instant::ZERO).nanos, u64::MAX);
    }
}
