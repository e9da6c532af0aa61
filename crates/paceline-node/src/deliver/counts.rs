//! The counters of a subscription.

use crate::Sample;
use paceline_proto::{DropReason, Drops};
use std::time::Duration;

/// The counters of a subscription since it was declared.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Samples that the application has taken or can take.
    pub delivered: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Samples older than the delay bound when they arrived, delivered or dropped for it, without those of `overdue`.
    pub late: u64,
    /// Samples that were in time until this process, where they waited: for the application, or because the process was not
    /// scheduled.
    pub overdue: u64,
    /// The sum of the ages of the samples that the application took, in nanoseconds.
    pub age_sum: u64,
    /// Samples that were published between two that arrived, but did not arrive here.
    pub gaps: u64,
    /// Samples that arrived in order and were dropped here.
    pub refused: u64,
    /// Most subscriptions drop nothing.
    drops: Option<Box<Drops>>,
    ages: AgeWindow,
    /// The smallest age of the samples that were delivered since the last reading, in nanoseconds.
    youngest: Option<u64>,
}

/// The ages of the samples that the application took in a window, and of those that were dropped unread.
///
/// They are updated together: mean and maximum of different samples could contradict each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct AgeWindow {
    samples: u64,
    sum: u64,
    /// The longest age, in nanoseconds.
    pub longest: u64,
}

fn nanos(sample: &Sample) -> u64 {
    u64::try_from(sample.age.as_nanos()).unwrap_or(u64::MAX)
}

impl AgeWindow {
    fn add(&mut self, age: u64) {
        self.samples += 1;
        self.sum = self.sum.saturating_add(age);
        self.longest = self.longest.max(age);
    }

    /// Returns the mean age in nanoseconds; `None` without a sample.
    #[must_use]
    pub const fn mean(&self) -> Option<u64> {
        self.sum.checked_div(self.samples)
    }
}

impl Counts {
    /// Returns the dropped samples by reason.
    #[must_use]
    pub fn drops(&self) -> Drops {
        self.drops.as_deref().copied().unwrap_or_default()
    }

    /// Returns the number of samples that were older than the delay bound, at their arrival or when the application took them.
    #[must_use]
    pub const fn late_in_all(&self) -> u64 {
        self.late.saturating_add(self.overdue)
    }

    /// Returns the number of samples between the first and the newest of each publisher that were not delivered.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        self.gaps.saturating_add(self.refused)
    }

    /// Counts samples that are dropped.
    pub(super) fn drop(&mut self, reason: DropReason, samples: u64) {
        self.drops.get_or_insert_default().add(reason, samples);
    }

    /// Counts a sample that arrived in order and is dropped here.
    pub(super) fn refuse(&mut self, reason: DropReason) {
        self.refused += 1;
        self.drop(reason, 1);
    }

    pub(super) fn deliver(&mut self, sample: &Sample) {
        self.delivered += 1;
        self.bytes += sample.payload.len() as u64;
    }

    /// Notes the age of a sample that is delivered as soon as it has arrived.
    pub(super) fn arrive(&mut self, sample: &Sample) {
        let age = nanos(sample);
        self.youngest = Some(self.youngest.map_or(age, |youngest| youngest.min(age)));
    }

    /// Returns the smallest age since the last call; `None` without a sample.
    pub(super) fn take_youngest(&mut self) -> Option<Duration> {
        self.youngest.take().map(Duration::from_nanos)
    }

    /// Notes the age of a delivered sample when the application takes it.
    pub(super) fn take(&mut self, sample: &Sample) {
        self.age_sum = self.age_sum.saturating_add(nanos(sample));
        self.ages.add(nanos(sample));
    }

    /// Corrects the counters for a delivered sample that is dropped before the application took it.
    pub(super) fn take_back(&mut self, sample: &Sample, reason: DropReason) {
        self.delivered -= 1;
        self.bytes -= sample.payload.len() as u64;
        self.ages.add(nanos(sample));
        self.refuse(reason);
    }

    /// Returns the ages since the last call, and starts a new window.
    pub(super) fn take_ages(&mut self) -> AgeWindow {
        std::mem::take(&mut self.ages)
    }
}
