//! `CLOCK_MONOTONIC`, which all processes and network namespaces of a machine share.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Returns the nanoseconds since the machine started.
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Sleeps until `instant`; returns immediately if it has passed.
pub(super) fn sleep_until(instant: u64) {
    let left = instant.saturating_sub(now());
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
}
