//! The ages of the packets of a participant, although clocks may step.

use super::SILENCE;
use paceline_sched::{Duration, Instant};

/// The time in which a step of a clock is noticed: the least age of one or two of these counts.
const WINDOW: Duration = Duration::from_secs(1);

/// The least age of the packets of a participant. The age is the difference of two clocks, of which each may step.
///
/// A least age beyond [`SILENCE`] is the error of a clock, because a participant with such a delay would be gone. It is
/// subtracted. Until a step is noticed, an age is at most [`SILENCE`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Ages {
    /// Since the begin of the last window.
    least: Duration,
    /// In this window, and its begin.
    newest: Duration,
    since: Instant,
}

impl Ages {
    pub(super) const fn new(now: Instant) -> Self {
        let none = Duration::from_nanos(u64::MAX);
        Self { least: none, newest: none, since: now }
    }

    /// Returns the plausible age of a packet.
    pub(super) fn plausible(&mut self, age: Duration, now: Instant) -> Duration {
        if now.since(self.since) >= WINDOW {
            (self.least, self.newest, self.since) = (self.newest, age, now);
        }
        self.least = self.least.min(age);
        self.newest = self.newest.min(age);
        let error = if self.least > SILENCE { self.least } else { Duration::ZERO };
        Duration::from_nanos(age.as_nanos().saturating_sub(error.as_nanos())).min(SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_noticed_and_bounded_until_then() {
        let at = Instant::from_millis;
        let ms = Duration::from_millis;
        let mut ages = Ages::new(at(0));
        assert_eq!(ages.plausible(ms(20), at(0)), ms(20));
        assert_eq!(ages.plausible(ms(2_000), at(500)), ms(2_000));
        let hour = 3_600_000;
        assert_eq!(ages.plausible(ms(hour + 20), at(900)), SILENCE);
        assert_eq!(ages.plausible(ms(hour + 20), at(1_100)), SILENCE);
        assert_eq!(ages.plausible(ms(hour + 30), at(2_200)), ms(10));
        assert_eq!(ages.plausible(ms(20), at(2_300)), ms(20));
    }
}
