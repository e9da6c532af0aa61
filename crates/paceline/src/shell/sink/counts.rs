//! The counters of a subscription's end.

use crate::sample::Sample;
use paceline_proto::{DropReason, Drops};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Drop counters that several threads update. They exist from the first drop on: most subscriptions and streams have none.
#[derive(Debug, Default)]
pub(crate) struct AtomicDrops(OnceLock<Box<[AtomicU64; DropReason::ALL.len()]>>);

impl AtomicDrops {
    pub(crate) fn add(&self, reason: DropReason, samples: u64) {
        if let Some(count) = self.0.get_or_init(Box::default).get(reason.index()) {
            let add = |count: u64| Some(count.saturating_add(samples));
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }

    /// Returns the counters.
    pub(crate) fn load(&self) -> Drops {
        self.read(|count| count.load(Ordering::Relaxed))
    }

    /// Returns and resets the counters.
    pub(crate) fn take(&self) -> Drops {
        self.read(|count| count.swap(0, Ordering::Relaxed))
    }

    fn read(&self, read: impl Fn(&AtomicU64) -> u64) -> Drops {
        let mut drops = Drops::default();
        for (reason, count) in
            self.0.get().into_iter().flat_map(|counts| DropReason::ALL.into_iter().zip(&**counts))
        {
            drops.add(reason, read(count));
        }
        drops
    }
}

/// The delivery counters of a subscription.
#[derive(Debug, Default)]
pub(crate) struct SinkCounts {
    pub(crate) delivered: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Samples older than the delay bound, delivered or dropped for it.
    pub(crate) late: AtomicU64,
    /// The sum of the ages of all delivered samples, in nanoseconds.
    pub(crate) age_sum: AtomicU64,
    pub(crate) drops: AtomicDrops,
    /// Samples that were published between two that arrived, but did not arrive here.
    pub(super) gaps: AtomicU64,
    /// Samples that arrived in order and were dropped here.
    pub(super) refused: AtomicU64,
    ages: Mutex<AgeWindow>,
}

/// The ages of the samples that arrived in a window, including samples that were dropped unread.
///
/// They are updated together: mean and maximum of different samples could contradict each other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AgeWindow {
    samples: u64,
    /// The sum of the ages, in nanoseconds; `longest` has the same unit.
    sum: u64,
    pub(crate) longest: u64,
}

impl AgeWindow {
    fn add(&mut self, age: u64) {
        self.samples += 1;
        self.sum = self.sum.saturating_add(age);
        self.longest = self.longest.max(age);
    }

    /// Returns the mean age in nanoseconds; `None` if no sample arrived.
    pub(crate) const fn mean(&self) -> Option<u64> {
        self.sum.checked_div(self.samples)
    }
}

impl SinkCounts {
    /// Returns the ages since the last call, and starts a new window.
    pub(crate) fn take_ages(&self) -> AgeWindow {
        std::mem::take(&mut self.ages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the number of samples between the first and the newest of each publisher that were not
    /// delivered.
    pub(crate) fn missing(&self) -> u64 {
        self.gaps.load(Ordering::Relaxed).saturating_add(self.refused.load(Ordering::Relaxed))
    }

    pub(super) fn count_delivered(&self, bytes: u64, age: u64) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.age_sum.fetch_add(age, Ordering::Relaxed);
        self.ages.lock().unwrap_or_else(PoisonError::into_inner).add(age);
    }

    /// Corrects the counters for a sample that was dropped from the queue unread.
    pub(super) fn count_unread(&self, delivery: &Sample, reason: DropReason) {
        let age = u64::try_from(delivery.age.as_nanos()).unwrap_or(u64::MAX);
        self.delivered.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(delivery.payload.len() as u64, Ordering::Relaxed);
        self.age_sum.fetch_sub(age, Ordering::Relaxed);
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.drops.add(reason, 1);
    }
}
