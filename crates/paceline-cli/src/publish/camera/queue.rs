//! The samples of a camera that wait for the publisher, bounded by their bytes and by the time that they wait.

use super::super::media::Message;
use super::super::source::Piece;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most bytes that wait: 5 s of 50 Mbit/s. A server may send everything since the last key picture at once.
pub(super) const BYTES_MAX: usize = 32 << 20;
/// The longest wait of the oldest sample. A publisher that takes none for this long is stopped or blocked.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(2);
/// Most samples, so that empty ones are bounded too, and the room of other messages.
const SAMPLES_MAX: usize = 8_192;
const MESSAGES_MORE: usize = 8;

/// The reason why a sample is not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum NoRoom {
    /// [`BYTES_MAX`] wait.
    Full,
    /// The oldest sample has waited for [`WAIT_MAX`].
    Stopped,
    /// Nobody receives any more.
    Gone,
}

/// The arrival times and lengths of the samples that wait, the oldest first.
#[derive(Debug, Default)]
struct Waiting {
    samples: VecDeque<(Instant, usize)>,
    bytes: usize,
}

/// The sending end of a queue.
pub(super) struct LaneQueue {
    to: SyncSender<Message>,
    waiting: Arc<Mutex<Waiting>>,
}

/// A sample that waits; dropping it frees its room.
#[derive(Debug)]
struct Room(Arc<Mutex<Waiting>>);

impl Drop for Room {
    fn drop(&mut self) {
        let mut waiting = lock(&self.0);
        if let Some((_, bytes)) = waiting.samples.pop_front() {
            waiting.bytes = waiting.bytes.saturating_sub(bytes);
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LaneQueue {
    /// Returns both ends of a queue.
    pub(super) fn new() -> (Self, Receiver<Message>) {
        let (to, messages) = sync_channel(SAMPLES_MAX + MESSAGES_MORE);
        (Self { to, waiting: Arc::default() }, messages)
    }

    /// Returns a sender for the error of the reading thread.
    pub(super) fn sender(&self) -> SyncSender<Message> {
        self.to.clone()
    }

    /// Sends a message without a sample.
    pub(super) fn send(&self, message: Message) -> Result<(), NoRoom> {
        self.to.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => NoRoom::Full,
            TrySendError::Disconnected(_) => NoRoom::Gone,
        })
    }

    /// Sends a sample that arrived at `now`, without waiting. A sample above the bound is taken if none waits.
    pub(super) fn offer(&self, piece: Piece, now: Instant) -> Result<(), NoRoom> {
        let bytes = piece.payload.len();
        {
            let mut waiting = lock(&self.waiting);
            let oldest = waiting.samples.front();
            if oldest.is_some_and(|(at, _)| now.saturating_duration_since(*at) > WAIT_MAX) {
                return Err(NoRoom::Stopped);
            }
            let many = waiting.samples.len() >= SAMPLES_MAX;
            let much = waiting.bytes.saturating_add(bytes) > BYTES_MAX;
            if many || much && !waiting.samples.is_empty() {
                return Err(NoRoom::Full);
            }
            waiting.bytes = waiting.bytes.saturating_add(bytes);
            waiting.samples.push_back((now, bytes));
        }
        let room = Some(Box::new(Room(self.waiting.clone())) as Box<dyn Send>);
        self.send(Message::Sample(Piece { room, ..piece }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: usize) -> Piece {
        Piece::from(bytes::Bytes::from(vec![0; bytes]))
    }

    #[test]
    fn a_group_that_arrives_at_once_is_taken_whole() {
        let (queue, messages) = LaneQueue::new();
        let now = Instant::now();
        // Ten seconds of 4K at 20 Mbit/s and 60 Hz.
        for _ in 0..600 {
            assert_eq!(queue.offer(piece(41_000), now), Ok(()));
        }
        assert_eq!(messages.try_iter().count(), 600);
        assert_eq!(lock(&queue.waiting).bytes, 0, "taken samples free their room");
    }

    #[test]
    fn bytes_and_time_are_bounded() {
        let (queue, messages) = LaneQueue::new();
        let now = Instant::now();
        assert_eq!(queue.offer(piece(BYTES_MAX + 1), now), Ok(()), "alone");
        assert_eq!(queue.offer(piece(1), now), Err(NoRoom::Full));
        drop(messages.try_recv());
        for _ in 0..4 {
            assert_eq!(queue.offer(piece(BYTES_MAX / 4), now), Ok(()));
        }
        assert_eq!(queue.offer(piece(1), now), Err(NoRoom::Full));
        drop(messages.try_recv());
        assert_eq!(queue.offer(piece(1), now + WAIT_MAX), Ok(()));
        let late = now + WAIT_MAX + Duration::from_millis(1);
        assert_eq!(queue.offer(piece(1), late), Err(NoRoom::Stopped));
        messages.try_iter().for_each(drop);
        assert_eq!(queue.offer(piece(1), late), Ok(()), "the publisher goes on");
        drop(messages);
        assert_eq!(queue.offer(piece(1), late), Err(NoRoom::Gone));
    }

    #[test]
    fn empty_samples_are_bounded() {
        let (queue, _messages) = LaneQueue::new();
        let now = Instant::now();
        let took = (0..SAMPLES_MAX + 9).filter(|_| queue.offer(piece(0), now).is_ok()).count();
        assert_eq!(took, SAMPLES_MAX);
        assert_eq!(lock(&queue.waiting).samples.len(), SAMPLES_MAX);
    }
}
