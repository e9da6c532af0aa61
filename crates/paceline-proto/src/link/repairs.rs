//! The queue of lost pieces that wait for retransmission, and their share of the link.

use super::contents::Piece;
use crate::budget::{REPAIR_BURST, REPAIR_SHARE, RepairShare};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// The maximum number of queued pieces; 64 hops cannot have more in flight.
const REPAIRS_MAX: usize = 4_096;

/// The precedence of a piece, which outranks its deadline. No piece waits behind one that may not leave yet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Standing {
    /// Belongs to a stream with a contract.
    Promised,
    BestEffort,
    Background,
}

/// The order of a piece: precedence of its stream, deadline of its sample, stream, sample number, offset in
/// the sample.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct RepairKey {
    pub(super) standing: Standing,
    pub(super) due: Instant,
    pub(super) stream: StreamIndex,
    pub(super) number: u64,
    offset: usize,
}

/// Counters of retransmission.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RepairCounters {
    /// Pieces that were retransmitted.
    pub repeated: u64,
    /// Bytes of the retransmitted pieces.
    pub repeated_bytes: u64,
    /// Samples that were given up because they could no longer arrive in time.
    pub given_up: u64,
    /// The share of the capacity that is reserved for retransmission, in thousandths; 0 on carriers that keep order.
    pub share_per_mille: u64,
}

/// The queue of pieces that wait for retransmission.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    waiting: BTreeMap<RepairKey, Piece>,
    /// The time until which the share is used up by repairs that preceded samples with a deadline.
    paid_at: Instant,
    /// The same for best-effort repairs that preceded other best effort.
    best_effort_paid_at: Instant,
    counters: RepairCounters,
    pub(super) share: RepairShare,
}

impl Repairs {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= REPAIRS_MAX
    }

    pub(super) fn get(&self, key: &RepairKey) -> Option<&Piece> {
        self.waiting.get(key)
    }

    pub(super) fn remove(&mut self, key: &RepairKey) -> Option<Piece> {
        self.waiting.remove(key)
    }

    pub(super) fn put(&mut self, standing: Standing, piece: Piece) {
        let Piece { due, stream, number, offset, .. } = piece;
        self.waiting.insert(RepairKey { standing, due, stream, number, offset }, piece);
    }

    /// Returns `true` if any piece of the stream is queued.
    pub(super) fn has_any_of(&self, stream: StreamIndex) -> bool {
        self.waiting.keys().any(|key| key.stream == stream)
    }

    /// Returns the first piece behind `key`, or the first of all, with its number of bytes.
    pub(super) fn after(&self, key: Option<RepairKey>) -> Option<(RepairKey, usize)> {
        let mut left = self.waiting.iter();
        let (key, piece) = left.find(|(at, _)| key.is_none_or(|key| **at > key))?;
        Some((*key, piece.payload.len()))
    }

    /// Returns the first piece of a stream.
    pub(super) fn first_of(&self, stream: StreamIndex) -> Option<RepairKey> {
        self.waiting.keys().find(|key| key.stream == stream).copied()
    }

    /// Drops the pieces of one sample.
    pub(super) fn forget_sample(&mut self, stream: StreamIndex, number: u64) {
        self.forget(|key| key.stream == stream && key.number == number);
    }

    pub(super) fn forget(&mut self, gone: impl Fn(&RepairKey) -> bool) {
        self.waiting.retain(|key, _| !gone(key));
    }

    /// Counts a retransmitted piece.
    pub(super) fn count(&mut self, bytes: usize) {
        self.counters.repeated += 1;
        self.counters.repeated_bytes += bytes as u64;
    }

    /// Counts a sample that was given up.
    pub(super) fn count_given_up(&mut self) {
        self.counters.given_up += 1;
    }

    pub(super) const fn counters(&self) -> RepairCounters {
        self.counters
    }

    /// Charges a piece that occupies the wire for `time` and preceded other traffic, at the rate of the
    /// share.
    pub(super) fn pay(&mut self, now: Instant, time: Duration, best_effort: bool) {
        let paid_at = if best_effort { &mut self.best_effort_paid_at } else { &mut self.paid_at };
        *paid_at = (*paid_at).max(now) + time.mul_div(REPAIR_SHARE, 1);
    }

    /// Returns `true` if a piece may precede other traffic within the share.
    pub(super) fn may_precede(&self, now: Instant, best_effort: bool) -> bool {
        let paid_at = if best_effort { self.best_effort_paid_at } else { self.paid_at };
        paid_at <= now + REPAIR_BURST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn piece(stream: u32, number: u64, due: u64) -> Piece {
        Piece {
            stream: StreamIndex(stream),
            id: stream,
            number,
            head: None,
            published_at: Instant::ZERO,
            offset: 0,
            last: true,
            due: Instant::from_millis(due),
            payload: Bytes::from_static(b"piece"),
        }
    }

    #[test]
    fn a_contract_precedes_best_effort_and_an_earlier_deadline_a_later_one() {
        let mut repairs = Repairs::default();
        repairs.put(Standing::BestEffort, piece(1, 0, 10));
        repairs.put(Standing::Promised, piece(2, 0, 40));
        repairs.put(Standing::Promised, piece(3, 7, 30));
        let mut order = Vec::new();
        let mut last = None;
        while let Some((key, bytes)) = repairs.after(last) {
            order.push((key.stream.0, bytes));
            last = Some(key);
        }
        assert_eq!(order, [(3, 5), (2, 5), (1, 5)]);
        assert_eq!(repairs.first_of(StreamIndex(1)).map(|key| key.number), Some(0));
        repairs.forget_sample(StreamIndex(3), 7);
        assert!(!repairs.has_any_of(StreamIndex(3)) && repairs.has_any_of(StreamIndex(2)));
    }

    #[test]
    fn repairs_precede_others_with_a_tenth_of_the_link_and_a_burst() {
        let (mut repairs, now) = (Repairs::default(), Instant::from_millis(1_000));
        assert!(repairs.may_precede(now, false));
        // 6 ms on the wire cost 60 ms of the share; 50 ms of it may be owed.
        repairs.pay(now, Duration::from_millis(6), false);
        assert!(!repairs.may_precede(now, false) && repairs.may_precede(now, true));
        assert!(repairs.may_precede(now + Duration::from_millis(10), false));
    }
}
