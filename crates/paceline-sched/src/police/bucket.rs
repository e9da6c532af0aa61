//! One bucket by virtual scheduling, exactly.
//!
//! Time is counted in ticks of which a nanosecond has `rate` and a unit of traffic a fixed number, so
//! both are whole and nothing is ever rounded, from 1 bit/s to beyond a terabit per second.

use super::Verdict;
use crate::time::Instant;

/// A bucket's parameters in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    /// How long the burst takes at the rate.
    pub(super) burst: u128,
    /// How long one byte or packet takes.
    pub(super) unit: u128,
    /// Ticks of a nanosecond, at most [`super::Constraint::RATE_MAX`].
    pub(super) rate: u64,
}

impl Meter {
    /// Below 2^124.
    fn ticks(self, now: Instant) -> u128 {
        u128::from(now.as_nanos()) * u128::from(self.rate)
    }

    /// Below 2^97.
    fn cost(self, amount: u64) -> u128 {
        u128::from(amount) * self.unit
    }
}

/// When the traffic so far would have ended at the rate: the theoretical arrival time, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket(u128);

impl Bucket {
    pub(super) fn check(self, meter: Meter, now: Instant, amount: u64) -> Verdict {
        let (now, cost) = (meter.ticks(now), meter.cost(amount));
        let end = self.0.max(now).saturating_add(cost);
        if end <= now + meter.burst {
            return Verdict::Conforms;
        }
        if cost > meter.burst {
            return Verdict::Never;
        }
        // The virtual time lies ahead: of a bucket that is not behind `now`, anything up to the burst
        // conforms. It has to be no more than burst − cost ahead.
        let earliest = end.saturating_sub(meter.burst);
        Verdict::at_nanos(earliest.div_ceil(u128::from(meter.rate.max(1))))
    }

    pub(super) fn charge(&mut self, meter: Meter, now: Instant, amount: u64) {
        self.0 = self.0.max(meter.ticks(now)).saturating_add(meter.cost(amount));
    }
}
