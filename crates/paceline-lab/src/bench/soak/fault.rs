//! A random sequence of faults, determined by its seed.

use paceline_sim::Random;
use std::time::Duration;

/// A fault of a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// The process is killed and restarted after `away`.
    Kill { victim: usize, away: Duration },
    /// The process is stopped for `away`.
    Stop { victim: usize, away: Duration },
}

/// An endless sequence of faults.
#[derive(Debug)]
pub(super) struct Plan(Random);

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// Returns the next fault, for one of `victims`.
    pub(super) fn next(&mut self, victims: &[usize]) -> Fault {
        let victim = self.0.one_of(victims).unwrap_or_default();
        if self.0.chance(700) {
            Fault::Kill { victim, away: self.millis(3_000) }
        } else {
            // Some stops are so long that neighbours consider the process dead.
            Fault::Stop { victim, away: self.millis(6_000) }
        }
    }

    /// Returns the pause until the next fault.
    pub(super) fn pause(&mut self) -> Duration {
        self.millis(2_000)
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.0.below(most + 1))
    }
}
