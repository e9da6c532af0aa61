//! Buffering of a new publisher's first samples, until the existing subscriptions are connected.
//!
//! The engine finds the outputs of a new publisher shortly after its declaration. A path that is
//! asked for a contract answers after a round trip. Samples published before that are delivered to
//! subscribers on this node at once, and are buffered here for links. When the engine opens the
//! publisher, the buffer is sent. From then on the publisher owns its outputs.

use super::clock;
use super::lock;
use super::port::{self, Installs, Port};
use crate::put::PutReport;
use event_listener::{Event, EventListener};
use paceline_proto::RawSample;
use paceline_proto::ingress::Ingress;
use paceline_proto::plan::Target;
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The limit of buffered samples per publisher, smaller than the ring behind it.
const SAMPLES_MAX: usize = 256;
/// The limit of buffered bytes for all publishers of a node. One sample of any length always fits.
const BYTES_MAX: usize = 64 << 20;

/// The outputs of a publisher, used by one thread at a time.
pub(crate) struct Outlet {
    ingress: Ingress<Port>,
    /// The number of applied installations.
    seen: u64,
}

impl Outlet {
    fn new(period: Option<Duration>) -> Self {
        Self { ingress: Ingress::new(period), seen: 0 }
    }

    /// Applies the installations that the engine has posted.
    pub(crate) fn install(&mut self, installs: &Installs) {
        let Self { ingress, seen } = self;
        installs.collect(seen, |installation| installation.apply(ingress, |_, port| drop(port)));
    }

    /// Offers a sample to the outputs with the given `targets`.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        sample: RawSample,
        targets: impl Fn(Target) -> bool,
    ) -> PutReport {
        let mut put = PutReport { seq: sample.seq, ..PutReport::default() };
        port::offer(&mut self.ingress, targets, (now, sample), |port, sample| {
            let reason = sample.as_ref().err().copied().or(port.full_reason());
            let taken = port.take(now, sample);
            put.taken += u32::from(taken);
            if !taken {
                put.dropped += 1;
                put.reason = put.reason.or(reason);
            }
            taken
        });
        put
    }

    /// Returns a listener for room if an output is full.
    pub(crate) fn full(&self) -> Option<EventListener> {
        self.ingress.outputs().iter().find_map(|output| output.port.full())
    }
}

/// The number of buffered bytes of all publishers of a node.
#[derive(Debug, Default)]
pub(crate) struct WaitingBytes(AtomicUsize);

impl WaitingBytes {
    /// Reserves `bytes`; returns false if there is no room.
    fn take(&self, bytes: usize) -> bool {
        let room = |used: usize| {
            let after = used.saturating_add(bytes);
            (used == 0 || after <= BYTES_MAX).then_some(after)
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok()
    }

    fn has_room(&self) -> bool {
        self.0.load(Ordering::Relaxed) < BYTES_MAX
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Samples that some outputs did not receive when the publisher was opened.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Missed {
    /// The buffer was full.
    pub(crate) no_room: u64,
    /// The path did not answer before the time limit.
    pub(crate) no_answer: u64,
}

struct State {
    /// `None` while the publisher's thread uses it.
    outlet: Option<Outlet>,
    waiting: VecDeque<RawSample>,
    bytes: usize,
    /// The number of samples that found the buffer full.
    no_room: u64,
    is_open: bool,
}

/// A publisher's outputs until the publisher owns them.
pub(crate) struct Opening {
    state: Mutex<State>,
    room: Arc<WaitingBytes>,
}

impl Opening {
    /// Creates the buffer of a publisher that is about to be declared.
    pub(crate) fn new(period: Option<Duration>, room: Arc<WaitingBytes>) -> Self {
        let state = State {
            outlet: Some(Outlet::new(period)),
            waiting: VecDeque::new(),
            bytes: 0,
            no_room: 0,
            is_open: false,
        };
        Self { state: Mutex::new(state), room }
    }

    /// Returns the outputs if the publisher is open. The caller owns them from then on.
    pub(crate) fn opened(&self) -> Option<Outlet> {
        let mut state = lock(&self.state);
        if state.is_open { state.outlet.take() } else { None }
    }

    /// Publishes a sample: to subscribers of this node now, and to links when the publisher is
    /// opened.
    pub(crate) fn put(&self, installs: &Installs, now: Instant, sample: RawSample) -> PutReport {
        let mut state = lock(&self.state);
        let mut lent = Lent { opening: self, installs, outlet: state.outlet.take() };
        let was_open = state.is_open;
        let waits = !was_open && self.hold(&mut state, &sample);
        drop(state);
        let Some(outlet) = &mut lent.outlet else { return PutReport::default() };
        outlet.install(installs);
        let here = |target: Target| was_open || target == Target::Local;
        PutReport { waits, ..outlet.offer(now, sample, here) }
    }

    /// Buffers a sample; returns false if there is no room.
    fn hold(&self, state: &mut State, sample: &RawSample) -> bool {
        let attached = sample.attachment.as_ref().map_or(0, |bytes| bytes.len());
        let bytes = sample.payload.len().saturating_add(attached);
        if state.waiting.len() >= SAMPLES_MAX || !self.room.take(bytes) {
            state.no_room += 1;
            return false;
        }
        state.bytes += bytes;
        state.waiting.push_back(sample.clone());
        true
    }

    /// Sends the buffered samples to links.
    fn release(&self, state: &mut State, outlet: &mut Outlet, installs: &Installs) {
        outlet.install(installs);
        for sample in state.waiting.drain(..) {
            outlet.offer(clock::now(), sample, |target| target != Target::Local);
        }
        self.room.give_back(std::mem::take(&mut state.bytes));
    }

    /// Opens the publisher: the thread that has the outputs sends the buffered samples. Calls no
    /// subscriber.
    ///
    /// If `answered`, all existing subscriptions are connected, and no sample counts as unanswered.
    pub(crate) fn open(&self, installs: &Installs, answered: bool) -> Missed {
        let mut state = lock(&self.state);
        let no_answer = if answered || state.is_open { 0 } else { state.waiting.len() as u64 };
        state.is_open = true;
        if let Some(mut outlet) = state.outlet.take() {
            self.release(&mut state, &mut outlet, installs);
            state.outlet = Some(outlet);
        }
        Missed { no_room: std::mem::take(&mut state.no_room), no_answer }
    }

    /// Returns a listener on `change` if the buffer is full; opening the publisher notifies it.
    pub(crate) fn full(&self, change: &Event) -> Option<EventListener> {
        let full = || {
            let state = lock(&self.state);
            let crowded = state.waiting.len() >= SAMPLES_MAX || !self.room.has_room();
            !state.is_open && crowded
        };
        let opened = full().then(|| change.listen());
        // The publisher may have been opened before the listener existed.
        opened.filter(|_| full())
    }
}

/// The outputs while the publisher's thread uses them; returned on drop, also if a callback panics.
///
/// The thread does not keep the lock, because a callback may wait for the engine, which takes it.
struct Lent<'o> {
    opening: &'o Opening,
    installs: &'o Installs,
    outlet: Option<Outlet>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.opening.state);
        if let Some(outlet) = &mut self.outlet
            && state.is_open
        {
            self.opening.release(&mut state, outlet, self.installs);
        }
        state.outlet = self.outlet.take();
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.room.give_back(lock(&self.state).bytes);
    }
}

#[cfg(test)]
#[path = "opening/tests.rs"]
mod tests;
