//! The true time of a measurement.

use std::time::SystemTime;

/// The system clock in nanoseconds since 1970.
pub(super) fn wall() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A true time: the system clock plus an offset that may grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth {
    /// The offset at `begun`, in nanoseconds.
    offset: u64,
    /// Its growth, in millionths of the time since `begun`.
    gain_ppm: u64,
    begun: u64,
}

impl Truth {
    /// Returns the system clock plus `offset` nanoseconds, which grow by `gain_ppm` from now on.
    pub(super) fn new(offset: u64, gain_ppm: u64) -> Self {
        Self { offset, gain_ppm, begun: wall() }
    }

    /// Returns the offset at this reading of the system clock.
    pub(super) fn ahead(self, wall: u64) -> u64 {
        let since = wall.saturating_sub(self.begun);
        self.offset
            + since / 1_000_000 * self.gain_ppm
            + since % 1_000_000 * self.gain_ppm / 1_000_000
    }

    /// Returns the true time.
    pub(super) fn now(self) -> u64 {
        let wall = wall();
        wall + self.ahead(wall)
    }
}
