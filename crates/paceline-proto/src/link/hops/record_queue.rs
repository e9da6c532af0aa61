//! The changes of records that wait for a hop, one queue per node whose record it is.
//!
//! The queues are served equally by bytes, in the order of start tags (start-time fair queueing, Goyal, Vin and Cheng, 1996);
//! equal tags are served by arrival. A whole record replaces the earlier changes of it that wait, and has their turn. A
//! digest follows what waits at its arrival, so that it announces nothing that the neighbour still lacks.

use crate::ids::NodeId;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most changes of one record that wait, and their bytes. On more, all but the newest are dropped: it shows the gap, and
/// the whole record is requested.
pub(super) const CHANGES_MAX: usize = 1_024;
const CHANGE_BYTES_MAX: usize = 1 << 20;
/// The most changes of all records that wait, and their bytes. Further ones are dropped; the next digest repairs the loss.
const WAITING_MAX: usize = 8_192;
const WAITING_BYTES_MAX: usize = 8 << 20;

/// The most empty queues whose share is known before those that are past are forgotten.
const FINISHED_MAX: usize = 64;

/// A start tag, in bytes, and the number of the arrival.
type Turn = (u64, u64);

/// A queue: that of a node's record, or `None` for the digest.
type Key = Option<NodeId>;

/// The messages of one queue.
#[derive(Debug)]
struct Waiting {
    turn: Turn,
    bytes: usize,
    messages: VecDeque<Bytes>,
}

impl Waiting {
    /// Returns the start tag of a message that follows these.
    fn next_start(&self) -> u64 {
        self.turn.0 + self.bytes as u64
    }
}

/// The changes of records that wait.
#[derive(Debug, Default)]
pub(super) struct RecordQueue {
    queues: BTreeMap<Key, Waiting>,
    turns: BTreeSet<(Turn, Key)>,
    /// The start tags of the next messages of empty queues, while others wait.
    finished: BTreeMap<NodeId, u64>,
    /// The start tag of the last message that was taken.
    clock: u64,
    arrivals: u64,
    count: usize,
    bytes: usize,
}

impl RecordQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Returns the length of the next message.
    pub(super) fn next_len(&self) -> Option<usize> {
        let (_, key) = self.turns.first()?;
        self.queues.get(key)?.messages.front().map(Bytes::len)
    }

    /// Adds a whole record.
    pub(super) fn replace(&mut self, node: NodeId, message: Bytes) -> u64 {
        let turn = self.queues.get(&Some(node)).map(|waiting| waiting.turn);
        self.remove(Some(node));
        self.push(Some(node), message, turn)
    }

    /// Adds a change of a record. Returns the number of messages that were dropped.
    pub(super) fn add(&mut self, node: NodeId, message: Bytes) -> u64 {
        let key = Some(node);
        let Some(waiting) = self.queues.get_mut(&key) else { return self.push(key, message, None) };
        let changes = waiting.messages.len();
        // A whole record may be the first one, and longer than all changes of it.
        let first = waiting.messages.front().map_or(0, Bytes::len);
        let mut dropped = 0;
        if changes > CHANGES_MAX || waiting.bytes - first + message.len() > CHANGE_BYTES_MAX {
            let turn = waiting.turn;
            dropped = self.remove(key);
            return dropped + self.push(key, message, Some(turn));
        }
        if self.count >= WAITING_MAX || self.bytes + message.len() > WAITING_BYTES_MAX {
            dropped += 1;
        } else {
            waiting.bytes += message.len();
            self.bytes += message.len();
            self.count += 1;
            waiting.messages.push_back(message);
        }
        dropped
    }

    /// Adds a digest behind all messages that wait. It replaces an earlier one.
    pub(super) fn add_digest(&mut self, message: Bytes) {
        let turn = self.queues.get(&None).map(|waiting| waiting.turn);
        self.remove(None);
        let last = self.queues.values().map(Waiting::next_start).max();
        let turn = turn.unwrap_or((last.unwrap_or(self.clock), u64::MAX));
        self.push(None, message, Some(turn));
    }

    /// Adds the first message of a queue.
    fn push(&mut self, key: Key, message: Bytes, turn: Option<Turn>) -> u64 {
        let fits = self.count < WAITING_MAX && self.bytes + message.len() <= WAITING_BYTES_MAX;
        if !fits && self.count > 0 {
            return 1;
        }
        self.arrivals += 1;
        let finished = key.and_then(|node| self.finished.remove(&node)).unwrap_or_default();
        let turn = turn.unwrap_or((finished.max(self.clock), self.arrivals));
        self.turns.insert((turn, key));
        self.bytes += message.len();
        self.count += 1;
        let waiting = Waiting { turn, bytes: message.len(), messages: VecDeque::from([message]) };
        self.queues.insert(key, waiting);
        0
    }

    /// Removes a queue, and returns the number of its messages.
    fn remove(&mut self, key: Key) -> u64 {
        let Some(waiting) = self.queues.remove(&key) else { return 0 };
        self.turns.remove(&(waiting.turn, key));
        self.bytes -= waiting.bytes;
        self.count -= waiting.messages.len();
        waiting.messages.len() as u64
    }

    /// Takes the next message.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let (turn, key) = self.turns.pop_first()?;
        self.clock = self.clock.max(turn.0);
        let waiting = self.queues.get_mut(&key)?;
        let message = waiting.messages.pop_front()?;
        waiting.bytes -= message.len();
        self.bytes -= message.len();
        self.count -= 1;
        let next = turn.0 + message.len() as u64;
        if waiting.messages.is_empty() {
            self.queues.remove(&key);
            self.finished.extend(key.map(|node| (node, next)));
        } else {
            self.arrivals += 1;
            waiting.turn = (next, self.arrivals);
            self.turns.insert((waiting.turn, key));
        }
        if self.turns.is_empty() {
            self.finished.clear();
        } else if self.finished.len() > FINISHED_MAX {
            let clock = self.clock;
            self.finished.retain(|_, next| *next > clock);
        }
        Some(message)
    }
}
