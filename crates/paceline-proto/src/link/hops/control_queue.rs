//! The control messages that wait for a hop.
//!
//! Messages keep their order while few of them are records. Beyond [`RECORDS_AHEAD`], the changes of records wait in queues of
//! their own ([`RecordQueue`]), so that a record that changes all the time delays neither the reservations of others nor
//! their records. These queues get a quarter of the bytes while other messages wait, and all of them otherwise.

use super::record_queue::RecordQueue;
use crate::wire::record::RecordMessage;
use bytes::Bytes;
use std::collections::VecDeque;

/// The bytes of records that wait in order with the other messages.
const RECORDS_AHEAD: usize = 16_384;
/// The most messages that wait in order. Further ones are dropped; the next digest repairs the loss.
const WAITING_MAX: usize = 8_192;
/// The queues of records get a byte for so many bytes of other messages.
const OTHERS: usize = 3;

/// The control messages that wait for a hop.
#[derive(Debug, Default)]
pub(in crate::link) struct ControlQueue {
    in_order: VecDeque<Bytes>,
    /// The bytes in [`Self::in_order`] that no change in [`Self::records`] may overtake: earlier changes, tokens that decide
    /// on later ones, and messages by which the neighbour forgets all records.
    records_ahead: usize,
    records: RecordQueue,
    /// The bytes of other messages that were taken since a record was taken or began to wait.
    others: usize,
    /// The message of which the first `sent` bytes were sent.
    current: Option<Bytes>,
    sent: usize,
}

impl ControlQueue {
    pub(in crate::link) fn is_empty(&self) -> bool {
        self.current.is_none() && self.in_order.is_empty() && self.records.is_empty()
    }

    pub(in crate::link) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a message. Returns the number of messages that were dropped.
    pub(in crate::link) fn push(&mut self, message: Bytes) -> u64 {
        match RecordMessage::of(&message) {
            Some(RecordMessage::Part(node)) => {
                return self.push_change(message, |records, it| records.add(node, it));
            }
            Some(RecordMessage::Whole(node)) => {
                return self.push_change(message, |records, it| records.replace(node, it));
            }
            Some(RecordMessage::Digest) if !self.records.is_empty() => {
                self.records.add_digest(message);
                return 0;
            }
            Some(RecordMessage::Forget) => {
                // All records follow anew.
                self.records = RecordQueue::default();
                self.records_ahead += message.len();
            }
            None | Some(RecordMessage::Digest | RecordMessage::Token)
                if self.in_order.len() >= WAITING_MAX =>
            {
                return 1;
            }
            Some(RecordMessage::Token) => self.records_ahead += message.len(),
            None | Some(RecordMessage::Digest) => {}
        }
        self.in_order.push_back(message);
        0
    }

    /// Adds a change of a record: in order while few bytes of records wait, and else by `add`.
    fn push_change(
        &mut self,
        message: Bytes,
        add: impl FnOnce(&mut RecordQueue, Bytes) -> u64,
    ) -> u64 {
        let calm = self.records.is_empty();
        let ahead = self.records_ahead + message.len();
        let fits = ahead <= RECORDS_AHEAD && self.in_order.len() < WAITING_MAX;
        if calm && (fits || self.is_empty()) {
            self.records_ahead = ahead;
            self.in_order.push_back(message);
            return 0;
        }
        self.others = if calm { 0 } else { self.others };
        add(&mut self.records, message)
    }

    /// Returns the next message and the number of its bytes that were taken.
    pub(in crate::link) fn front(&mut self) -> Option<(&Bytes, usize)> {
        if self.current.is_none() {
            self.current = self.next();
        }
        self.current.as_ref().map(|message| (message, self.sent))
    }

    /// Takes at most `room` bytes of the next message. Returns them with their offset, and true if they are its last.
    pub(in crate::link) fn take(&mut self, room: usize) -> Option<(Bytes, usize, bool)> {
        let (message, offset) = self.front()?;
        let end = offset.saturating_add(room).min(message.len());
        let (piece, last) = (message.slice(offset..end), end == message.len());
        self.sent = if last { 0 } else { end };
        if last {
            self.current = None;
        }
        Some((piece, offset, last))
    }

    fn next(&mut self) -> Option<Bytes> {
        let record = self.records.next_len().filter(|_| self.records_ahead == 0);
        let owed = record.is_some_and(|len| len * OTHERS <= self.others);
        if !owed && let Some(message) = self.in_order.pop_front() {
            match RecordMessage::of(&message) {
                None | Some(RecordMessage::Digest) => self.others += message.len(),
                Some(_) => self.records_ahead -= message.len(),
            }
            return Some(message);
        }
        self.others = self.others.saturating_sub(record? * OTHERS);
        self.records.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::super::record_queue::CHANGES_MAX;
    use super::*;
    use crate::wire::record::{DELTA, DIGEST, FORGET, SNAPSHOT, TOKEN};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn message(kind: u8, node: u64, number: u64, len: usize) -> Bytes {
        let mut bytes = vec![kind];
        bytes.extend(node.to_le_bytes());
        bytes.extend(number.to_le_bytes());
        bytes.resize(len.max(bytes.len()), 0);
        bytes.into()
    }

    fn read(message: &Bytes) -> (u8, u64, u64) {
        let number = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().unwrap());
        (message[0], number(1), number(9))
    }

    fn next(queue: &mut ControlQueue) -> Option<Bytes> {
        let mut whole = Vec::new();
        loop {
            let (piece, offset, last) = queue.take(1_000)?;
            assert_eq!(offset, whole.len());
            whole.extend_from_slice(&piece);
            if last {
                return Some(whole.into());
            }
        }
    }

    #[test]
    fn few_messages_keep_their_order() {
        let mut queue = ControlQueue::default();
        for number in 0..100 {
            assert_eq!(queue.push(message(1 + (number % 5) as u8, number % 3, number, 60)), 0);
        }
        for number in 0..100 {
            assert_eq!(read(&next(&mut queue).unwrap()).2, number);
        }
        assert!(queue.is_empty());
    }

    #[test]
    fn a_record_that_changes_all_the_time_delays_no_others_and_its_newest_state_waits() {
        let mut queue = ControlQueue::default();
        for number in 0..554 {
            assert_eq!(queue.push(message(SNAPSHOT, 9, number, 18_000)), 0);
        }
        queue.push(message(7, 1, 0, 100));
        queue.push(message(DELTA, 2, 0, 100));
        let mut sent = Vec::new();
        while let Some(message) = next(&mut queue) {
            sent.push(read(&message));
        }
        assert_eq!(sent, [(SNAPSHOT, 9, 0), (7, 1, 0), (SNAPSHOT, 9, 553), (DELTA, 2, 0)]);
    }

    #[test]
    fn a_record_waits_for_its_token_and_a_digest_for_the_changes_that_it_announces() {
        let mut queue = ControlQueue::default();
        (0..300).for_each(|number| _ = queue.push(message(DELTA, 9, number, 100)));
        queue.push(message(TOKEN, 8, 300, 4_000));
        queue.push(message(DIGEST, 0, 301, 100));
        queue.push(message(SNAPSHOT, 8, 302, 100));
        let mut sent = Vec::new();
        while let Some(message) = next(&mut queue) {
            sent.push(read(&message));
        }
        let at = |kind: u8| sent.iter().position(|it| it.0 == kind).unwrap();
        let last = sent.iter().position(|it| it.2 == 299).unwrap();
        assert!(at(TOKEN) < at(SNAPSHOT) && at(DIGEST) > last.min(at(SNAPSHOT)), "{sent:?}");
        assert_eq!(sent.len(), 303);
    }

    #[test]
    fn earlier_traffic_lets_no_record_overtake() {
        let mut queue = ControlQueue::default();
        for number in 0..10_000 {
            queue.push(message(7, 0, number, 1_000));
            next(&mut queue);
        }
        queue.push(message(7, 0, 10_000, 1_000));
        queue.push(message(SNAPSHOT, 9, 10_001, 1 << 20));
        let order: Vec<u64> = (0..2).map(|_| read(&next(&mut queue).unwrap()).2).collect();
        assert_eq!(order, [10_000, 10_001]);
    }

    #[test]
    fn a_long_record_that_changes_arrives() {
        let mut queue = ControlQueue::default();
        queue.push(message(7, 0, 0, 100));
        queue.push(message(SNAPSHOT, 9, 1, 2 << 20));
        for number in 2..50 {
            assert_eq!(queue.push(message(DELTA, 9, number, 100)), 0);
        }
        let sent: Vec<u64> = std::iter::from_fn(|| Some(read(&next(&mut queue)?).2)).collect();
        assert_eq!(sent, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn records_share_their_part_and_others_cannot_keep_it() {
        let mut queue = ControlQueue::default();
        queue.push(message(7, 0, 0, 1_000));
        for number in 0..1_600 {
            queue.push(message(DELTA, number % 2, number, if number % 2 == 0 { 200 } else { 100 }));
        }
        let mut bytes = [0, 0, 0];
        for _ in 0..2_000 {
            queue.push(message(7, 0, 0, 200));
            let message = next(&mut queue).unwrap();
            let (kind, node, _) = read(&message);
            bytes[if kind == DELTA { usize::from(node == 1) } else { 2 }] += message.len();
        }
        println!("{bytes:?}");
        let records = bytes[0] + bytes[1];
        assert!(records * 7 / 2 > bytes[2] - 16_384 && records * 2 < bytes[2], "{bytes:?}");
    }

    #[test]
    fn forgotten_records_are_not_sent_afterwards() {
        let mut queue = ControlQueue::default();
        for number in 0..400 {
            queue.push(message(7, 1, number, 1_000));
            next(&mut queue);
        }
        (0..400).for_each(|number| _ = queue.push(message(DELTA, 9, number, 100)));
        queue.push(message(FORGET, 0, 0, 17));
        queue.push(message(SNAPSHOT, 8, 0, 30_000));
        let mut sent = Vec::new();
        while let Some(message) = next(&mut queue) {
            sent.push(read(&message));
        }
        let forget = sent.iter().position(|it| it.0 == FORGET).unwrap();
        assert_eq!(&sent[forget + 1..], [(SNAPSHOT, 8, 0)]);
        assert!(queue.is_empty());
    }

    #[test]
    fn waiting_changes_are_bounded() {
        let mut queue = ControlQueue::default();
        let dropped: u64 =
            (0..100_000).map(|number| queue.push(message(DELTA, 9, number, 50))).sum();
        assert!(queue.records.len() <= CHANGES_MAX + 1 && dropped > 90_000, "{dropped}");
        // The newest one shows the gap.
        let newest = std::iter::from_fn(|| next(&mut queue)).last().unwrap();
        assert_eq!(read(&newest), (DELTA, 9, 99_999));
        let dropped: u64 = (0..100_000).map(|number| queue.push(message(7, 9, number, 50))).sum();
        assert!(queue.in_order.len() <= WAITING_MAX && dropped > 90_000, "{dropped}");
    }

    proptest! {
        /// Each record's changes arrive in order; one that is not sent is replaced by a later whole record, or dropped and
        /// counted.
        #[test]
        fn changes_of_a_record_keep_their_order(
            steps in prop::collection::vec((0..5u8, 1..4u64, 0..6_000usize), 1..400)
        ) {
            let mut queue = ControlQueue::default();
            let (mut last, mut sent, mut pushed) = (BTreeMap::new(), 0, 0);
            let mut note = |message: Bytes| {
                let (kind, node, number) = read(&message);
                let queue = if [DELTA, SNAPSHOT].contains(&kind) { node } else { 0 };
                assert!(last.insert(queue, number).is_none_or(|before| before < number));
            };
            for (number, (kind, node, len)) in (0..).zip(steps) {
                if kind < 2 {
                    if let Some(message) = next(&mut queue) {
                        note(message);
                        sent += 1;
                    }
                } else {
                    let kind = [DELTA, SNAPSHOT, 7][usize::from(kind) - 2];
                    assert_eq!(queue.push(message(kind, node, number, len)), 0);
                    pushed += 1;
                }
            }
            while let Some(message) = next(&mut queue) {
                note(message);
                sent += 1;
            }
            prop_assert!(sent <= pushed && queue.is_empty());
            prop_assert_eq!((queue.records.len(), queue.records_ahead), (0, 0));
        }
    }
}
