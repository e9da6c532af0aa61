//! The timers of the reservation protocol.

use super::message::PERIODS;
use paceline_sched::Duration;

/// The timer values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timing {
    /// R, the mean time between refreshes.
    pub refresh: Duration,
    /// K, the number of consecutive refreshes that may be lost.
    pub losses: u32,
    /// The timeout of a tentative reservation.
    pub tentative: Duration,
    /// The time before the first retransmission of a message; it doubles with each further one.
    pub retry: Duration,
    /// The maximum number of retransmissions.
    pub retries: u32,
    /// The time for which a past reservation is remembered, so that late messages do not restore
    /// it.
    pub memory: Duration,
    /// The time for which a refusal is repeated without a test. It doubles with each consecutive
    /// refusal, up to `backoff_max`.
    pub backoff: Duration,
    /// The maximum of `backoff`.
    pub backoff_max: Duration,
}

impl Default for Timing {
    /// Returns the defaults, for a local network: R = 1 s, K = 3, and hence a lifetime of 5.25 s.
    fn default() -> Self {
        Self {
            refresh: Duration::from_secs(1),
            losses: 3,
            tentative: Duration::from_secs(2),
            retry: Duration::from_millis(100),
            retries: 3,
            memory: Duration::from_secs(2),
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(8),
        }
    }
}

impl Timing {
    /// Returns L = (K + ½) · 1.5 · R, the lifetime of a reservation after its last refresh. R is
    /// the period announced by the *sender*.
    #[must_use]
    pub fn life(&self, period: Duration) -> Duration {
        let (shortest, longest) = PERIODS;
        let halves = u64::from(self.losses.min(1_000)) * 2 + 1;
        period.max(shortest).min(longest).mul_div(halves * 3, 4)
    }

    /// Returns the period R of the next refresh after one that announced the period `announced`. It grows by at
    /// most 30 % per step, so that one lost refresh does not exceed the lifetime at the receivers.
    #[must_use]
    pub fn next_period(&self, announced: Duration) -> Duration {
        let (shortest, longest) = PERIODS;
        self.refresh.max(shortest).min(longest).min(announced.mul_div(13, 10))
    }

    /// Returns the wait before the next retransmission after `tries` retransmissions.
    pub(super) fn retry_after(&self, tries: u32) -> Duration {
        self.retry.mul_div(1 << tries.min(16), 1)
    }

    pub(super) fn backoff_after(&self, refusals: u32) -> Duration {
        self.backoff.mul_div(1 << refusals.min(16), 1).min(self.backoff_max)
    }
}

/// Deterministic pseudo-random numbers from a given seed.
#[derive(Clone, Debug)]
pub(super) struct Jitter(pub(super) u64);

impl Jitter {
    /// Returns a duration between 0.5 and 1.5 times `mean`.
    pub(super) fn around(&mut self, mean: Duration) -> Duration {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let nanos = mean.as_nanos();
        Duration::from_nanos(nanos / 2 + (self.0 >> 20) % nanos.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_follow_the_senders_refreshes_and_periods_grow_slowly() {
        let timing = Timing::default();
        assert_eq!(timing.life(Duration::from_secs(1)), Duration::from_millis(5_250));
        assert_eq!(timing.life(Duration::from_secs(30)), Duration::from_millis(157_500));
        assert_eq!(timing.life(Duration::ZERO), Duration::from_nanos(52_500_000));
        let slow = Timing { refresh: Duration::from_secs(30), ..timing };
        assert_eq!(slow.next_period(Duration::from_secs(1)), Duration::from_millis(1_300));
        assert_eq!(timing.next_period(Duration::from_secs(30)), Duration::from_secs(1));
        let mut jitter = Jitter(1);
        let waits: Vec<_> = (0..1_000).map(|_| jitter.around(Duration::from_secs(1))).collect();
        let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(*least >= Duration::from_millis(500) && *least < Duration::from_millis(510));
        assert!(*most < Duration::from_millis(1_500) && *most > Duration::from_millis(1_490));
    }
}
