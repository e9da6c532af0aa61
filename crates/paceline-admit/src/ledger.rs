//! Exact integer sums of the reservations on a link.

use crate::demand::StreamDemand;
use std::collections::BTreeMap;

/// The resources of one stream on a link, or of several together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Amounts {
    /// The sustained rate in bits per second.
    pub rate: u64,
    /// The burst in bytes.
    pub burst: u64,
    /// The buffer in bytes: the most that can be queued.
    pub buffer: u64,
    /// The processor time in nanoseconds per second.
    pub cpu: u64,
    /// The number of streams.
    pub streams: u64,
}

impl Amounts {
    /// Returns the amounts of one stream that costs `cpu`.
    pub(crate) fn of(demand: &StreamDemand, cpu: u64) -> Self {
        let traffic = demand.traffic();
        Self {
            rate: traffic.rate(),
            burst: traffic.burst(),
            buffer: demand.queued(),
            cpu,
            streams: 1,
        }
    }

    /// Adds other amounts.
    pub(crate) fn add(&mut self, more: Self) {
        self.rate += more.rate;
        self.burst += more.burst;
        self.buffer += more.buffer;
        self.cpu += more.cpu;
        self.streams += more.streams;
    }

    /// Subtracts amounts that were added before.
    pub(crate) fn take(&mut self, less: Self) {
        debug_assert!(
            self.rate >= less.rate && self.buffer >= less.buffer && self.streams >= less.streams,
            "only added values are removed"
        );
        self.rate -= less.rate;
        self.burst -= less.burst;
        self.buffer -= less.buffer;
        self.cpu -= less.cpu;
        self.streams -= less.streams;
    }
}

/// The sums of the reservations on a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ledger {
    /// All reservations, tentative or installed. Admission tests count these.
    pub held: Amounts,
    /// The installed part of `held`.
    pub installed: Amounts,
    /// The measured rate of the streams, in bits per second.
    pub used: u64,
}

impl Ledger {
    /// Returns the tentative part of `held`. Streams of shared samples can be fewer held than installed: one is charged
    /// for several.
    #[must_use]
    pub const fn tentative(&self) -> Amounts {
        Amounts {
            rate: self.held.rate.saturating_sub(self.installed.rate),
            burst: self.held.burst.saturating_sub(self.installed.burst),
            buffer: self.held.buffer.saturating_sub(self.installed.buffer),
            cpu: self.held.cpu.saturating_sub(self.installed.cpu),
            streams: self.held.streams.saturating_sub(self.installed.streams),
        }
    }

    /// Returns true if nothing is reserved and no rate was measured.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// Decrements the count of `key` and removes it at 0.
pub(crate) fn less<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    let Some(count) = counts.get_mut(key) else { return };
    *count -= 1;
    if *count == 0 {
        counts.remove(key);
    }
}
