//! The monotonic clock of a node, and UTC without a clock of its own.

pub(crate) use crate::time::host::{hosts, raw, wall};

use crate::time::host::read;
use paceline_proto::Timestamp;
use paceline_sched::{Duration, Instant};
use rustix::time::ClockId;

/// Returns the time of the monotonic clock, which all processes of a host share.
pub(crate) fn now() -> Instant {
    Instant::from_nanos(read(ClockId::Monotonic))
}

/// The attempts to read both clocks at the same time.
const ATTEMPTS: usize = 4;

/// Returns the offset of UTC from the monotonic clock. A thread that is interrupted between the two readings would
/// see too large a difference, so the readings that are nearest to each other count.
fn offset() -> u64 {
    let readings = (0..ATTEMPTS).map(|_| {
        let before = read(ClockId::Monotonic);
        let utc = read(ClockId::Realtime);
        let took = read(ClockId::Monotonic).saturating_sub(before);
        (took, utc.saturating_sub(before + took / 2))
    });
    readings.min().map_or(0, |(_, offset)| offset)
}

/// UTC as an offset from the monotonic clock.
///
/// The offset is read again once per second, because the system clock may step. In between, one
/// clock read per sample is enough. The clock's error is not measured.
#[derive(Debug, Default)]
pub(crate) struct Utc {
    offset: u64,
    read_at: Option<Instant>,
}

impl Utc {
    /// Returns the UTC time stamp of `now`.
    pub(crate) fn at(&mut self, now: Instant) -> Timestamp {
        if self.read_at.is_none_or(|at| now.since(at) > Duration::from_secs(1)) {
            self.offset = offset();
            self.read_at = Some(now);
        }
        let nanos = now.as_nanos().saturating_add(self.offset);
        Timestamp { nanos, error: Timestamp::UNKNOWN_ERROR }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_reading_does_not_shift_the_offset() {
        let now = now();
        // As if the thread had been interrupted after it read the monotonic clock.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let stamped = Utc::default().at(now);
        let utc = read(ClockId::Realtime);
        assert!((20_000_000..10_000_000_000).contains(&utc.saturating_sub(stamped.nanos)));
    }
}
