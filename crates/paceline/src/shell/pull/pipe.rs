//! A bounded queue from the pulling thread to a blocking or asynchronous reader.

use crate::Sample;
use crate::summary::{PullError, PullSummary};
use event_listener::{Event, EventListener, Listener};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The limit of queued samples.
const WAITING_MAX: usize = 16;
/// The limit of queued payload bytes, unless a single sample is larger.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// The interval of checks for a reader that has left.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// A message of the pulling thread.
pub(crate) enum PullEvent {
    /// The number of samples found.
    Found(u64),
    /// A sample.
    Sample(Box<Sample>),
    /// The end of the pull.
    End(Box<Result<PullSummary, PullError>>),
}

#[derive(Default)]
struct State {
    waiting: VecDeque<PullEvent>,
    bytes: usize,
    /// True if the reader has left.
    closed: bool,
}

impl PullEvent {
    fn bytes(&self) -> usize {
        match self {
            Self::Sample(delivery) => delivery.payload.len(),
            Self::Found(_) | Self::End(_) => 0,
        }
    }
}

impl State {
    fn has_room(&self, event: &PullEvent) -> bool {
        let fits = self.waiting.len() < WAITING_MAX
            && self.bytes.saturating_add(event.bytes()) <= WAITING_BYTES_MAX;
        // The last message always fits.
        fits || self.waiting.is_empty() || matches!(event, PullEvent::End(_))
    }
}

/// The queue.
#[derive(Default)]
pub(crate) struct Pipe {
    state: Mutex<State>,
    arrival: Event,
    room: Event,
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message once there is room; returns false if the reader has left.
    pub(crate) fn push(&self, event: PullEvent) -> bool {
        loop {
            let room = self.room.listen();
            {
                let mut state = self.lock();
                if state.closed {
                    return false;
                }
                if state.has_room(&event) {
                    state.bytes += event.bytes();
                    state.waiting.push_back(event);
                    break;
                }
            }
            room.wait_timeout(LOOK_EVERY);
        }
        self.arrival.notify(usize::MAX);
        true
    }

    /// Returns true if the reader has left.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Records that the reader has left.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.waiting.clear();
        state.bytes = 0;
        drop(state);
        self.room.notify(usize::MAX);
    }

    /// Returns the next message, if there is one.
    pub(crate) fn pop(&self) -> Option<PullEvent> {
        let mut state = self.lock();
        let event = state.waiting.pop_front()?;
        state.bytes -= event.bytes();
        drop(state);
        self.room.notify(usize::MAX);
        Some(event)
    }

    /// Returns the next message, or a listener for it.
    fn next(&self) -> Result<PullEvent, EventListener> {
        if let Some(event) = self.pop() {
            return Ok(event);
        }
        let arrival = self.arrival.listen();
        // A message may have arrived before the listener existed.
        self.pop().ok_or(arrival)
    }

    /// Blocks until the next message.
    pub(crate) fn wait(&self) -> PullEvent {
        loop {
            match self.next() {
                Ok(event) => return event,
                Err(arrival) => arrival.wait(),
            }
        }
    }

    /// Blocks until the next message, or until `until`.
    pub(crate) fn wait_until(&self, until: Instant) -> Option<PullEvent> {
        loop {
            match self.next() {
                Ok(event) => return Some(event),
                Err(arrival) => {
                    if arrival.wait_deadline(until).is_none() {
                        return self.pop();
                    }
                }
            }
        }
    }

    /// Waits for the next message in asynchronous code.
    pub(crate) async fn wait_async(&self) -> PullEvent {
        loop {
            match self.next() {
                Ok(event) => return event,
                Err(arrival) => arrival.await,
            }
        }
    }
}
