//! The clocks of the host. Only this module reads them.

use paceline_time::clock::service::HostClocks;
use rustix::time::{ClockId, clock_gettime};

/// Returns the time of a clock in nanoseconds.
pub(crate) fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// The monotonic clock that nothing adjusts.
#[cfg(target_os = "linux")]
const RAW: ClockId = ClockId::MonotonicRaw;
#[cfg(not(target_os = "linux"))]
const RAW: ClockId = ClockId::Monotonic;
/// The monotonic clock that also runs while the host is suspended.
#[cfg(target_os = "linux")]
const BOOT: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOT: ClockId = ClockId::Monotonic;

/// Returns the time of the raw clock in nanoseconds, which all processes of a host share.
pub(crate) fn raw() -> u64 {
    read(RAW)
}

/// Returns the time of the system clock in nanoseconds since 1970.
pub(crate) fn wall() -> u64 {
    read(ClockId::Realtime)
}

/// Returns the clocks of the host at one instant. Of several readings, the one that took the shortest time counts.
pub(crate) fn hosts() -> HostClocks {
    let readings = (0..ATTEMPTS).map(|_| {
        let (raw, boot, wall) = (raw(), read(BOOT), wall());
        (read(RAW).saturating_sub(raw), HostClocks { raw, boot, wall })
    });
    readings.min_by_key(|(took, _)| *took).map_or_else(HostClocks::default, |(_, hosts)| hosts)
}

/// The attempts to read both clocks at the same time.
const ATTEMPTS: usize = 4;
