//! The frames that wait for a byte stream, and the records in which they are sent.
//!
//! A record is a length of two bytes and that many bytes of one frame. A length of 0 only shows that the sender
//! is alive. [`MESSAGE`] precedes the length and the bytes of a message about multicast groups. [`CLOSE`] ends the stream;
//! behind it are the length and the text of the reason.

use super::Sent;
use super::liveness::Liveness;
use quinn::SendStream;
use std::future::Future;
use std::io;
use std::mem::swap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::timeout;

/// The length field that ends a stream.
pub(super) const CLOSE: u16 = u16::MAX;
/// The length field of a message about multicast groups.
pub(super) const MESSAGE: u16 = CLOSE - 1;
/// The longest reason in bytes.
pub(super) const REASON_BYTES_MAX: usize = 1_024;
/// The limit of waiting bytes. The window of a hop is smaller, so only a peer that does not follow the protocol
/// reaches it.
const WAITING_MAX: usize = 4 << 20;
/// A buffer that has grown beyond this is freed after use.
const KEPT_BYTES: usize = 256 << 10;
/// The longest wait for the acknowledgement of the last bytes.
const END_MAX: Duration = Duration::from_millis(200);

/// The writing half of a byte stream.
pub(super) trait Sink: AsyncWrite + Unpin + Send + Sized + 'static {
    /// Ends the stream, and waits until the other end has everything, where that can be known.
    fn end(mut self) -> impl Future<Output = ()> + Send {
        async move { drop(self.shutdown().await) }
    }
}

impl<T: AsyncWrite + Send + 'static> Sink for tokio::io::WriteHalf<T> {}
impl Sink for tokio::net::tcp::OwnedWriteHalf {}
impl Sink for tokio::net::unix::OwnedWriteHalf {}

impl Sink for SendStream {
    /// Waits for the acknowledgement: the end of a QUIC connection discards data without one.
    async fn end(mut self) {
        if self.finish().is_ok() {
            let _ = timeout(END_MAX, self.stopped()).await;
        }
    }
}

/// The records that wait for one stream.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    records: Vec<u8>,
    is_closed: bool,
}

impl Outbox {
    /// Adds a frame of `bytes` in these pieces. Never blocks, and copies the frame once.
    pub(super) fn put<'p>(&self, bytes: usize, pieces: impl Iterator<Item = &'p [u8]>) -> Sent {
        let length = u16::try_from(bytes).ok().filter(|length| (1..MESSAGE).contains(length));
        let Some(length) = length else { return Sent::Down };
        let mut waiting = self.lock();
        if waiting.is_closed || waiting.records.len() + bytes > WAITING_MAX {
            return Sent::Down;
        }
        waiting.records.extend_from_slice(&length.to_be_bytes());
        pieces.for_each(|piece| waiting.records.extend_from_slice(piece));
        drop(waiting);
        self.ready.notify_one();
        Sent::Taken
    }

    /// Adds a message about multicast groups. Never blocks.
    pub(super) fn put_message(&self, message: &[u8]) -> Sent {
        let mut waiting = self.lock();
        let length = u16::try_from(message.len());
        let fits = !waiting.is_closed && waiting.records.len() + message.len() <= WAITING_MAX;
        let Some(length) = length.ok().filter(|_| fits) else { return Sent::Down };
        waiting.records.extend_from_slice(&MESSAGE.to_be_bytes());
        waiting.records.extend_from_slice(&length.to_be_bytes());
        waiting.records.extend_from_slice(message);
        drop(waiting);
        self.ready.notify_one();
        Sent::Taken
    }

    /// Ends the stream behind the frames that wait.
    pub(super) fn close(&self, reason: &str) {
        let reason = reason.as_bytes();
        let reason = reason.get(..REASON_BYTES_MAX).unwrap_or(reason);
        let mut waiting = self.lock();
        if !waiting.is_closed {
            waiting.is_closed = true;
            let length = u16::try_from(reason.len()).unwrap_or_default();
            waiting.records.extend_from_slice(&CLOSE.to_be_bytes());
            waiting.records.extend_from_slice(&length.to_be_bytes());
            waiting.records.extend_from_slice(reason);
        }
        drop(waiting);
        self.ready.notify_one();
    }

    /// Writes records until the stream is closed or broken: all that wait at once, and an empty one when this end has been
    /// quiet for too long.
    pub(super) async fn write_to(
        &self,
        mut writer: impl Sink,
        liveness: &Liveness,
    ) -> io::Result<()> {
        let mut batch = Vec::new();
        loop {
            let is_closed = self.take(&mut batch);
            if batch.is_empty() {
                if is_closed {
                    writer.end().await;
                    return Ok(());
                }
                let quiet = liveness.quiet_left();
                if !quiet.is_zero() {
                    // Either records are ready, or datagrams were sent meanwhile, or this end was quiet.
                    let _ = timeout(quiet, self.ready.notified()).await;
                    continue;
                }
                batch.extend_from_slice(&0_u16.to_be_bytes());
            }
            liveness.note_sent();
            writer.write_all(&batch).await?;
            writer.flush().await?;
            batch.clear();
            if batch.capacity() > KEPT_BYTES {
                batch = Vec::new();
            }
        }
    }

    /// Exchanges the waiting records for the empty `batch`; returns true if the stream is closed.
    fn take(&self, batch: &mut Vec<u8>) -> bool {
        let mut waiting = self.lock();
        swap(&mut waiting.records, batch);
        waiting.is_closed
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
