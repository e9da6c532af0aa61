//! A bucket by virtual scheduling in exact arithmetic.
//!
//! The unit of time is a tick. A nanosecond has `rate` ticks and a unit of traffic takes a fixed number
//! of them. Both are whole numbers, so nothing is rounded, from 1 bit/s to beyond a terabit per second.

use super::Conformance;
use crate::time::Instant;

/// The parameters of a bucket in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    /// The duration of the burst at the rate.
    pub(super) burst: u128,
    /// The duration of one byte or packet.
    pub(super) unit: u128,
    /// The ticks per nanosecond, at most [`super::Constraint::RATE_MAX`].
    pub(super) rate: u64,
}

impl Meter {
    /// Returns `now` in ticks, below 2^124.
    fn ticks(self, now: Instant) -> u128 {
        u128::from(now.as_nanos()) * u128::from(self.rate)
    }

    /// Returns the duration of `amount` in ticks, below 2^97.
    fn cost(self, amount: u64) -> u128 {
        u128::from(amount) * self.unit
    }
}

/// The theoretical arrival time in ticks: the end of the traffic so far at the rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket(u128);

impl Bucket {
    pub(super) fn check(self, meter: Meter, now: Instant, amount: u64) -> Conformance {
        let (now, cost) = (meter.ticks(now), meter.cost(amount));
        let end = self.0.max(now).saturating_add(cost);
        if end <= now + meter.burst {
            return Conformance::Conforms;
        }
        if cost > meter.burst {
            return Conformance::Never;
        }
        // The theoretical arrival time is ahead of `now`; otherwise anything up to the burst would
        // conform. It may be at most burst − cost ahead.
        let earliest = end.saturating_sub(meter.burst);
        Conformance::at_nanos(earliest.div_ceil(u128::from(meter.rate.max(1))))
    }

    pub(super) fn charge(&mut self, meter: Meter, now: Instant, amount: u64) {
        self.0 = self.0.max(meter.ticks(now)).saturating_add(meter.cost(amount));
    }
}
