//! Σλ: the arrival rate of all streams together.

use super::Volume;
use paceline_sched::time::{Duration, Instant};

/// Counts arrivals in consecutive windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    window: u64,
    current: Volume,
    before: Volume,
}

impl Meter {
    /// The length of a window: long enough for a few pictures, short enough to follow changes.
    pub(super) const WINDOW: Duration = Duration::from_millis(100);

    pub(super) const fn new() -> Self {
        let none = Volume { packets: 0, bytes: 0 };
        Self { window: 0, current: none, before: none }
    }

    /// Counts an arrival. An instant before the last window counts in that window.
    pub(super) const fn count(&mut self, now: Instant, volume: Volume) {
        *self = self.at(now);
        self.current = self.current.plus(volume);
    }

    /// Returns the expected arrivals of a window: the larger of the last whole window and the present
    /// one so far.
    pub(super) fn load(&self, now: Instant) -> Volume {
        let Self { current, before, .. } = self.at(now);
        Volume {
            packets: current.packets.max(before.packets),
            bytes: current.bytes.max(before.bytes),
        }
    }

    const fn at(self, now: Instant) -> Self {
        let window = now.as_nanos() / Self::WINDOW.as_nanos();
        let none = Volume { packets: 0, bytes: 0 };
        match window.saturating_sub(self.window) {
            0 => self,
            1 => Self { window, current: none, before: self.current },
            _ => Self { window, current: none, before: none },
        }
    }
}
