//! The arrival times of frames, and the delay of the empty path.
//!
//! Both ends have clocks that are not synchronized. Only differences of arrival times are used, so an unknown constant offset
//! does not matter, as in LEDBAT (RFC 6817, Shalunov et al., 2012) and SCReAM (RFC 8298, Johansson and Sarker, 2017).

use paceline_sched::{Duration, Instant};

/// Stamps whose interval differs by more than this from that of the receipts are not used any more.
const CONTRADICTION: u64 = 2_000_000_000;
/// The length of one of the two windows over which the minimum delay is taken.
const WINDOW: Duration = Duration::from_secs(10);
/// Minima of a frame's delay over fewer frames than this are not reliable.
const FRAMES_MIN: u32 = 4;

/// Returns `later - earlier`, within the range of the type.
pub(super) fn signed(later: u64, earlier: u64) -> i64 {
    let magnitude = i64::try_from(later.abs_diff(earlier)).unwrap_or(i64::MAX);
    if later >= earlier { magnitude } else { -magnitude }
}

/// The source of arrival times.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Source {
    /// No acknowledgement has arrived.
    Unknown,
    /// Stamps of the receiver, with the last one.
    Stamps(u32),
    /// The receipt of acknowledgements, less the time for which the receiver held them.
    Receipts,
}

/// Places the arrivals of frames on one time line, in nanoseconds.
#[derive(Debug)]
pub(super) struct ArrivalClock {
    source: Source,
    /// The last arrival, and the receipt of its acknowledgement, less the time for which it was held.
    last: u64,
    receipt: u64,
}

impl ArrivalClock {
    pub(super) const fn new() -> Self {
        Self { source: Source::Unknown, last: 0, receipt: 0 }
    }

    /// Returns the arrival of the newest frame of an acknowledgement, never before that of an earlier one. The second value
    /// is `true` if the stamps contradict the receipts, or are missing: then all earlier arrivals are on another time line.
    pub(super) fn arrival(&mut self, receipt: Instant, stamp: Option<u32>) -> (u64, bool) {
        let receipt = receipt.as_nanos();
        let since = receipt.saturating_sub(self.receipt);
        let placed = match (self.source, stamp) {
            (Source::Unknown, Some(stamp)) => Some((receipt, Source::Stamps(stamp))),
            (Source::Stamps(before), Some(stamp)) => {
                let forward = u64::from(stamp.wrapping_sub(before)) * 1_000;
                let back = u64::from(before.wrapping_sub(stamp)) * 1_000;
                let at = if forward <= back {
                    self.last.saturating_add(forward)
                } else {
                    self.last.saturating_sub(back)
                };
                let differs = signed(at, self.last).abs_diff(signed(since, 0)) > CONTRADICTION;
                (!differs).then_some((at, Source::Stamps(stamp)))
            }
            (Source::Unknown | Source::Stamps(_), None) | (Source::Receipts, _) => None,
        };
        let anew = matches!(self.source, Source::Stamps(_)) && placed.is_none();
        let (at, source) = placed.unwrap_or((receipt, Source::Receipts));
        self.last = if anew { at } else { at.max(self.last) };
        self.receipt = self.receipt.max(receipt);
        self.source = source;
        (self.last, anew)
    }
}

/// The delay of the least delayed frame in nanoseconds, and the bytes that the link had to send by then, with its own.
#[derive(Clone, Copy, Debug)]
struct Least {
    since: Instant,
    delay: i64,
    ahead: u64,
    /// The delay with the time of the bytes ahead. Frames without others ahead show the path best.
    order: i64,
}

/// The delay of the empty path: the minimum of the last 10 to 20 s in which frames arrived.
#[derive(Debug)]
pub(super) struct PathDelay {
    windows: Option<[Least; 2]>,
    frames: u32,
    last: Instant,
    /// The mean change of the delay between acknowledgements, as a multiple of 1/16 ns (RFC 3550, section 6.4.1).
    jitter: u64,
    before: i64,
}

impl PathDelay {
    pub(super) const fn new() -> Self {
        Self { windows: None, frames: 0, last: Instant::ZERO, jitter: 0, before: 0 }
    }

    /// Forgets the delay, for another time line or another path. The jitter stays.
    pub(super) const fn forget(&mut self) {
        self.windows = None;
        self.frames = 0;
    }

    /// Records the delay of a frame with `ahead` bytes, which take about `own` nanoseconds.
    pub(super) fn note(&mut self, now: Instant, delay: i64, ahead: u64, own: u64) {
        // The clocks may have drifted apart during a long pause.
        if now.since(self.last) > WINDOW {
            self.forget();
        }
        self.last = now;
        if self.frames > 0 {
            let change = delay.abs_diff(self.before).min(1_000_000_000);
            self.jitter = paceline_sched::time::jitter_step(self.jitter, change);
        }
        self.before = delay;
        self.frames = self.frames.saturating_add(1);
        let order = delay.saturating_add(i64::try_from(own).unwrap_or(i64::MAX));
        let new = Least { since: now, delay, ahead, order };
        let [old, present] = self.windows.unwrap_or([new, new]);
        self.windows = Some(if now.since(present.since) > WINDOW {
            [present, new]
        } else if order < present.order {
            [old, Least { since: present.since, ..new }]
        } else {
            [old, present]
        });
    }

    /// Makes the delay of the empty path longer: the path has changed.
    pub(super) fn lengthen(&mut self, by: u64) {
        let by = i64::try_from(by).unwrap_or(i64::MAX);
        for least in self.windows.iter_mut().flatten() {
            least.delay = least.delay.saturating_add(by);
            least.order = least.order.saturating_add(by);
        }
    }

    /// Returns the minimum delay in nanoseconds, with the bytes ahead; `None` before there are enough frames.
    pub(super) fn least(&self) -> Option<(i64, u64)> {
        let [old, new] = self.windows.filter(|_| self.frames >= FRAMES_MIN)?;
        let least = if old.order <= new.order { old } else { new };
        Some((least.delay, least.ahead))
    }

    /// Returns the mean change of the delay from one acknowledgement to the next.
    pub(super) const fn jitter(&self) -> Duration {
        Duration::from_nanos(self.jitter >> 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn stamps_remove_the_jitter_of_the_return_path() {
        let mut clock = ArrivalClock::new();
        assert_eq!(clock.arrival(at(1_000), Some(u32::MAX - 999)), (1_000 * MS, false));
        assert_eq!(clock.arrival(at(1_090), Some(4_000)), (1_005 * MS, false), "it wraps");
        assert_eq!(clock.arrival(at(1_091), Some(3_000)), (1_005 * MS, false), "overtaken");
    }

    #[test]
    fn stamps_that_jump_are_not_used_any_more() {
        for stamp in [3_000_000_u32, 2_100_000, 4_000_000_000] {
            let mut clock = ArrivalClock::new();
            clock.arrival(at(10_000), Some(0));
            assert_eq!(clock.arrival(at(10_001), Some(stamp)), (10_001 * MS, true));
            assert_eq!(clock.arrival(at(10_002), Some(stamp + 1)), (10_002 * MS, false));
        }
        let mut clock = ArrivalClock::new();
        clock.arrival(at(10_000), Some(0));
        assert_eq!(clock.arrival(at(10_001), None), (10_001 * MS, true), "a missing stamp");
        assert_eq!(clock.arrival(at(10_000), None), (10_001 * MS, false), "never backwards");
    }

    #[test]
    fn the_empty_path_is_the_minimum_of_two_windows() {
        let mut path = PathDelay::new();
        for (second, delay) in [(0, 9), (1, 5), (2, 7), (3, 8)] {
            assert_eq!(path.least(), None);
            path.note(at(second * 1_000), delay, 100, 0);
        }
        assert_eq!(path.least(), Some((5, 100)));
        for second in 4..24 {
            path.note(at(second * 1_000), 8, 200, 0);
        }
        assert_eq!(path.least(), Some((8, 200)));
        path.lengthen(2);
        assert_eq!(path.least(), Some((10, 200)));
        path.note(at(60_000), -3, 1, 0);
        assert_eq!(path.least(), None, "the clocks may have drifted");
    }

    #[test]
    fn extreme_times_stay_in_range() {
        assert_eq!((signed(u64::MAX, 0), signed(0, u64::MAX)), (i64::MAX, -i64::MAX));
        let mut path = PathDelay::new();
        for delay in [i64::MAX, i64::MIN, 0, i64::MAX, i64::MIN] {
            path.note(Instant::FAR, delay, u64::MAX, u64::MAX);
        }
        path.lengthen(u64::MAX);
        assert!(path.least().is_some() && path.jitter() <= Duration::from_secs(1));
    }
}
