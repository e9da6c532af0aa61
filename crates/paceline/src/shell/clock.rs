//! The two clocks of a node; nothing else reads one.

use paceline_proto::Timestamp;
use paceline_sched::Instant;
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

/// UTC by the system's clock, whose error nobody has measured yet.
pub(crate) fn utc() -> Timestamp {
    Timestamp { nanos: read(ClockId::Realtime), error: Timestamp::UNKNOWN_ERROR }
}
