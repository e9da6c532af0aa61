//! The smoothed round trip of requests and their variation, with the delay of the answers, by RFC 9002, section 5.3.

use paceline_sched::Duration;

/// The assumed round trip before the first measurement.
const TRIP_UNKNOWN: Duration = Duration::from_millis(200);
/// The minimum allowance for a late acknowledgement.
const LATE_MIN: Duration = Duration::from_millis(2);

/// The smoothed round trip to a hop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Smoothed {
    trip: Option<Duration>,
    varies: Duration,
}

impl Smoothed {
    /// Records a measured round trip.
    pub(super) fn note(&mut self, trip: Duration) {
        let Some(smoothed) = self.trip else {
            (self.trip, self.varies) = (Some(trip), trip.mul_div(1, 4));
            return;
        };
        let off = smoothed.max(trip).saturating_sub(smoothed.min(trip));
        self.varies = self.varies.mul_div(3, 4).saturating_add(off.mul_div(1, 4));
        self.trip = Some(smoothed.mul_div(7, 8).saturating_add(trip.mul_div(1, 8)));
    }

    /// Returns the round trip; `None` before the first measurement.
    pub(super) const fn measured(&self) -> Option<Duration> {
        self.trip
    }

    /// Returns the round trip, or an assumption before the first measurement.
    pub(super) fn trip(&self) -> Duration {
        self.trip.unwrap_or(TRIP_UNKNOWN)
    }

    /// Returns the time after which an answer is missing: the round trip plus an eighth of it, or plus four times its
    /// variation if that is more.
    pub(super) fn timeout(&self) -> Duration {
        let least = self.trip().mul_div(1, 8).max(LATE_MIN);
        self.trip().saturating_add(self.varies.mul_div(4, 1).max(least))
    }
}
