//! Sorts messages by release time. Files store them in order of arrival, which is nearly sorted, so a
//! bounded look-ahead suffices.

use crate::reader::{McapReader, Message, ReadError};
use crate::timeline::{BACK, MessageTimes, ReplayTimeline};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::Read;

/// The look-ahead limit in messages.
const MESSAGES_MAX: usize = 4_096;
/// The look-ahead limit in bytes.
const BYTES_MAX: usize = 64 << 20;

impl MessageTimes {
    /// Returns the times of a message. An attachment has those of its sample.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        let time = |time: u64| (time != 0).then_some(time);
        Self {
            channel: message.channel.attached_to().unwrap_or(message.id),
            sequence: message.sequence,
            arrival: time(message.log_time),
            published: time(message.publish_time),
            steady: message.channel.has_steady_arrivals(),
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

/// The messages of a file, ordered by release time.
pub struct Ordered<R> {
    reader: McapReader<R>,
    timeline: ReplayTimeline,
    /// Messages whose release times are not known yet.
    undecided: VecDeque<Message>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    /// The bytes of all buffered messages.
    bytes: usize,
    newest: u64,
    place: u64,
    given: u64,
    stray: u64,
    end: Option<Result<(), ReadError>>,
}

impl<R: Read> Ordered<R> {
    /// Orders the messages of `reader` by `timeline`, which has released none.
    pub const fn new(reader: McapReader<R>, timeline: ReplayTimeline) -> Self {
        Self {
            reader,
            timeline,
            undecided: VecDeque::new(),
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

    /// Returns the next message and its release time in nanoseconds; `None` after the last.
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
            self.decide();
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
        self.bytes += message.data.len();
        self.timeline.push(MessageTimes::of(&message));
        self.undecided.push_back(message);
    }

    /// Takes the messages whose release times are known. Without room for more, the known messages decide.
    fn decide(&mut self) {
        let ended = self.end.is_some() || (self.bytes >= BYTES_MAX && self.waiting.is_empty());
        while let Some(time) = self.timeline.release(ended)
            && let Some(message) = self.undecided.pop_front()
        {
            self.newest = self.newest.max(time);
            self.place += 1;
            self.waiting.push(Reverse(Waiting { time, place: self.place, message }));
        }
    }

    fn sees_enough(&self) -> bool {
        let far = |Reverse(first): &Reverse<Waiting>| {
            i128::from(self.newest) - i128::from(first.time) >= BACK
        };
        self.waiting.peek().is_some_and(far)
            || self.waiting.len() >= MESSAGES_MAX
            || (self.bytes >= BYTES_MAX && !self.waiting.is_empty())
    }
}
