//! Sorts messages by time. Files store them in order of arrival, which is nearly sorted, so a
//! bounded look-ahead suffices.

use crate::reader::{McapReader, Message, ReadError};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;

/// The look-ahead limit in messages.
const MESSAGES_MAX: usize = 4_096;
/// The look-ahead limit in bytes.
const BYTES_MAX: usize = 64 << 20;
/// The look-ahead limit in nanoseconds of message time.
const TIME_MAX: u64 = 5_000_000_000;

/// The time by which messages are ordered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Order {
    /// The publication time, by the publisher's clock.
    #[default]
    Published,
    /// The arrival time, by the recorder's clock.
    Came,
}

impl Order {
    /// Returns the time of a message. A message without a publication time has its arrival time.
    #[must_use]
    pub const fn time(self, message: &Message) -> u64 {
        match self {
            Self::Published if message.publish_time != 0 => message.publish_time,
            Self::Published | Self::Came => message.log_time,
        }
    }
}

/// A message in the look-ahead heap.
struct Waiting {
    time: u64,
    /// Ties keep the order of the file.
    place: u64,
    message: Message,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.place) == (other.time, other.place)
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.place).cmp(&(other.time, other.place))
    }
}

/// The messages of a file, ordered by time.
pub struct Ordered<R> {
    reader: McapReader<R>,
    order: Order,
    waiting: BinaryHeap<Reverse<Waiting>>,
    bytes: usize,
    newest: u64,
    place: u64,
    given: u64,
    stray: u64,
    end: Option<Result<(), ReadError>>,
}

impl<R: Read> Ordered<R> {
    /// Orders the messages of `reader`.
    pub const fn new(reader: McapReader<R>, order: Order) -> Self {
        Self {
            reader,
            order,
            waiting: BinaryHeap::new(),
            bytes: 0,
            newest: 0,
            place: 0,
            given: 0,
            stray: 0,
            end: None,
        }
    }

    /// Returns the number of messages returned after a later one, because the look-ahead was too
    /// short.
    #[must_use]
    pub const fn out_of_order(&self) -> u64 {
        self.stray
    }

    /// Returns the next message and its time; `None` after the last.
    ///
    /// # Errors
    /// [`ReadError`], after all messages before it were returned. Later calls return `None`.
    pub fn next_message(&mut self) -> Result<Option<(u64, Message)>, ReadError> {
        while self.end.is_none() && !self.sees_enough() {
            match self.reader.next_message() {
                Ok(Some(message)) => self.push(message),
                Ok(None) => self.end = Some(Ok(())),
                Err(error) => self.end = Some(Err(error)),
            }
        }
        let Some(Reverse(Waiting { time, message, .. })) = self.waiting.pop() else {
            return self.end.replace(Ok(())).unwrap_or(Ok(())).map(|()| None);
        };
        self.bytes -= message.data.len();
        self.stray += u64::from(time < self.given);
        self.given = self.given.max(time);
        Ok(Some((time, message)))
    }

    fn push(&mut self, message: Message) {
        let time = self.order.time(&message);
        self.bytes += message.data.len();
        self.newest = self.newest.max(time);
        self.place += 1;
        self.waiting.push(Reverse(Waiting { time, place: self.place, message }));
    }

    fn sees_enough(&self) -> bool {
        let far = |Reverse(first): &Reverse<Waiting>| self.newest - first.time >= TIME_MAX;
        self.waiting.len() >= MESSAGES_MAX
            || self.bytes >= BYTES_MAX
            || self.waiting.peek().is_some_and(far)
    }
}
