//! Σλ: what arrives, of all streams together.

use super::Load;
use crate::time::{Duration, Instant};

/// Counts arrivals in windows that follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    window: u64,
    current: Load,
    before: Load,
}

impl Meter {
    /// Over how long arrivals are counted: long enough for a few pictures, short enough to follow.
    pub(super) const WINDOW: Duration = Duration::from_millis(100);

    pub(super) const fn new() -> Self {
        let none = Load { packets: 0, bytes: 0 };
        Self { window: 0, current: none, before: none }
    }

    /// An instant before the last one counts as that.
    pub(super) const fn count(&mut self, now: Instant, load: Load) {
        *self = self.at(now);
        self.current = self.current.plus(load);
    }

    /// What comes in a window, as far as is known: in the last whole one, or already more in this one.
    pub(super) fn load(&self, now: Instant) -> Load {
        let Self { current, before, .. } = self.at(now);
        Load {
            packets: current.packets.max(before.packets),
            bytes: current.bytes.max(before.bytes),
        }
    }

    const fn at(self, now: Instant) -> Self {
        let window = now.as_nanos() / Self::WINDOW.as_nanos();
        let none = Load { packets: 0, bytes: 0 };
        match window.saturating_sub(self.window) {
            0 => self,
            1 => Self { window, current: none, before: self.current },
            _ => Self { window, current: none, before: none },
        }
    }
}
