//! The datagrams that wait for one connection.
//!
//! A frame only joins a queue here. One task gives all that wait to the connection at once: each call there takes its lock and
//! wakes its driver, which then sends them together.

use super::Sent;
use super::datagram::{halves, put_whole};
use super::lock;
use bytes::{Bytes, BytesMut};
use quinn::Connection;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// The limit of waiting bytes. Beyond it the oldest are dropped, as in the connection.
pub(super) const WAITING_MAX: usize = 1 << 20;
/// The memory that several datagrams share.
const CHUNK_BYTES: usize = 64 << 10;

/// The datagrams that wait for a connection.
#[derive(Debug)]
pub(super) struct Datagrams {
    connection: Connection,
    waiting: Mutex<Waiting>,
    ready: Notify,
    is_closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    datagrams: VecDeque<Bytes>,
    bytes: usize,
    chunk: BytesMut,
}

impl Datagrams {
    pub(super) fn new(connection: Connection) -> Self {
        let (waiting, ready, is_closed) = (Mutex::default(), Notify::new(), AtomicBool::new(false));
        Self { connection, waiting, ready, is_closed }
    }

    /// Adds a frame of `bytes` in these pieces. Never blocks, and copies the frame once.
    pub(super) fn put<'p>(&self, bytes: usize, pieces: impl Iterator<Item = &'p [u8]>) -> Sent {
        if self.is_closed.load(Ordering::Relaxed) {
            return Sent::Down;
        }
        let was_empty = lock(&self.waiting).put(bytes, pieces);
        if was_empty {
            self.ready.notify_one();
        }
        Sent::Taken
    }

    /// Gives the waiting datagrams to the connection, until it ends.
    pub(super) async fn run(&self) {
        tokio::select! {
            () = self.send() => {}
            _ = self.connection.closed() => {}
        }
        self.is_closed.store(true, Ordering::Relaxed);
    }

    async fn send(&self) {
        let (mut batch, mut split) = (VecDeque::new(), 0);
        loop {
            self.ready.notified().await;
            lock(&self.waiting).take(&mut batch);
            let most = self.connection.max_datagram_size().unwrap_or_default();
            for datagram in batch.drain(..) {
                let parts = if datagram.len() <= most {
                    [Some(datagram), None]
                } else {
                    split += 1;
                    halves(&datagram, split).map(Some)
                };
                let mut parts = parts.into_iter().flatten();
                if parts.try_for_each(|part| self.connection.send_datagram(part)).is_err() {
                    return;
                }
            }
        }
    }
}

impl Waiting {
    /// Adds a frame. Returns true if none waited.
    fn put<'p>(&mut self, bytes: usize, pieces: impl Iterator<Item = &'p [u8]>) -> bool {
        let was_empty = self.datagrams.is_empty();
        while self.bytes + bytes > WAITING_MAX
            && let Some(oldest) = self.datagrams.pop_front()
        {
            self.bytes -= oldest.len();
        }
        if self.chunk.capacity() <= bytes {
            self.chunk = BytesMut::with_capacity(CHUNK_BYTES.max(bytes + 1));
        }
        put_whole(&mut self.chunk, pieces);
        let datagram = self.chunk.split().freeze();
        self.bytes += datagram.len();
        self.datagrams.push_back(datagram);
        was_empty
    }

    /// Moves all datagrams to an empty batch.
    fn take(&mut self, batch: &mut VecDeque<Bytes>) {
        std::mem::swap(&mut self.datagrams, batch);
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_wait_in_their_order_and_the_oldest_are_dropped_beyond_the_limit() {
        let mut waiting = Waiting::default();
        assert!(waiting.put(3, [&b"ab"[..], b"c"].into_iter()));
        assert!(!waiting.put(1, std::iter::once(&b"d"[..])));
        let mut batch = VecDeque::new();
        waiting.take(&mut batch);
        assert_eq!(batch, [&b"\0abc"[..], b"\0d"]);
        batch.clear();
        let frame = [7; 1_350];
        for _ in 0..2_000 {
            waiting.put(frame.len(), std::iter::once(&frame[..]));
            assert!(waiting.bytes <= WAITING_MAX + 1);
        }
        waiting.take(&mut batch);
        assert_eq!(batch.len(), WAITING_MAX / 1_351);
        assert!(waiting.put(1, std::iter::once(&b"e"[..])));
        assert_eq!(waiting.bytes, 2);
    }
}
