//! The message channel to one node: a publisher, and a thread for messages that have to wait for
//! room on a link.

use super::message::ENCODING;
use super::{Common, LOOK_EVERY};
use crate::lock;
use bytes::Bytes;
use paceline::status::DropReason;
use paceline::{Encoding, Late, Node, PublishError, Publisher};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of messages that may wait for a link. End messages are not counted.
const MESSAGES_MAX: usize = 256;
/// The bytes of the waiting messages.
const BYTES_MAX: usize = 64 << 20;
/// The interval of checks for room. Closing a stream does not notify.
const ROOM_EVERY: Duration = Duration::from_millis(100);

/// The sending end of a channel. Messages are published at once, or by the channel's thread if the
/// link has no room.
pub(super) struct Line {
    queue: Mutex<Queue>,
    changed: Condvar,
    stands: AtomicBool,
    node: Node,
    /// Lock order: the channel's thread locks this before the queue. Senders lock the queue first
    /// and only try this lock, because they must not block. `None` once closed.
    publisher: Mutex<Option<Publisher>>,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Bytes>,
    bytes: usize,
    closed: bool,
}

impl Line {
    /// Sends a message without blocking. Returns false if there is no room, and counts the drop.
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

    /// Sends the end of a query. It is not limited: it has a few bytes, and there is one per query.
    pub(super) fn send_end(&self, message: Bytes) {
        let queue = lock(&self.queue);
        if !queue.closed {
            self.pass(queue, message);
        }
    }

    /// Publishes the message directly if none waits and the link has room, and queues it otherwise.
    /// Waking a thread for each message would cost more than both links.
    fn pass(&self, mut queue: MutexGuard<'_, Queue>, message: Bytes) {
        if queue.messages.is_empty()
            && let Ok(mut guard) = self.publisher.try_lock()
            && let Some(publisher) = guard.as_mut()
            && publisher.room().is_none()
        {
            // Other messages are queued until this one is published.
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

    /// Waits briefly for a message. Returns `None` once closed.
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

    /// Publishes the queued messages in order.
    fn run(&self) {
        while self.wait().is_some() {
            let mut guard = lock(&self.publisher);
            let Some(publisher) = guard.as_mut() else { return };
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

/// The message channel to one node. Closes when dropped.
pub(super) struct Channel {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
}

impl Channel {
    pub(super) fn open(common: &Common, tag: &str) -> zenoh::Result<Self> {
        // A late answer is better than none for the asking program.
        let mut builder = common.node.publisher(tag).late(Late::Send);
        if let Some(period) = common.rule.period {
            builder = builder.period(period);
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
        let named = std::thread::Builder::new().name(format!("paceline-out-{}", common.number));
        let thread = named.spawn(move || runs.run())?;
        Ok(Self { line, thread: Some(thread) })
    }

    pub(super) const fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// Returns true if the node subscribes to the channel.
    pub(super) fn stands(&self) -> bool {
        self.line.stands.load(Ordering::Relaxed)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        lock(&self.line.queue).closed = true;
        self.line.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // Answers in progress may still reference the line, but the tag must be undeclared now.
        drop(lock(&self.line.publisher).take());
    }
}
