//! A timer with the resolution of the kernel. The one of the runtime has a millisecond, and a link is paced in less.

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId as Clock, clock_gettime};
use paceline_sched::Instant;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use tokio::io::unix::AsyncFd;

/// Returns the time of the monotonic clock, which all nodes of a host share.
pub(super) fn now() -> Instant {
    let read = clock_gettime(Clock::CLOCK_MONOTONIC);
    let nanos = read.map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64);
    Instant::from_nanos(nanos)
}

/// The timer of the kernel.
struct KernelTimer(TimerFd);

impl AsRawFd for KernelTimer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// A timer.
pub(super) struct FineTimer {
    timer: AsyncFd<KernelTimer>,
    set: Option<Instant>,
}

impl FineTimer {
    #[expect(
        deprecated,
        reason = "KernelTimer owns its descriptor and never changes it, and `register` is unsafe"
    )]
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = AsyncFd::new(KernelTimer(TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?))?;
        Ok(Self { timer, set: None })
    }

    /// Waits until an instant; forever for [`Instant::FAR`].
    pub(super) async fn until(&mut self, at: Instant) {
        if at == Instant::FAR {
            return std::future::pending().await;
        }
        if self.set != Some(at) {
            // Zero would disarm it.
            let time = std::time::Duration::from_nanos(at.as_nanos().max(1));
            let once = Expiration::OneShot(TimeSpec::from_duration(time));
            if self.timer.get_ref().0.set(once, TimerSetTimeFlags::TFD_TIMER_ABSTIME).is_err() {
                return tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            self.set = Some(at);
        }
        if let Ok(mut ready) = self.timer.readable().await {
            let _ = self.timer.get_ref().0.wait();
            ready.clear_ready();
        }
        self.set = None;
    }
}
