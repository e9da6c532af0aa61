//! The end of a subscription: a bounded queue or a callback, and the counters of both.

use super::clock;
use super::depth::HostDepth;
use super::events::Events;
use super::held::HeldBuffer;
use super::pacer::{self, Wake};
use crate::delivery::{SyncReport, TimedStatus};
use crate::event::SubscriberEvent;
use crate::sample::Sample;
use crate::time::Clock;
use event_listener::Event;
use paceline_proto::control::SubscriptionSpec;
use paceline_proto::{DropReason, PublisherId, Rate, RawSample, Tag};
use paceline_sched::{Instant, Late};
use paceline_time::TimeBounds;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The limit of payload bytes in a subscriber's queue.
const WAITING_BYTES_MAX: usize = 128 << 20;

mod counts;
mod order;
mod queue;
mod seen;
mod timing;

pub(crate) use counts::{AgeWindow, AtomicDrops, SinkCounts};
pub(crate) use order::Order;
use order::Orders;
pub(crate) use queue::Needed;
use queue::{Queue, Unread};
use seen::Seen;
pub(crate) use timing::{Fresh, Group, Method, Staged, Timing};

/// A subscriber's callback.
pub(crate) type Callback = Box<dyn FnMut(Sample) + Send>;

/// The origin of a sample.
pub(crate) struct Origin<'a> {
    pub(crate) tag: &'a Tag,
    pub(crate) publisher: PublisherId,
    pub(crate) late: Late,
}

enum Output {
    Queue(Box<Queue>),
    Callback(Mutex<Callback>),
}

/// The end of a subscription.
pub(crate) struct Sink {
    /// The delay bound in nanoseconds; during a change, the longer of the two.
    within: AtomicU64,
    /// Every sample is requested, so that a gap in the sequence numbers is a loss.
    whole: AtomicBool,
    output: Output,
    /// The pull buffer that also stores the samples.
    held: Option<Arc<HeldBuffer>>,
    /// The delivery by time. Boxed, because most subscriptions have none.
    timing: Option<Box<Timing>>,
    waiting_bytes: AtomicUsize,
    /// Counts the waiting bytes of a subscription with a contract on its node.
    depth: Option<Arc<HostDepth>>,
    events: Events<SubscriberEvent>,
    closed: AtomicBool,
    seen: Seen,
    orders: Orders,
    /// Notified of each sample and event, and of the end.
    pub(crate) arrival: Event,
    pub(crate) counts: SinkCounts,
}

/// Returns the delay bound in nanoseconds; the largest value if there is none.
fn nanos(spec: &SubscriptionSpec) -> u64 {
    spec.within.map_or(u64::MAX, |within| within.as_nanos())
}

/// Returns true if the subscription requests every sample.
fn is_whole(spec: &SubscriptionSpec) -> bool {
    spec.form.rate == Rate::ALL
}

impl Wake for Sink {
    fn wake(&self) {
        let Some(timing) = &self.timing else { return };
        timing.woken();
        if self.is_closed() {
            return;
        }
        match &timing.method {
            Method::Staged(staged) => {
                while let Some(unread) = {
                    let now = clock::now();
                    staged.poll(now, || timing.utc(now))
                } {
                    self.finish(unread);
                }
                timing.schedule(staged.next_release());
            }
            Method::Fresh(fresh) => {
                self.start_safe_actions(fresh);
                timing.schedule(fresh.next_silence());
            }
        }
    }

    fn fail(&self) {
        self.close();
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let left = *self.waiting_bytes.get_mut();
        self.depth.iter().for_each(|depth| depth.take(left as u64));
    }
}

impl Sink {
    pub(crate) fn with_queue(spec: &SubscriptionSpec, samples: usize) -> Self {
        Self::new(spec, Output::Queue(Box::new(Queue::new(samples))))
    }

    pub(crate) fn with_callback(spec: &SubscriptionSpec, callback: Callback) -> Self {
        Self::new(spec, Output::Callback(Mutex::new(callback)))
    }

    fn new(spec: &SubscriptionSpec, output: Output) -> Self {
        Self {
            within: AtomicU64::new(nanos(spec)),
            whole: AtomicBool::new(is_whole(spec)),
            output,
            held: None,
            timing: None,
            waiting_bytes: AtomicUsize::new(0),
            depth: None,
            events: Events::default(),
            closed: AtomicBool::new(false),
            seen: Seen::default(),
            orders: Orders::default(),
            arrival: Event::new(),
            counts: SinkCounts::default(),
        }
    }

    /// Adds a pull buffer that also stores the samples.
    pub(crate) fn holding(mut self, held: Option<Arc<HeldBuffer>>) -> Self {
        self.held = held;
        self
    }

    /// Counts the samples that wait here as those of a contract on the node.
    pub(crate) fn counted(mut self, depth: Option<Arc<HostDepth>>) -> Self {
        self.depth = depth;
        self
    }

    /// Counts the payload of a sample that begins to wait.
    fn add_waiting(&self, bytes: usize) {
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.depth.iter().for_each(|depth| depth.add(bytes as u64));
    }

    /// Counts the payload of a sample that no longer waits.
    fn take_waiting(&self, bytes: usize) {
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.depth.iter().for_each(|depth| depth.take(bytes as u64));
    }

    /// Adds the delivery by time.
    pub(crate) fn timed(mut self, method: Option<Method>, clock: Clock) -> Self {
        self.timing = method.map(|method| Box::new(Timing::new(method, clock)));
        self
    }

    /// Connects the delivery by time with its wake-ups.
    pub(crate) fn bind(self: &Arc<Self>, realtime: bool) {
        if let Some(timing) = &self.timing {
            let sink = Arc::downgrade(self);
            timing.bind(sink);
            if realtime {
                pacer::use_realtime();
            }
        }
    }

    /// Returns the age limit of commands.
    pub(crate) fn fresh(&self) -> Option<&Fresh> {
        self.timing.as_ref().and_then(|timing| timing.fresh())
    }

    /// Returns the largest jitter of a publisher's samples at arrival, and the samples that did not arrive here.
    pub(crate) fn arrivals(&self) -> (std::time::Duration, u64) {
        let jitter = std::time::Duration::from_nanos(self.orders.jitter());
        (jitter, self.counts.gaps.load(Ordering::Relaxed))
    }

    /// Returns the delivery by time.
    pub(crate) fn timed_status(&self) -> Option<TimedStatus> {
        let timing = self.timing.as_ref()?;
        Some(match &timing.method {
            Method::Fresh(fresh) => fresh.status(),
            Method::Staged(staged) => staged.status(timing.utc(clock::now())),
        })
    }

    /// Returns the measurements of a member of a group.
    pub(crate) fn sync_report(&self) -> Option<SyncReport> {
        let timing = self.timing.as_ref()?;
        timing.staged()?.sync_report(timing.utc(clock::now()))
    }

    /// Returns the samples that wait for their release.
    pub(crate) fn staged(&self) -> Option<&Staged> {
        self.timing.as_ref().and_then(|timing| timing.staged())
    }

    /// Returns the pull buffer.
    pub(crate) const fn held(&self) -> Option<&Arc<HeldBuffer>> {
        self.held.as_ref()
    }

    /// Returns the delivery order of a publisher's samples.
    pub(crate) fn order_of(&self, publisher: PublisherId) -> Arc<Order> {
        self.orders.of(publisher)
    }

    /// Returns the newest sample for views.
    pub(crate) const fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Returns true if the subscription has a delay bound.
    pub(crate) fn has_bound(&self) -> bool {
        self.within.load(Ordering::Relaxed) < u64::MAX
    }

    /// Returns the number of samples that a joining subscriber takes at once: a part of its free queue.
    pub(crate) fn room(&self) -> usize {
        match &self.output {
            Output::Callback(_) => usize::MAX,
            Output::Queue(queue) => (queue.capacity() / 2).saturating_sub(queue.len()),
        }
    }

    /// Applies a requested change that has not been granted: the longer delay bound counts until
    /// then.
    pub(crate) fn relax(&self, spec: &SubscriptionSpec) {
        self.within.fetch_max(nanos(spec), Ordering::Relaxed);
        self.whole.fetch_and(is_whole(spec), Ordering::Relaxed);
    }

    /// Applies a change that is in force.
    pub(crate) fn change(&self, spec: &SubscriptionSpec) {
        self.within.store(nanos(spec), Ordering::Relaxed);
        self.whole.store(is_whole(spec), Ordering::Relaxed);
    }

    /// Delivers a sample or drops it with a reason; returns true if it was delivered.
    ///
    /// `needed` counts the pictures of the video that were delivered before it.
    pub(crate) fn deliver(
        &self,
        now: Instant,
        from: &Origin<'_>,
        (order, needed): (&Arc<Order>, Needed),
        sample: RawSample,
    ) -> bool {
        if self.closed.load(Ordering::Relaxed) {
            return false;
        }
        let Some(turn) = order.take(sample.seq) else {
            self.counts.drops.add(DropReason::Superseded, 1);
            return false;
        };
        if self.whole.load(Ordering::Relaxed) {
            self.counts.gaps.fetch_add(turn.gap, Ordering::Relaxed);
        }
        let age = sample.age(now);
        order.arrived(age.as_nanos());
        let late = age.as_nanos() > self.within.load(Ordering::Relaxed);
        let counts = &self.counts;
        counts.late.fetch_add(u64::from(late), Ordering::Relaxed);
        if late && from.late == Late::Drop {
            counts.refused.fetch_add(1, Ordering::Relaxed);
            counts.drops.add(DropReason::DeadlineMissed, 1);
            return false;
        }
        let until = self.fresh().map(|fresh| fresh.until(now, &sample, self.clocks(now, &sample)));
        if until == Some(None) {
            self.refuse(DropReason::Stale);
            return false;
        }
        if let Some(held) = &self.held {
            held.push(now, from.tag, from.publisher, &sample);
        }
        let mut times = sample;
        let delivery = Sample {
            tag: from.tag.clone(),
            publisher: from.publisher,
            seq: times.seq,
            captured: times.captured,
            age: age.into(),
            late,
            actuation: None,
            placement: None,
            kind: times.kind,
            encoding: std::mem::take(&mut times.encoding),
            payload: std::mem::take(&mut times.payload),
            attachment: times.attachment.take(),
        };
        let unread = Unread { delivery, needed, until: until.flatten() };
        match self.staged() {
            Some(staged) => self.stage(now, staged, &times, unread),
            None => {
                self.finish(unread);
                true
            }
        }
    }

    /// Returns the capture time of a sample and the time `now`, if both are known.
    fn clocks(&self, now: Instant, sample: &RawSample) -> Option<(TimeBounds, TimeBounds)> {
        self.timing.as_ref().and_then(|timing| timing.clocks(now, sample))
    }

    /// Counts a sample that is dropped before it was counted as delivered.
    fn refuse(&self, reason: DropReason) {
        if reason == DropReason::Stale
            && let Some(fresh) = self.fresh()
        {
            fresh.count_stale();
        }
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        self.counts.drops.add(reason, 1);
    }

    /// Lets a sample wait for its release. Only the pacer's thread delivers staged samples, so none passes another.
    fn stage(&self, now: Instant, staged: &Staged, times: &RawSample, unread: Unread) -> bool {
        if !staged.handle(now, times, self.clocks(now, times), unread) {
            self.refuse(DropReason::OutOfOrder);
            return false;
        }
        self.schedule(staged);
        true
    }

    fn schedule(&self, staged: &Staged) {
        if let Some(timing) = &self.timing {
            timing.schedule(staged.next_release());
        }
    }

    /// Delivers the newest sample of a latched publisher, unless a newer one was delivered. It may be older than the
    /// delay bound, which begins with the subscription. A subscription with an age limit does not receive it.
    pub(crate) fn deliver_latched(&self, order: &Arc<Order>, sample: Sample) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let Some(_turn) = order.take(sample.seq) else { return };
        if self.fresh().is_some() {
            return self.refuse(DropReason::Stale);
        }
        let unread = Unread { delivery: sample, needed: Needed::default(), until: None };
        match self.staged() {
            Some(staged) => {
                staged.handle_latched(clock::now(), unread);
                self.schedule(staged);
            }
            None => self.finish(unread),
        }
    }

    /// Counts a sample as delivered and hands it to the application.
    fn finish(&self, unread: Unread) {
        let Sample { payload, age, .. } = &unread.delivery;
        let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        self.counts.count_delivered(payload.len() as u64, age);
        self.seen.keep(&unread.delivery);
        self.hand_over(unread);
    }

    fn hand_over(&self, mut unread: Unread) {
        match &self.output {
            Output::Callback(callback) => {
                // Waiting for the lock may take time, so the decision comes after it.
                let mut callback = callback.lock().unwrap_or_else(PoisonError::into_inner);
                if self.may_act(&mut unread) {
                    callback(unread.delivery);
                } else {
                    self.counts.count_unread(&unread.delivery, DropReason::Stale);
                }
            }
            Output::Queue(queue) => {
                let bytes = unread.delivery.payload.len();
                self.add_waiting(bytes);
                if let Some(oldest) = queue.push(unread) {
                    self.drop_unread(&oldest.delivery, DropReason::SubscriberFull);
                }
                while self.waiting_bytes.load(Ordering::Relaxed) > WAITING_BYTES_MAX
                    && queue.len() > 1
                    && let Some(oldest) = queue.pop()
                {
                    self.drop_unread(&oldest.delivery, DropReason::SubscriberFull);
                }
                self.arrival.notify(1);
            }
        }
    }

    /// Decides on a command as the last step before the application; true without an age limit.
    fn may_act(&self, unread: &mut Unread) -> bool {
        let (Some(timing), Some(fresh)) = (&self.timing, self.fresh()) else { return true };
        let released = fresh.release(clock::now(), unread.until, &mut unread.delivery);
        let Some(released) = released else { return false };
        timing.schedule(released.silence);
        if let Some(resumption) = released.resumption {
            self.notify(SubscriberEvent::Resumed(resumption));
        }
        true
    }

    fn drop_unread(&self, delivery: &Sample, reason: DropReason) {
        self.take_waiting(delivery.payload.len());
        self.counts.count_unread(delivery, reason);
    }

    /// Returns the next queued sample that can be decoded and may act, or a safe action that is due.
    pub(crate) fn pop(&self) -> Option<Sample> {
        let Output::Queue(queue) = &self.output else { return None };
        while let Some(mut unread) = queue.pop() {
            if !queue.is_usable(&unread) {
                self.drop_unread(&unread.delivery, DropReason::Undecodable);
            } else if !self.may_act(&mut unread) {
                self.drop_unread(&unread.delivery, DropReason::Stale);
            } else {
                let bytes = unread.delivery.payload.len();
                self.take_waiting(bytes);
                return Some(unread.delivery);
            }
        }
        self.fresh()?.pop_safe()
    }

    fn start_safe_actions(&self, fresh: &Fresh) {
        let silences = match &self.output {
            Output::Callback(callback) => {
                // No newer command may reach the callback before the safe action of an older one.
                let mut callback = callback.lock().unwrap_or_else(PoisonError::into_inner);
                let silences = fresh.poll_silences(clock::now());
                while let Some(safe) = fresh.pop_safe() {
                    callback(safe);
                }
                silences
            }
            Output::Queue(_) => fresh.poll_silences(clock::now()),
        };
        silences.into_iter().for_each(|silence| self.notify(SubscriberEvent::Silent(silence)));
    }

    /// Returns true if a sample or an event is queued.
    pub(crate) fn has_something(&self) -> bool {
        let samples = matches!(&self.output, Output::Queue(queue) if queue.len() > 0);
        let safe = self.fresh().is_some_and(Fresh::has_safe);
        samples || safe || !self.events.is_empty()
    }

    /// Queues an event.
    pub(crate) fn notify(&self, event: SubscriberEvent) {
        self.events.push(event);
        self.arrival.notify(usize::MAX);
    }

    pub(crate) fn pop_event(&self) -> Option<SubscriberEvent> {
        self.events.pop()
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.arrival.notify(usize::MAX);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}
