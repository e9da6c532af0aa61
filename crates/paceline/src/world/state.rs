//! What the threads of a world share.

use super::service::ServiceEvent;
use crate::Node;
use crate::shell::clock;
use event_listener::Event;
use paceline_objects::participant::{FieldSnapshot, WorldTime};
use paceline_objects::semantic::EvaluationBatch;
use paceline_objects::{Interest, Participant};
use paceline_time::TimeBounds;
use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The greatest number of events that wait for the application; the oldest are dropped first.
const EVENTS_MAX: usize = 65_536;

/// A participant and what belongs to it.
pub(super) struct State {
    pub(super) participant: Participant,
    /// Changes of the service of contracts.
    pub(super) services: VecDeque<ServiceEvent>,
    pub(super) events: VecDeque<paceline_objects::participant::WorldEvent>,
    /// Events that nobody took in time.
    pub(super) events_dropped: u64,
    /// The interest, for the request of its contract.
    pub(super) interest: Option<Interest>,
    /// The semantic function of the application.
    pub(super) worker: Option<SyncSender<(EvaluationBatch, FieldSnapshot)>>,
    /// Set by a change that the thread has not seen yet.
    pub(super) changed: bool,
    pub(super) ended: bool,
}

/// What the threads of a world share.
pub(super) struct Shared {
    node: Node,
    world: String,
    state: Mutex<State>,
    wake: Condvar,
    pub(super) arrived: Event,
}

impl State {
    pub(super) const fn new(participant: Participant) -> Self {
        Self {
            participant,
            services: VecDeque::new(),
            events: VecDeque::new(),
            events_dropped: 0,
            interest: None,
            worker: None,
            changed: true,
            ended: false,
        }
    }

    /// Moves the participant's events to those that wait, and returns whether there are any.
    pub(super) fn collect(&mut self) -> bool {
        let before = self.events.len();
        while let Some(event) = self.participant.event() {
            if self.events.len() >= EVENTS_MAX {
                self.events.pop_front();
                self.events_dropped += 1;
            }
            self.events.push_back(event);
        }
        self.events.len() != before
    }
}

impl Shared {
    pub(super) const fn new(node: Node, world: String, state: State) -> Self {
        Self { node, world, state: Mutex::new(state), wake: Condvar::new(), arrived: Event::new() }
    }

    pub(super) const fn node(&self) -> &Node {
        &self.node
    }

    pub(super) fn world(&self) -> &str {
        &self.world
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the thread.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        state.changed = true;
        drop(state);
        self.wake.notify_one();
        result
    }

    /// Blocks until the state changes or the time has passed.
    pub(super) fn wait(&self, time: Duration) {
        let state = self.lock();
        let waited =
            self.wake.wait_timeout_while(state, time, |state| !state.changed && !state.ended);
        drop(waited);
    }

    /// Returns the current time. Stamps are strictly increasing.
    pub(super) fn time(&self) -> WorldTime {
        let reading = self.node.clock().stamp();
        let TimeBounds { earliest, latest } = reading.bounds;
        let known = latest != u64::MAX && earliest != 0;
        let error = if known { reading.error_byte() } else { u8::MAX };
        WorldTime { now: clock::now(), stamp: reading.nanos, error }
    }
}
