//! The two clocks of a node; nothing else reads one.

use paceline_proto::Timestamp;
use paceline_sched::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// The monotonic clock, which the processes of a host share.
pub(crate) fn now() -> Instant {
    Instant::from_nanos(read(ClockId::Monotonic))
}

/// UTC as an offset from the monotonic clock, read anew once a second: the system's clock may step,
/// and one clock a sample is enough. Its error nobody has measured yet.
#[derive(Debug, Default)]
pub(crate) struct Utc {
    offset: u64,
    read_at: Option<Instant>,
}

impl Utc {
    /// The time stamp of `now`.
    pub(crate) fn at(&mut self, now: Instant) -> Timestamp {
        if self.read_at.is_none_or(|at| now.since(at) > Duration::from_secs(1)) {
            self.offset = read(ClockId::Realtime).saturating_sub(now.as_nanos());
            self.read_at = Some(now);
        }
        let nanos = now.as_nanos().saturating_add(self.offset);
        Timestamp { nanos, error: Timestamp::UNKNOWN_ERROR }
    }
}
