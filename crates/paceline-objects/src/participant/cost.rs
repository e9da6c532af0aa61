//! The measured processing time of a module.

use crate::contract::DelayParts;
use paceline_sched::{Duration, Instant};

/// The greatest processing time of a module: it decays, so that an old maximum is forgotten, and contracts add a
/// margin.
#[derive(Clone, Copy, Debug)]
pub struct ModuleCost {
    greatest: Duration,
    since: Instant,
}

impl ModuleCost {
    /// A maximum halves in this time.
    const HALF_LIFE: Duration = Duration::from_secs(60);

    /// Returns no processing time.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self { greatest: Duration::from_nanos(0), since: now }
    }

    /// Takes a measured time.
    pub fn add(&mut self, cost: Duration, now: Instant) {
        let halves = now.since(self.since).as_nanos() / Self::HALF_LIFE.as_nanos();
        if halves > 0 {
            self.greatest = Duration::from_nanos(self.greatest.as_nanos() >> halves.min(63));
            self.since = now;
        }
        if cost > self.greatest {
            (self.greatest, self.since) = (cost, now);
        }
    }

    /// Returns the decayed maximum.
    #[must_use]
    pub const fn greatest(&self) -> Duration {
        self.greatest
    }

    /// Returns the time that contracts are charged: the decayed maximum, half as much again, and 100 µs.
    #[must_use]
    pub const fn charged(&self) -> Duration {
        self.greatest.mul_div(3, 2).saturating_add(Duration::from_micros(100))
    }
}

/// The processing times of all modules of a participant.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModuleCosts {
    pub(super) deciding: ModuleCost,
    pub(super) fragmenting: ModuleCost,
    pub(super) sending: ModuleCost,
    pub(super) applying: ModuleCost,
}

impl ModuleCosts {
    pub(super) const fn new(now: Instant) -> Self {
        let cost = ModuleCost::new(now);
        Self { deciding: cost, fragmenting: cost, sending: cost, applying: cost }
    }

    /// Returns the times that contracts are charged.
    pub(super) const fn charged(&self) -> DelayParts {
        DelayParts {
            deciding: self.deciding.charged(),
            fragmenting: self.fragmenting.charged(),
            sending: self.sending.charged(),
            observer: self.applying.charged(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_halves_in_a_minute() {
        let at = Instant::from_millis;
        let mut cost = ModuleCost::new(at(0));
        cost.add(Duration::from_micros(800), at(10));
        cost.add(Duration::from_micros(10), at(20));
        assert_eq!(cost.greatest(), Duration::from_micros(800));
        assert_eq!(cost.charged(), Duration::from_micros(1_300));
        cost.add(Duration::from_micros(10), at(60_010));
        assert_eq!(cost.greatest(), Duration::from_micros(400));
        cost.add(Duration::from_micros(10), at(100_000_000));
        assert_eq!(cost.greatest(), Duration::from_micros(10));
    }
}
