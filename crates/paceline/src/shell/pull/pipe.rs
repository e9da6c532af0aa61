//! From the thread that pulls to whoever reads: a bounded queue, for blocking and asynchronous code.

use crate::pull::{PullError, PullSummary};
use crate::subscriber::Delivery;
use event_listener::{Event, EventListener, Listener};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Samples that wait for a slow reader, at most.
const WAITING_MAX: usize = 16;
/// Their payload bytes, unless one sample has more.
const WAITING_BYTES_MAX: usize = 8 << 20;
/// A reader that went away is noticed in this time.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What the thread that pulls tells.
pub(crate) enum Told {
    /// How many samples were found.
    Found(u64),
    /// One of them.
    Sample(Box<Delivery>),
    /// Nothing more comes.
    End(Box<Result<PullSummary, PullError>>),
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Told>,
    bytes: usize,
    /// The reader is gone.
    closed: bool,
}

impl Told {
    fn bytes(&self) -> usize {
        match self {
            Self::Sample(delivery) => delivery.payload.len(),
            Self::Found(_) | Self::End(_) => 0,
        }
    }
}

impl State {
    fn has_room(&self, told: &Told) -> bool {
        let fits = self.waiting.len() < WAITING_MAX
            && self.bytes.saturating_add(told.bytes()) <= WAITING_BYTES_MAX;
        // The end needs no room: it is the last.
        fits || self.waiting.is_empty() || matches!(told, Told::End(_))
    }
}

/// The queue between the two.
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

    /// Hands `told` on, once there is room for it; false if nobody reads any more.
    pub(crate) fn push(&self, told: Told) -> bool {
        loop {
            let room = self.room.listen();
            {
                let mut state = self.lock();
                if state.closed {
                    return false;
                }
                if state.has_room(&told) {
                    state.bytes += told.bytes();
                    state.waiting.push_back(told);
                    break;
                }
            }
            room.wait_timeout(LOOK_EVERY);
        }
        self.arrival.notify(usize::MAX);
        true
    }

    /// True if nobody reads any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Nobody reads any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.waiting.clear();
        state.bytes = 0;
        drop(state);
        self.room.notify(usize::MAX);
    }

    fn pop(&self) -> Option<Told> {
        let mut state = self.lock();
        let told = state.waiting.pop_front()?;
        state.bytes -= told.bytes();
        drop(state);
        self.room.notify(usize::MAX);
        Some(told)
    }

    /// What was told next, or what to wait for.
    fn next(&self) -> Result<Told, EventListener> {
        if let Some(told) = self.pop() {
            return Ok(told);
        }
        let arrival = self.arrival.listen();
        // Something may have come before we listened.
        self.pop().ok_or(arrival)
    }

    /// Waits for what is told next.
    pub(crate) fn wait(&self) -> Told {
        loop {
            match self.next() {
                Ok(told) => return told,
                Err(arrival) => arrival.wait(),
            }
        }
    }

    /// As [`Self::wait`], but not beyond `until`.
    pub(crate) fn wait_until(&self, until: Instant) -> Option<Told> {
        loop {
            match self.next() {
                Ok(told) => return Some(told),
                Err(arrival) => {
                    if arrival.wait_deadline(until).is_none() {
                        return self.pop();
                    }
                }
            }
        }
    }

    /// As [`Self::wait`], for asynchronous code.
    pub(crate) async fn wait_async(&self) -> Told {
        loop {
            match self.next() {
                Ok(told) => return told,
                Err(arrival) => arrival.await,
            }
        }
    }
}
