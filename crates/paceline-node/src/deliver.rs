//! How samples reach the application: order, lateness, release by time, the queue, and the counters of one subscription.
//!
//! [`Delivery`] is a value that one thread at a time uses. A sample is handled when it arrives, may wait for its release, and
//! is late or too old to act by the instant at which the application takes it: by [`Delivery::read`] from a queue, or at once.

mod counts;
mod fate;
mod meter;
mod order;
mod queue;
mod report;
mod seen;
#[cfg(test)]
mod tests;
mod timing;
mod window;

pub use crate::status::{TimedMethod, TimedStatus};
pub use counts::{AgeWindow, Counts};
pub use fate::{Acceptance, DeliveryFate, Moments, Origin, TakenSample};
pub use meter::DeliveryMeter;
pub use paceline_time::order::{BufferLimitError, LateArrival, Placement};
pub use queue::Needed;
pub use report::{
    Decisions, OrderedBy, Resumption, Silence, SpacingReport, SyncReport, TimeBuffering,
};
pub use seen::Seen;
pub use timing::{DeliveryTiming, Fresh, SafeAction, Staged, SyncGroup};

use crate::Sample;
use crate::status::HealthReading;
use order::Orders;
use paceline_proto::control::SubscriptionSpec;
use paceline_proto::{DropReason, PublisherId, Rate, RawSample};
use paceline_sched::{Instant, Late};
use paceline_time::TimeBounds;
use queue::{Queue, Unread};
use std::collections::BTreeMap;
use std::time::Duration;
use window::Turn;

/// The end of a subscription.
#[derive(Debug)]
pub struct Delivery {
    /// The delay bound; during a change, the longer of the two.
    within: Duration,
    /// Every sample is requested, so that a gap in the sequence numbers is a loss.
    whole: bool,
    orders: Orders,
    counts: Counts,
    /// `None` if the application takes each sample at once.
    queue: Option<Box<Queue>>,
    /// Boxed, because most subscriptions have none.
    timing: Option<Box<DeliveryTiming>>,
    /// The newest samples, while there is a view.
    seen: Option<Box<Seen>>,
}

/// Returns the delay bound; the longest time if there is none.
fn bound(spec: &SubscriptionSpec) -> Duration {
    spec.within.map_or(Duration::MAX, Duration::from)
}

impl Delivery {
    /// Creates the end of a subscription whose application takes each sample at once.
    #[must_use]
    pub fn direct(spec: &SubscriptionSpec) -> Self {
        Self {
            within: bound(spec),
            whole: spec.form.rate == Rate::ALL,
            orders: Orders::default(),
            counts: Counts::default(),
            queue: None,
            timing: None,
            seen: None,
        }
    }

    /// Creates the end of a subscription whose application reads from a queue of at most so many samples and 128 MiB. Beyond
    /// that the oldest is dropped with [`DropReason::SubscriberFull`].
    #[must_use]
    pub fn queued(spec: &SubscriptionSpec, samples: usize) -> Self {
        Self { queue: Some(Box::new(Queue::new(samples))), ..Self::direct(spec) }
    }

    /// Adds the delivery by time, before the first sample.
    pub fn set_timing(&mut self, timing: DeliveryTiming) {
        self.timing = Some(Box::new(timing));
    }

    /// Adds a port that delivers samples of the publisher. Without one, its order may be forgotten.
    pub fn open_port(&mut self, publisher: PublisherId) {
        self.orders.open(publisher);
    }

    /// Removes a port of the publisher.
    pub fn close_port(&mut self, publisher: PublisherId) {
        self.orders.close(publisher);
    }

    /// Applies a requested change that has not been granted: the longer delay bound counts until then.
    pub fn relax(&mut self, spec: &SubscriptionSpec) {
        self.within = self.within.max(bound(spec));
        self.whole &= spec.form.rate == Rate::ALL;
    }

    /// Applies a change that is in force.
    pub fn change(&mut self, spec: &SubscriptionSpec) {
        (self.within, self.whole) = (bound(spec), spec.form.rate == Rate::ALL);
    }

    /// Returns true if the subscription has a delay bound.
    #[must_use]
    pub fn has_bound(&self) -> bool {
        self.within < Duration::MAX
    }

    /// Returns the number of samples that a joining subscriber takes at once: a part of its free queue.
    #[must_use]
    pub fn room(&self) -> usize {
        self.queue.as_ref().map_or(usize::MAX, |queue| queue.half_free())
    }

    /// Counts samples that were lost or dropped before this end.
    pub fn handle_lost(&mut self, reason: DropReason, samples: u64) {
        self.counts.drop(reason, samples);
    }

    /// Handles a sample that arrives, without clocks, pull buffer or video.
    pub fn handle_sample(
        &mut self,
        now: Instant,
        from: &Origin<'_>,
        sample: RawSample,
    ) -> DeliveryFate {
        self.handle(Moments::at(now), from, Needed::default(), sample, |_| {})
    }

    /// Handles a sample that arrives. `needed` counts the pictures of the video that were delivered before it. `accepted` gets
    /// a sample that is neither too late nor superseded.
    pub fn handle(
        &mut self,
        Moments { arrived, utc, now, stalled }: Moments,
        from: &Origin<'_>,
        needed: Needed,
        sample: RawSample,
        accepted: impl FnOnce(&RawSample),
    ) -> DeliveryFate {
        let age = sample.age(arrived);
        let order = self.orders.of(from.publisher);
        let gap = match order.take(sample.seq) {
            Turn::Next { gap } => gap,
            Turn::Repeated => return DeliveryFate::Repeated,
            Turn::Superseded => {
                self.counts.drop(DropReason::Superseded, 1);
                return DeliveryFate::Dropped(DropReason::Superseded);
            }
        };
        order.note_age(age.as_nanos());
        let gap = order.count(gap, arrived, age, sample.kind.is_video());
        self.counts.gaps += if self.whole { gap } else { 0 };
        let age = Duration::from(age);
        let late = age > self.within;
        // The rest of its age would have been in time.
        let overdue = late && {
            let here = Duration::from(stalled(sample.published_at, arrived));
            age.saturating_sub(here) <= self.within
        };
        self.counts.late += u64::from(late && !overdue);
        self.counts.overdue += u64::from(overdue);
        if late && from.late == Late::Drop {
            return self.refuse(DropReason::DeadlineMissed);
        }
        let clocks = timing::captured(&sample).zip(utc);
        let until = self.fresh().map(|fresh| fresh.until(arrived, &sample, clocks));
        if until == Some(None) {
            return self.refuse(DropReason::Stale);
        }
        accepted(&sample);
        let mut times = sample;
        let delivery = Sample {
            tag: from.tag.clone(),
            publisher: from.publisher,
            seq: times.seq,
            captured: times.captured,
            age,
            late,
            actuation: None,
            placement: None,
            kind: times.kind,
            encoding: std::mem::take(&mut times.encoding),
            payload: std::mem::take(&mut times.payload),
            attachment: times.attachment.take(),
        };
        let until = until.flatten();
        let unread = Unread { delivery, since: arrived, requested: Duration::ZERO, needed, until };
        let Some(staged) = self.staged_mut() else { return self.finish(now, unread) };
        if staged.handle(arrived, &times, clocks, unread) {
            DeliveryFate::Staged
        } else {
            self.refuse(DropReason::OutOfOrder)
        }
    }

    /// Handles the newest sample of a latched publisher. It is dropped if a newer one was delivered. It may be older than the
    /// delay bound, which begins with the subscription. A subscription with an age limit does not receive it.
    pub fn handle_latched(
        &mut self,
        now: Instant,
        publisher: PublisherId,
        sample: Sample,
    ) -> DeliveryFate {
        if !matches!(self.orders.of(publisher).take(sample.seq), Turn::Next { .. }) {
            return DeliveryFate::Repeated;
        }
        if self.fresh().is_some() {
            return self.refuse(DropReason::Stale);
        }
        let (requested, needed) = (Duration::MAX, Needed::default());
        let unread = Unread { delivery: sample, since: now, requested, needed, until: None };
        match self.staged_mut() {
            Some(staged) => {
                staged.handle_latched(now, unread);
                DeliveryFate::Staged
            }
            None => self.finish(now, unread),
        }
    }

    /// Drops a sample that was not counted as delivered.
    fn refuse(&mut self, reason: DropReason) -> DeliveryFate {
        if reason == DropReason::Stale
            && let Some(DeliveryTiming::Fresh(fresh)) = self.timing.as_deref_mut()
        {
            fresh.count_stale();
        }
        self.counts.refuse(reason);
        DeliveryFate::Dropped(reason)
    }

    /// Counts a sample as delivered, and queues it or hands it over.
    fn finish(&mut self, now: Instant, unread: Unread) -> DeliveryFate {
        self.counts.deliver(&unread.delivery);
        // A latched sample may have any age.
        if unread.requested < Duration::MAX {
            self.counts.arrive(&unread.delivery);
        }
        if let Some(seen) = &mut self.seen {
            seen.keep(&unread.delivery);
        }
        let Some(queue) = &mut self.queue else {
            return match self.release(now, unread) {
                Ok(taken) => DeliveryFate::Taken(taken),
                Err(reason) => DeliveryFate::Dropped(reason),
            };
        };
        queue.push(unread);
        while let Some(mut oldest) = queue.pop_excess() {
            oldest.grow_old(now);
            self.counts.take_back(&oldest.delivery, DropReason::SubscriberFull);
        }
        DeliveryFate::Queued
    }

    /// Decides on a sample as the last step before the application.
    fn release(&mut self, now: Instant, mut unread: Unread) -> Result<TakenSample, DropReason> {
        unread.grow_old(now);
        let passed = match self.timing.as_deref_mut() {
            Some(DeliveryTiming::Fresh(fresh)) => match fresh.release(now, &mut unread) {
                Some(passed) => Some(passed),
                None => {
                    self.counts.take_back(&unread.delivery, DropReason::Stale);
                    return Err(DropReason::Stale);
                }
            },
            Some(DeliveryTiming::Staged(_)) | None => None,
        };
        let Unread { delivery: mut sample, requested, .. } = unread;
        self.counts.take(&sample);
        if !sample.late && sample.age > self.within.saturating_add(requested) {
            sample.late = true;
            self.counts.overdue += 1;
        }
        let (until, resumption) =
            passed.map_or((None, None), |passed| (Some(passed.until), passed.resumption));
        Ok(TakenSample { sample, until, resumption })
    }

    /// Returns the next queued sample that can be decoded and may act, or a safe action that is due.
    pub fn read(&mut self, now: Instant) -> Option<TakenSample> {
        while let Some(queue) = &mut self.queue
            && let Some(mut unread) = queue.pop()
        {
            if !queue.is_usable(&unread) {
                unread.grow_old(now);
                self.counts.take_back(&unread.delivery, DropReason::Undecodable);
            } else if let Ok(taken) = self.release(now, *unread) {
                return Some(taken);
            }
        }
        self.pop_safe().map(TakenSample::plain)
    }

    /// Returns true if [`Self::read`] may return a sample.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.len() > 0)
            || self.fresh().is_some_and(Fresh::has_safe)
    }

    /// Returns the payload bytes that wait to be read.
    #[must_use]
    pub fn unread_bytes(&self) -> usize {
        self.queue.as_ref().map_or(0, |queue| queue.bytes())
    }

    /// Releases the next sample whose time has come; `utc` returns an interval that contains the present time.
    pub fn poll(
        &mut self,
        now: Instant,
        utc: impl Fn() -> Option<TimeBounds>,
    ) -> Option<DeliveryFate> {
        let unread = self.staged_mut()?.poll(now, utc)?;
        Some(self.finish(now, unread))
    }

    /// Returns the commands that have fallen silent. Their safe actions start now.
    pub fn poll_silences(&mut self, now: Instant) -> Vec<Silence> {
        match self.timing.as_deref_mut() {
            Some(DeliveryTiming::Fresh(fresh)) => fresh.poll_silences(now),
            Some(DeliveryTiming::Staged(_)) | None => Vec::new(),
        }
    }

    /// Returns the next safe action that is due as a sample, if it is one.
    pub fn pop_safe(&mut self) -> Option<Sample> {
        match self.timing.as_deref_mut() {
            Some(DeliveryTiming::Fresh(fresh)) => fresh.pop_safe(),
            Some(DeliveryTiming::Staged(_)) | None => None,
        }
    }

    /// Returns the time of the next release or silence, for [`Self::poll`] and [`Self::poll_silences`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.timing.as_deref()? {
            DeliveryTiming::Fresh(fresh) => fresh.next_silence(),
            DeliveryTiming::Staged(staged) => staged.next_release(),
        }
    }

    /// Returns the age limit of commands.
    #[must_use]
    pub fn fresh(&self) -> Option<&Fresh> {
        match self.timing.as_deref()? {
            DeliveryTiming::Fresh(fresh) => Some(fresh),
            DeliveryTiming::Staged(_) => None,
        }
    }

    fn staged_mut(&mut self) -> Option<&mut Staged> {
        match self.timing.as_deref_mut()? {
            DeliveryTiming::Staged(staged) => Some(staged),
            DeliveryTiming::Fresh(_) => None,
        }
    }

    fn staged(&self) -> Option<&Staged> {
        match self.timing.as_deref()? {
            DeliveryTiming::Staged(staged) => Some(staged),
            DeliveryTiming::Fresh(_) => None,
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the ages of the samples since the last call, and starts a new window.
    pub fn take_ages(&mut self) -> AgeWindow {
        self.counts.take_ages()
    }

    /// Returns the largest jitter of a publisher's samples at arrival.
    #[must_use]
    pub fn jitter(&self) -> Duration {
        Duration::from_nanos(self.orders.jitter())
    }

    /// Returns a reading of the counters at `at`, for the health of the subscription. The smallest age is that of the samples since
    /// the last reading.
    #[must_use]
    pub fn health_reading(&mut self, at: Duration) -> HealthReading {
        let youngest = self.counts.take_youngest();
        let counts = &self.counts;
        HealthReading {
            at,
            delivered: counts.delivered,
            late: counts.late_in_all(),
            overdue: counts.overdue,
            youngest,
            gaps: counts.gaps,
            refused: counts.refused,
            dropped: counts.drops(),
            // Gaps have the same information if every sample is requested.
            published: if self.whole { BTreeMap::new() } else { self.orders.published() },
        }
    }

    /// Returns the measurements of release times; `None` without them.
    #[must_use]
    pub fn spacing_report(&self) -> Option<SpacingReport> {
        self.staged()?.report()
    }

    /// Returns the measurements of a member of a group; `utc` is the present time, if the error of the clock is known.
    #[must_use]
    pub fn sync_report(&self, utc: Option<TimeBounds>) -> Option<SyncReport> {
        self.staged()?.sync_report(utc)
    }

    /// Returns the delivery by time: its setting and its counters.
    #[must_use]
    pub fn timed_status(&self, utc: Option<TimeBounds>) -> Option<TimedStatus> {
        Some(match self.timing.as_deref()? {
            DeliveryTiming::Fresh(fresh) => fresh.status(),
            DeliveryTiming::Staged(staged) => staged.status(utc),
        })
    }

    /// Adds a view of the newest samples.
    pub fn watch(&mut self) {
        self.seen.get_or_insert_default().watch();
    }

    /// Removes a view. The last one also removes the stored samples.
    pub fn unwatch(&mut self) {
        if self.seen.as_mut().is_some_and(|seen| seen.leave()) {
            self.seen = None;
        }
    }

    /// Returns the newest samples, while there is a view.
    #[must_use]
    pub fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }
}
