//! The way of messages to one node: a publisher, and a thread for what has no room on a link and waits for it.

use super::message::ENCODING;
use super::{Common, LOOK_EVERY};
use crate::lock;
use bytes::Bytes;
use paceline::{DropReason, Encoding, Late, Node, PublishError, Publisher};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Messages that wait for a link, beside the end of each query.
const MESSAGES_MAX: usize = 256;
/// And their bytes.
const BYTES_MAX: usize = 64 << 20;
/// A stream that goes away gives no room: it is looked for again after this.
const ROOM_EVERY: Duration = Duration::from_millis(100);

/// Where messages to a node are put. They go on at once, or by a thread of the way's own if the link has no room.
pub(super) struct Line {
    queue: Mutex<Queue>,
    changed: Condvar,
    stands: AtomicBool,
    node: Node,
    /// Locked before the queue by whoever may wait, and tried after it by who may not. None at the end.
    publisher: Mutex<Option<Publisher>>,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Bytes>,
    bytes: usize,
    closed: bool,
}

impl Line {
    /// Sends a message, never waiting; false if there was no room, which is counted.
    pub(super) fn send(&self, message: Bytes) -> bool {
        let queue = lock(&self.queue);
        let full = queue.messages.len() >= MESSAGES_MAX
            || queue.bytes.saturating_add(message.len()) > BYTES_MAX;
        if full || queue.closed {
            drop(queue);
            self.node.note_dropped(DropReason::QueueFull, 1);
            return false;
        }
        self.pass(queue, message);
        true
    }

    /// Sends the end of a query: a few bytes, of which there are as many as queries, so they have room.
    pub(super) fn send_end(&self, message: Bytes) {
        let queue = lock(&self.queue);
        if !queue.closed {
            self.pass(queue, message);
        }
    }

    /// Puts a message before which none waits if there is room on the link, or else has it wait. To wake a thread
    /// for each would cost a query more than both links.
    fn pass(&self, mut queue: MutexGuard<'_, Queue>, message: Bytes) {
        if queue.messages.is_empty()
            && let Ok(mut held) = self.publisher.try_lock()
            && let Some(publisher) = held.as_mut()
            && publisher.room().is_none()
        {
            // Whatever comes meanwhile waits until the publisher is free again.
            drop(queue);
            return self.put(publisher, message);
        }
        queue.bytes += message.len();
        queue.messages.push_back(message);
        self.changed.notify_one();
    }

    fn put(&self, publisher: &mut Publisher, message: Bytes) {
        match publisher.put(message) {
            Ok(_) | Err(PublishError::Closed) => {}
            Err(error) => {
                self.node.note_dropped(DropReason::TooLarge, 1);
                tracing::debug!("{}: {error}", publisher.tag());
            }
        }
    }

    /// Waits a little for a message. None at the end.
    fn wait(&self) -> Option<()> {
        let queue = lock(&self.queue);
        let idle = |queue: &mut Queue| queue.messages.is_empty() && !queue.closed;
        let waited = self.changed.wait_timeout_while(queue, LOOK_EVERY, idle);
        let (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (!queue.closed).then_some(())
    }

    fn next(&self) -> Option<Bytes> {
        let mut queue = lock(&self.queue);
        let message = queue.messages.pop_front();
        queue.bytes -= message.as_ref().map_or(0, Bytes::len);
        message
    }

    fn is_closed(&self) -> bool {
        lock(&self.queue).closed
    }

    /// Puts what has waited, in order.
    fn run(&self) {
        while self.wait().is_some() {
            let mut held = lock(&self.publisher);
            let Some(publisher) = held.as_mut() else { return };
            self.stands.store(publisher.matching(), Ordering::Relaxed);
            while let Some(room) = publisher.room() {
                let _ = room.wait_until(Instant::now() + ROOM_EVERY);
                if self.is_closed() {
                    return;
                }
            }
            if let Some(message) = self.next() {
                self.put(publisher, message);
            }
        }
    }
}

/// The way of messages to one node; it ends when dropped.
pub(super) struct Way {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
}

impl Way {
    pub(super) fn open(common: &Common, tag: &str) -> zenoh::Result<Self> {
        // Whoever asks waits for an answer that is late rather than for none.
        let mut builder = common.node.publisher(tag)?.late(Late::Send);
        if let Some(period) = common.rule.period {
            builder = builder.period(period)?;
        }
        if common.rule.within.is_some() {
            builder = builder.bytes_max(common.rule.bytes_max);
        }
        let publisher = builder.encoding(Encoding::new(ENCODING)).declare()?;
        let line = Arc::new(Line {
            queue: Mutex::default(),
            changed: Condvar::new(),
            stands: AtomicBool::new(false),
            node: common.node.clone(),
            publisher: Mutex::new(Some(publisher)),
        });
        let runs = line.clone();
        let named = std::thread::Builder::new().name(format!("paceline-way-{}", common.number));
        let thread = named.spawn(move || runs.run())?;
        Ok(Self { line, thread: Some(thread) })
    }

    pub(super) const fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// True if the node hears what is sent.
    pub(super) fn stands(&self) -> bool {
        self.line.stands.load(Ordering::Relaxed)
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        lock(&self.line.queue).closed = true;
        self.line.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Whoever answers still may hold the line, and the tag is to go now.
        drop(lock(&self.line.publisher).take());
    }
}
