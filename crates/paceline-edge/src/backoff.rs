//! The times of reconnection.

use std::time::Duration;

/// The first delay.
const FIRST: Duration = Duration::from_millis(100);
/// The longest delay: a camera that refuses connections while it is away is connected within two seconds of its return.
const LONGEST: Duration = Duration::from_secs(1);
/// The longest silence of a camera of unknown rate.
const SILENCE_FIRST: Duration = Duration::from_secs(10);
/// The limits of the silence after which a connection counts as dead.
const SILENCE_MIN: Duration = Duration::from_secs(2);
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The silence, in longest distances of two pictures.
const DISTANCES: u32 = 4;

/// The delays between attempts to connect, and the silence after which a connection counts as dead.
///
/// ```
/// use paceline_edge::Backoff;
/// use std::time::Duration;
///
/// let mut backoff = Backoff::default();
/// let delays: Vec<u128> = (0..6).map(|_| backoff.failed().as_millis()).collect();
/// assert_eq!(delays, [100, 200, 400, 800, 1_000, 1_000]);
/// backoff.arrived();
/// backoff.heard(Duration::from_millis(40));
/// assert_eq!(backoff.failed().as_millis(), 100);
/// assert_eq!(backoff.silence(), Duration::from_secs(2));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    failures: u32,
    /// The longest distance between two samples of this connection.
    distance: Option<Duration>,
}

impl Backoff {
    /// Returns the delay before the next attempt, 0.1 s to 1 s; doubled by each failure without a sample between.
    pub fn failed(&mut self) -> Duration {
        let delay = FIRST.saturating_mul(1 << self.failures.min(5)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// Notes a sample: the next failure is the first one.
    pub fn arrived(&mut self) {
        self.failures = 0;
    }

    /// Notes the distance of the first packets of two pictures, whole or not.
    pub fn heard(&mut self, distance: Duration) {
        // A camera may send less often at night, and more often afterwards.
        let faded = self.distance.map(|longest| longest - longest / 64).unwrap_or_default();
        self.distance = Some(faded.max(distance));
    }

    /// Returns the time without packets after which a connection counts as dead: four times the longest recent distance of two
    /// pictures, 2 s to 30 s; 10 s before the second one.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.distance.map_or(SILENCE_FIRST, |distance| {
            (distance * DISTANCES).clamp(SILENCE_MIN, SILENCE_MAX)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_cameras_may_be_silent_for_longer() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.silence(), SILENCE_FIRST);
        backoff.arrived();
        assert_eq!(backoff.silence(), SILENCE_FIRST);
        backoff.heard(Duration::from_secs(5));
        assert_eq!(backoff.silence(), Duration::from_secs(20));
        backoff.heard(Duration::from_secs(60));
        assert_eq!(backoff.silence(), SILENCE_MAX);
        for _ in 0..1_000 {
            backoff.heard(Duration::from_millis(40));
        }
        assert_eq!(backoff.silence(), SILENCE_MIN);
    }
}
