//! The first samples of a publisher: they wait until the subscriptions that exist are served.
//!
//! The engine finds the outputs of a new publisher a moment after it was declared, and after a round trip where a path
//! is asked for a contract. What is published before goes to subscribers of this node at once, and waits here for links.
//! The engine opens the publisher, which sends what waits; from then on the publisher has its outputs to itself.

use super::clock;
use super::lock;
use super::mailbox::Mailbox;
use super::port::Port;
use super::source::Installation;
use crate::publisher::Put;
use event_listener::{Event, EventListener};
use paceline_proto::Sample;
use paceline_proto::control::Target;
use paceline_proto::ingress::Ingress;
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Samples of one publisher that wait: fewer than the ring behind it holds.
const SAMPLES_MAX: usize = 256;
/// Bytes of all publishers of a node that wait. One sample may always wait, whatever its length.
const BYTES_MAX: usize = 64 << 20;

/// The outputs of a publisher; used by one thread at a time.
pub(crate) struct Outlet {
    ingress: Ingress<Port>,
    /// Installations applied so far.
    seen: u64,
}

impl Outlet {
    const fn new(period: Option<Duration>) -> Self {
        Self { ingress: Ingress::new(period), seen: 0 }
    }

    /// Applies what the engine has posted.
    pub(crate) fn install(&mut self, installs: &Mailbox<Installation>) {
        let Self { ingress, seen } = self;
        installs.collect(seen, |installation| installation.apply(ingress));
    }

    /// Hands a sample to the outputs to these `targets`.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        sample: Sample,
        targets: impl Fn(Target) -> bool,
    ) -> Put {
        let mut put = Put { seq: sample.seq, ..Put::default() };
        self.ingress.offer_to(targets, sample, |output, sample| {
            let taken = output.port.take(now, sample);
            put.taken += u32::from(taken);
            put.dropped += u32::from(!taken);
            taken
        });
        put
    }

    /// What to wait for if an output has no room.
    pub(crate) fn full(&self) -> Option<EventListener> {
        self.ingress.outputs().iter().find_map(|output| output.port.full())
    }
}

/// The bytes that wait for the outputs of all publishers of a node.
#[derive(Debug, Default)]
pub(crate) struct WaitingBytes(AtomicUsize);

impl WaitingBytes {
    /// Takes room for so many; false if there is none.
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

/// Samples that some of the outputs did not get when a publisher was opened.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Missed {
    /// There was no room for them to wait.
    pub(crate) no_room: u64,
    /// They waited for as long as they may, and a path had not answered yet.
    pub(crate) no_answer: u64,
}

struct State {
    /// `None` while the publisher's own thread has it.
    outlet: Option<Outlet>,
    waiting: VecDeque<Sample>,
    bytes: usize,
    /// Samples that there was no room for.
    no_room: u64,
    is_open: bool,
}

/// A publisher's outputs until it has them to itself.
pub(crate) struct Opening {
    state: Mutex<State>,
    room: Arc<WaitingBytes>,
}

impl Opening {
    /// Of a publisher that is about to be declared.
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

    /// The outputs, if the publisher is open: they are its own from now on.
    pub(crate) fn opened(&self) -> Option<Outlet> {
        let mut state = lock(&self.state);
        if state.is_open { state.outlet.take() } else { None }
    }

    /// Publishes a sample: to subscribers of this node now, to links when the publisher is opened.
    pub(crate) fn put(
        &self,
        installs: &Mailbox<Installation>,
        now: Instant,
        sample: Sample,
    ) -> Put {
        let mut state = lock(&self.state);
        let mut lent = Lent { opening: self, installs, outlet: state.outlet.take() };
        let was_open = state.is_open;
        let waits = !was_open && self.hold(&mut state, &sample);
        drop(state);
        let Some(outlet) = &mut lent.outlet else { return Put::default() };
        outlet.install(installs);
        let here = |target: Target| was_open || target == Target::Local;
        Put { waits, ..outlet.offer(now, sample, here) }
    }

    /// Has a sample wait; false if there is no room.
    fn hold(&self, state: &mut State, sample: &Sample) -> bool {
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

    /// Sends what waits on links.
    fn release(&self, state: &mut State, outlet: &mut Outlet, installs: &Mailbox<Installation>) {
        outlet.install(installs);
        for sample in state.waiting.drain(..) {
            outlet.offer(clock::now(), sample, |target| target != Target::Local);
        }
        self.room.give_back(std::mem::take(&mut state.bytes));
    }

    /// Opens the publisher: what waits is sent to the outputs there are, by whichever thread has them. Calls no
    /// subscriber. `answered` says that all subscriptions that exist are served; then nothing is missed for want of an
    /// answer.
    pub(crate) fn open(&self, installs: &Mailbox<Installation>, answered: bool) -> Missed {
        let mut state = lock(&self.state);
        let no_answer = if answered || state.is_open { 0 } else { state.waiting.len() as u64 };
        state.is_open = true;
        if let Some(mut outlet) = state.outlet.take() {
            self.release(&mut state, &mut outlet, installs);
            state.outlet = Some(outlet);
        }
        Missed { no_room: std::mem::take(&mut state.no_room), no_answer }
    }

    /// What to wait for if another sample could not wait here; `change` is notified when the publisher is opened.
    pub(crate) fn full(&self, change: &Event) -> Option<EventListener> {
        let full = || {
            let state = lock(&self.state);
            let crowded = state.waiting.len() >= SAMPLES_MAX || !self.room.has_room();
            !state.is_open && crowded
        };
        let opened = full().then(|| change.listen());
        // It may have been opened before we listened.
        opened.filter(|_| full())
    }
}

/// The outputs while the publisher's own thread has them. That is not under the lock, since a subscriber's callback may
/// wait for the engine, which opens the publisher; and they are given back if a callback panics.
struct Lent<'o> {
    opening: &'o Opening,
    installs: &'o Mailbox<Installation>,
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
