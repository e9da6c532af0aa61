//! The end of a subscription: a [`Delivery`] that several threads use, and a queue or a callback behind it.

use super::clock;
use super::depth::HostDepth;
use super::events::Events;
use super::held::HeldBuffer;
use super::lock;
use super::pacer::{self, Wake};
use super::stalls;
use crate::Sample;
use crate::delivery::{Actuation, Otherwise, Silence};
use crate::event::SubscriberEvent;
use crate::time::Clock;
use event_listener::Event;
use paceline_node::deliver::{
    Acceptance, Counts, Delivery, DeliveryFate, DeliveryTiming, Moments, Needed, Origin,
    TakenSample,
};
use paceline_node::status::PlayersStatus;
use paceline_proto::control::SubscriptionSpec;
use paceline_proto::{DropReason, PublisherId, RawSample};
use paceline_sched::Instant;
use paceline_time::TimeBounds;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

mod groups;
mod timer;

pub(crate) use groups::join;
use timer::Timer;

/// A subscriber's callback.
pub(crate) type Callback = Box<dyn FnMut(Sample) + Send>;

/// A chosen delivery by time, with the function of its safe action.
pub(crate) struct Timed {
    pub(crate) timing: DeliveryTiming,
    pub(crate) otherwise: Otherwise,
}

/// The end of a subscription.
///
/// A callback is locked before the delivery, and called without it. So it may ask for the counters of its subscription, and
/// samples reach it in the order in which the delivery has handled them.
pub(crate) struct Sink {
    delivery: Mutex<Delivery>,
    /// `None` with a queue.
    callback: Option<Mutex<Callback>>,
    /// The pull buffer that also stores the samples.
    held: Option<Arc<HeldBuffer>>,
    /// The clock and the wake-ups of a delivery by time. Boxed, because most subscriptions have none.
    timer: Option<Box<Timer>>,
    /// Counts the waiting bytes of a subscription with a contract on its node.
    depth: Option<Arc<HostDepth>>,
    events: Events<SubscriberEvent>,
    /// The players that share the subscription, as its RTSP server states.
    players: Mutex<Option<PlayersStatus>>,
    closed: AtomicBool,
    /// Notified of each sample and event, and of the end.
    pub(crate) arrival: Event,
}

/// A port of a publisher at a sink.
pub(crate) struct SinkPort {
    sink: Arc<Sink>,
    publisher: PublisherId,
}

impl SinkPort {
    pub(crate) fn open(sink: Arc<Sink>, publisher: PublisherId) -> Self {
        lock(&sink.delivery).open_port(publisher);
        Self { sink, publisher }
    }

    pub(crate) const fn sink(&self) -> &Arc<Sink> {
        &self.sink
    }
}

impl Drop for SinkPort {
    fn drop(&mut self) {
        lock(&self.sink.delivery).close_port(self.publisher);
    }
}

impl Wake for Sink {
    fn wake(&self) {
        let Some(timer) = &self.timer else { return };
        timer.woken();
        if self.is_closed() {
            return;
        }
        if timer.is_staged {
            let mut callback = self.callback.as_ref().map(lock);
            while let Some(handled) = {
                let now = clock::now();
                self.with(|delivery| delivery.poll(now, || timer.utc(now)))
            } {
                self.pass_on(callback.as_deref_mut(), handled);
            }
        } else {
            self.start_safe_actions(&timer.otherwise);
        }
        self.schedule();
    }

    fn fail(&self) {
        self.close();
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let left = lock(&self.delivery).unread_bytes();
        self.depth.iter().for_each(|depth| depth.take(left as u64));
    }
}

impl Sink {
    pub(crate) fn with_queue(spec: &SubscriptionSpec, samples: usize) -> Self {
        Self::new(Delivery::queued(spec, samples), None)
    }

    pub(crate) fn with_callback(spec: &SubscriptionSpec, callback: Callback) -> Self {
        Self::new(Delivery::direct(spec), Some(Mutex::new(callback)))
    }

    fn new(delivery: Delivery, callback: Option<Mutex<Callback>>) -> Self {
        Self {
            delivery: Mutex::new(delivery),
            callback,
            held: None,
            timer: None,
            depth: None,
            events: Events::default(),
            players: Mutex::new(None),
            closed: AtomicBool::new(false),
            arrival: Event::new(),
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

    /// Adds the delivery by time.
    pub(crate) fn timed(mut self, timed: Option<Timed>, clock: Clock) -> Self {
        if let Some(Timed { timing, otherwise }) = timed {
            let is_staged = matches!(timing, DeliveryTiming::Staged(_));
            self.timer = Some(Box::new(Timer::new(clock, is_staged, otherwise)));
            lock(&self.delivery).set_timing(timing);
        }
        self
    }

    /// Connects the delivery by time with its wake-ups.
    pub(crate) fn bind(self: &Arc<Self>, realtime: bool) {
        if let Some(timer) = &self.timer {
            let sink = Arc::downgrade(self);
            timer.bind(sink);
            if realtime {
                pacer::use_realtime();
            }
        }
    }

    /// Uses the delivery, and counts what begins or ends to wait.
    fn with<T>(&self, of: impl FnOnce(&mut Delivery) -> T) -> T {
        let mut delivery = lock(&self.delivery);
        let Some(depth) = &self.depth else { return of(&mut delivery) };
        let mut before = delivery.unread_bytes() as u64;
        let done = of(&mut delivery);
        depth.replace(&mut before, delivery.unread_bytes() as u64);
        done
    }

    /// Returns the delivery, for what changes no waiting samples.
    pub(crate) fn delivery(&self) -> MutexGuard<'_, Delivery> {
        lock(&self.delivery)
    }

    /// Returns the present interval of UTC for a delivery by time, if the error of the clock is known.
    pub(crate) fn utc(&self, now: Instant) -> Option<TimeBounds> {
        self.timer.as_ref()?.utc(now)
    }

    /// Returns the pull buffer.
    pub(crate) const fn held(&self) -> Option<&Arc<HeldBuffer>> {
        self.held.as_ref()
    }

    /// Returns the counters.
    pub(crate) fn counts(&self) -> Counts {
        lock(&self.delivery).counts().clone()
    }

    /// Returns the players that share the subscription.
    pub(crate) fn players(&self) -> Option<PlayersStatus> {
        *lock(&self.players)
    }

    pub(crate) fn set_players(&self, players: PlayersStatus) {
        *lock(&self.players) = Some(players);
    }

    /// Counts samples that do not arrive here.
    pub(crate) fn count(&self, reason: DropReason, samples: u64) {
        lock(&self.delivery).handle_lost(reason, samples);
    }

    /// Returns the callback if samples reach it as they arrive.
    fn callback(&self) -> Option<MutexGuard<'_, Callback>> {
        let is_staged = self.timer.as_ref().is_some_and(|timer| timer.is_staged);
        self.callback.as_ref().filter(|_| !is_staged).map(lock)
    }

    /// Delivers a sample or drops it with a reason.
    ///
    /// `needed` counts the pictures of the video that were delivered before it.
    pub(crate) fn deliver(
        &self,
        arrived: Instant,
        from: &Origin<'_>,
        needed: Needed,
        sample: RawSample,
    ) -> Acceptance {
        if self.closed.load(Ordering::Relaxed) {
            return Acceptance::Dropped;
        }
        let mut callback = self.callback();
        // Waiting for the callback takes time, and so do the callbacks of the same frame.
        let now = if callback.is_some() { clock::now() } else { arrived };
        let moments = Moments { arrived, utc: self.utc(arrived), now, stalled: stalls::within };
        let hold = |sample: &RawSample| {
            if let Some(held) = &self.held {
                held.push(arrived, from.tag, from.publisher, sample);
            }
        };
        let fate = self.with(|delivery| delivery.handle(moments, from, needed, sample, hold));
        let acceptance = fate.acceptance();
        self.pass_on(callback.as_deref_mut(), fate);
        acceptance
    }

    /// Delivers the newest sample of a latched publisher, unless a newer one was delivered.
    pub(crate) fn deliver_latched(&self, publisher: PublisherId, sample: Sample) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let mut callback = self.callback();
        let now = clock::now();
        let fate = self.with(|delivery| delivery.handle_latched(now, publisher, sample));
        self.pass_on(callback.as_deref_mut(), fate);
    }

    /// Hands a sample to the callback, or notifies its reader or the pacer.
    fn pass_on(&self, callback: Option<&mut Callback>, handled: DeliveryFate) {
        match handled {
            DeliveryFate::Taken(taken) => {
                let sample = self.complete(taken);
                if let Some(callback) = callback {
                    callback(sample);
                }
            }
            DeliveryFate::Queued => _ = self.arrival.notify(1),
            DeliveryFate::Staged => self.schedule(),
            DeliveryFate::Dropped(_) | DeliveryFate::Repeated => {}
        }
    }

    /// Schedules the next wake-up of a delivery by time.
    fn schedule(&self) {
        if let Some(timer) = &self.timer {
            let next = lock(&self.delivery).poll_timeout();
            timer.schedule(next);
        }
    }

    /// Adds to a command how long it may act, and reports the end of a silence.
    fn complete(&self, taken: TakenSample) -> Sample {
        let TakenSample { mut sample, until, resumption } = taken;
        if let (Some(until), Some(timer)) = (until, &self.timer) {
            timer.schedule(Some(until));
            // In this order: a pause between the two makes the time shorter.
            let std_now = std::time::Instant::now();
            let until = std_now + std::time::Duration::from(until.since(clock::now()));
            sample.actuation = Some(Actuation::Command { until });
        }
        if let Some(resumption) = resumption {
            self.notify(SubscriberEvent::Resumed(resumption));
        }
        sample
    }

    /// Returns the next queued sample that can be decoded and may act, or a safe action that is due.
    pub(crate) fn pop(&self) -> Option<Sample> {
        let taken = self.with(|delivery| {
            // Without a sample the time is not asked for.
            if delivery.has_unread() { delivery.read(clock::now()) } else { None }
        });
        taken.map(|taken| self.complete(taken))
    }

    fn start_safe_actions(&self, otherwise: &Otherwise) {
        // No newer command may reach the callback before the safe action of an older one.
        let mut callback = self.callback.as_ref().map(lock);
        let silences = self.with(|delivery| delivery.poll_silences(clock::now()));
        if let Otherwise::Call(act) = otherwise {
            silences.iter().for_each(act);
        }
        if let Some(callback) = &mut callback {
            while let Some(safe) = self.with(Delivery::pop_safe) {
                callback(safe);
            }
        }
        drop(callback);
        let report = |silence: Silence| self.notify(SubscriberEvent::Silent(silence));
        silences.into_iter().for_each(report);
    }

    /// Returns true if a sample or an event is queued.
    pub(crate) fn has_something(&self) -> bool {
        lock(&self.delivery).has_unread() || !self.events.is_empty()
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
