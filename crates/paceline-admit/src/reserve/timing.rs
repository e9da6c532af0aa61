//! How long things take: refreshes, lives, waits.

use super::message::PERIODS;
use paceline_sched::Duration;

/// The times of the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timing {
    /// R: the mean time between two refreshes.
    pub refresh: Duration,
    /// K: how many refreshes in a row may be lost.
    pub losses: u32,
    /// How long a tentative reservation waits for its answer.
    pub tentative: Duration,
    /// How long after the first message without an answer it is sent again; then twice as long each time.
    pub retry: Duration,
    /// How often it is sent again.
    pub retries: u32,
    /// How long is remembered what has ended, so that what comes late does not revive it.
    pub memory: Duration,
    /// For how long a refusal is repeated without a test; twice as long for each one in a row, up to
    /// `backoff_max`.
    pub backoff: Duration,
    /// See `backoff`.
    pub backoff_max: Duration,
}

impl Default for Timing {
    /// Those of a local network: R = 1 s, K = 3, so a life of 5.25 s.
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
    /// L = (K + ½) · 1.5 · R, of the R that the *sender* told: the longest that a reservation lives after
    /// its last refresh.
    #[must_use]
    pub fn life(&self, period: Duration) -> Duration {
        let (shortest, longest) = PERIODS;
        let halves = u64::from(self.losses.min(1_000)) * 2 + 1;
        period.max(shortest).min(longest).mul_div(halves * 3, 4)
    }

    /// R of the next refresh, where the last one told `told`: it grows by at most 30 % a step, so that
    /// one lost refresh never costs the life that the receivers still count.
    #[must_use]
    pub fn next_period(&self, told: Duration) -> Duration {
        let (shortest, longest) = PERIODS;
        self.refresh.max(shortest).min(longest).min(told.mul_div(13, 10))
    }

    /// How long to wait for an answer after the message was sent for the `tries`th time, from 0.
    pub(super) fn retry_after(&self, tries: u32) -> Duration {
        self.retry.mul_div(1 << tries.min(16), 1)
    }

    pub(super) fn backoff_after(&self, refusals: u32) -> Duration {
        self.backoff.mul_div(1 << refusals.min(16), 1).min(self.backoff_max)
    }
}

/// Numbers without order from a seed that was passed in.
#[derive(Clone, Debug)]
pub(super) struct Jitter(pub(super) u64);

impl Jitter {
    /// From half of `mean` to one and a half.
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
    fn lives_follow_the_senders_refreshes_and_periods_grow_slowly() {
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
