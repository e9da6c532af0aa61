//! Large samples of an export rule: a thread of their own puts them, and waits for programs that read slowly.
//!
//! A sample in several pieces is lost as a whole if one piece has no room in Zenoh's queue for a moment, on a busy host
//! even where the program reads, and Zenoh says nothing about it. So Zenoh is told to wait for room. The samples of other
//! tags do not wait: only those of tags that have had a large one, which keep their order so.

use super::putter::Putter;
use crate::lock;
use paceline::{Delivery, DropReason, Node, Tag};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Samples up to this length fit into one piece on any connection.
const SMALL_BYTES: usize = 32_000;
/// Large samples that wait for a slow plain side before the oldest is dropped.
const SAMPLES_MAX: usize = 64;
/// Their bytes. One sample may always wait, whatever its length.
const BYTES_MAX: usize = 128 << 20;

/// The large samples of a rule. Its thread ends when this is dropped, after the put that it is at.
pub(super) struct Large {
    node: Node,
    tags: HashSet<Tag>,
    /// Until the first large sample.
    putter: Option<Putter>,
    queue: Option<Arc<Queue>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Delivery>,
    bytes: usize,
    closed: bool,
}

fn bytes(delivery: &Delivery) -> usize {
    delivery.payload.len() + delivery.attachment.as_ref().map_or(0, |bytes| bytes.len())
}

impl Large {
    pub(super) fn new(putter: Putter) -> Self {
        let node = putter.node.clone();
        Self { node, tags: HashSet::new(), putter: Some(putter), queue: None }
    }

    /// Takes a sample that is large, or whose tag has had such ones; gives back another one.
    pub(super) fn take(&mut self, delivery: Delivery) -> Option<Delivery> {
        if bytes(&delivery) > SMALL_BYTES && !self.tags.contains(&delivery.tag) {
            if self.tags.len() >= super::KEYS_MAX {
                self.tags.clear();
            }
            self.tags.insert(delivery.tag.clone());
        }
        if !self.tags.contains(&delivery.tag) {
            return Some(delivery);
        }
        let (reason, dropped) = match self.queue() {
            Some(queue) => (DropReason::SubscriberFull, queue.push(delivery)),
            None => (DropReason::NotExported, 1),
        };
        self.node.note_dropped(reason, dropped);
        None
    }

    /// The queue of the thread, which begins with the first sample.
    fn queue(&mut self) -> Option<&Queue> {
        if let Some(putter) = self.putter.take() {
            let queue = Arc::new(Queue::default());
            let runs = queue.clone();
            let named = std::thread::Builder::new().name(format!("paceline-out-{}", putter.number));
            match named.spawn(move || runs.run(putter)) {
                Ok(_) => self.queue = Some(queue),
                Err(error) => tracing::error!("large samples are dropped: {error}"),
            }
        }
        self.queue.as_deref()
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        if let Some(queue) = &self.queue {
            lock(&queue.state).closed = true;
            queue.changed.notify_all();
        }
    }
}

impl Queue {
    /// Has a sample wait; returns how many were dropped to make room, the oldest first.
    fn push(&self, delivery: Delivery) -> u64 {
        let mut state = lock(&self.state);
        state.bytes += bytes(&delivery);
        state.waiting.push_back(delivery);
        let mut dropped = 0;
        while state.waiting.len() > 1
            && (state.waiting.len() > SAMPLES_MAX || state.bytes > BYTES_MAX)
        {
            state.pop();
            dropped += 1;
        }
        drop(state);
        self.changed.notify_one();
        dropped
    }

    /// Puts what waits, until the end.
    fn run(&self, mut putter: Putter) {
        while let Some(delivery) = self.next() {
            putter.put(delivery);
        }
    }

    /// Waits for the next sample; none at the end.
    fn next(&self) -> Option<Delivery> {
        let idle = |state: &mut State| state.waiting.is_empty() && !state.closed;
        let waited = self.changed.wait_while(lock(&self.state), idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.closed { None } else { state.pop() }
    }
}

impl State {
    fn pop(&mut self) -> Option<Delivery> {
        let delivery = self.waiting.pop_front();
        self.bytes -= delivery.as_ref().map_or(0, bytes);
        delivery
    }
}
