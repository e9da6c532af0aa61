//! Which process is hit next, how, and for how long: the same for the same seed.

use paceline_sim::Random;
use std::time::Duration;

/// What happens to a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// It is killed, and started again after a while.
    Kill { victim: usize, away: Duration },
    /// It stands still for a while.
    Stop { victim: usize, away: Duration },
}

/// Faults, one after the other.
#[derive(Debug)]
pub(super) struct Plan(Random);

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// The next fault, which hits one of `victims`.
    pub(super) fn next(&mut self, victims: &[usize]) -> Fault {
        let victim = self.0.one_of(victims).unwrap_or_default();
        if self.0.chance(700) {
            Fault::Kill { victim, away: self.millis(3_000) }
        } else {
            // Some of them for so long that neighbours take it for dead.
            Fault::Stop { victim, away: self.millis(6_000) }
        }
    }

    /// How long it stays quiet then.
    pub(super) fn pause(&mut self) -> Duration {
        self.millis(2_000)
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.0.below(most + 1))
    }
}
