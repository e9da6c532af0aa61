//! A clock that many threads read while one corrects it.

use super::page::{ClockPage, ClockReading, ClockStatus, WORDS};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// One of the two copies of the page, with a number that is odd while it is being written.
#[derive(Debug, Default)]
struct Slot {
    version: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// A clock that any number of threads read without waiting.
///
/// The page exists twice: readers use one copy while the other is written. A reader only repeats its reading if two new
/// pages appear during it.
#[derive(Debug, Default)]
pub struct SharedClock {
    slots: [Slot; 2],
    active: AtomicUsize,
    /// The latest time returned since the first synchronisation.
    latest: AtomicU64,
    /// The latest stamp.
    stamp: AtomicU64,
}

impl SharedClock {
    /// Replaces the page. Only one thread may do so.
    pub fn publish(&self, page: &ClockPage) {
        let next = 1 - self.active.load(Ordering::Relaxed).min(1);
        let Some(slot) = self.slots.get(next) else { return };
        let version = slot.version.load(Ordering::Relaxed);
        slot.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (to, from) in slot.words.iter().zip(page.to_words()) {
            to.store(from, Ordering::Relaxed);
        }
        slot.version.store(version.wrapping_add(2), Ordering::Release);
        self.active.store(next, Ordering::Release);
    }

    /// Returns the page.
    #[must_use]
    pub fn page(&self) -> ClockPage {
        loop {
            let active = self.active.load(Ordering::Acquire).min(1);
            let Some(slot) = self.slots.get(active) else { return ClockPage::default() };
            let version = slot.version.load(Ordering::Acquire);
            let words = core::array::from_fn(|at| {
                slot.words.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
            });
            fence(Ordering::Acquire);
            if version.is_multiple_of(2) && slot.version.load(Ordering::Relaxed) == version {
                return ClockPage::from_words(words);
            }
        }
    }

    /// Returns the reading at the instant `raw` of the raw clock; `wall` reads the system clock.
    ///
    /// Since the first synchronisation, no reading is smaller than an earlier one of any thread, for any `raw`.
    pub fn read(&self, raw: u64, wall: impl FnOnce() -> u64) -> ClockReading {
        let reading = self.page().read(raw, wall);
        if reading.status == ClockStatus::Unsynchronised {
            return reading;
        }
        let latest = self.latest.fetch_max(reading.nanos, Ordering::AcqRel);
        ClockReading { nanos: reading.nanos.max(latest), ..reading }
    }

    /// Returns a reading whose time is greater than that of every earlier stamp of this clock, even across the first
    /// synchronisation. Its bounds are those of the present time.
    ///
    /// If the clock once steps back, at its first synchronisation, stamps advance by 1 ns each until it has caught up.
    pub fn stamp(&self, raw: u64, wall: impl FnOnce() -> u64) -> ClockReading {
        let reading = self.read(raw, wall);
        let next = |last: u64| Some(last.saturating_add(1).max(reading.nanos));
        let last = self.stamp.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        ClockReading {
            nanos: last.map_or(reading.nanos, |last| next(last).unwrap_or(last)),
            ..reading
        }
    }
}
