//! Large samples of an export rule. A separate thread puts them and waits for slow readers.
//!
//! Zenoh drops a fragmented sample as a whole if one fragment finds the queue full, and does not
//! report it. On a busy host this happens even while the program reads. So large samples are put
//! with blocking congestion control. Once a tag had a large sample, all its samples take this path,
//! which preserves their order. Samples of other tags do not wait.

use super::putter::Putter;
use crate::lock;
use paceline::status::DropReason;
use paceline::{Node, Sample, Tag};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Samples up to this length fit into one piece on any connection.
const SMALL_BYTES: usize = 32_000;
/// The number of large samples queued for a slow plain side before the oldest is dropped.
const SAMPLES_MAX: usize = 64;
/// The limit on the queued bytes. One sample is always accepted, whatever its length.
const BYTES_MAX: usize = 128 << 20;

/// The large samples of a rule. After a drop, its thread ends once the current put returns.
pub(super) struct Large {
    node: Node,
    tags: HashSet<Tag>,
    /// Present until the first large sample starts the thread.
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
    waiting: VecDeque<Sample>,
    bytes: usize,
    closed: bool,
}

fn bytes(delivery: &Sample) -> usize {
    delivery.payload.len() + delivery.attachment.as_ref().map_or(0, |bytes| bytes.len())
}

impl Large {
    pub(super) fn new(putter: Putter) -> Self {
        let node = putter.node.clone();
        Self { node, tags: HashSet::new(), putter: Some(putter), queue: None }
    }

    /// Takes a sample that is large, or whose tag had large samples. Returns any other sample.
    pub(super) fn take(&mut self, delivery: Sample) -> Option<Sample> {
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

    /// Returns the queue. The first call starts the thread.
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
    /// Queues a sample. Returns the number of older samples dropped to make room.
    fn push(&self, delivery: Sample) -> u64 {
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

    /// Puts queued samples until the queue is closed.
    fn run(&self, mut putter: Putter) {
        while let Some(delivery) = self.next() {
            putter.put(delivery);
        }
    }

    /// Waits for the next sample. Returns `None` once the queue is closed.
    fn next(&self) -> Option<Sample> {
        let idle = |state: &mut State| state.waiting.is_empty() && !state.closed;
        let waited = self.changed.wait_while(lock(&self.state), idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.closed { None } else { state.pop() }
    }
}

impl State {
    fn pop(&mut self) -> Option<Sample> {
        let delivery = self.waiting.pop_front();
        self.bytes -= delivery.as_ref().map_or(0, bytes);
        delivery
    }
}
