//! What was lost and is sent again: which pieces, in which order, and until when.
//!
//! A lost piece waits here with the deadline of its sample. One of a stream with a contract goes before
//! the sample that the discipline has picked if its own deadline is earlier, and before best effort always;
//! one of a best-effort stream goes before best effort. All are paced and counted as every other byte of the link.
//! Before samples that have a deadline repairs take at most one part in ten of the link, which admission keeps for
//! them, so a stream that loses much cannot break what was promised to others; nor do those of best effort take
//! more before other best effort: beyond that they go in their stream's own turn, before its head.
//!
//! A sample of which a piece can no longer arrive in time is given up: nothing of it is sent again, the
//! other end is told not to wait for it, and it is judged as missed.

use super::ledger::{Item, Piece};
use super::stream::Stream;
use super::{Carrier, Link, Notice, StreamIndex, frame_on_wire};
use crate::ids::NodeId;
use crate::reason::DropReason;
use crate::retransmit::Retransmit;
use crate::sample::Sample;
use crate::wire::segment::stream_place;
use paceline_sched::discipline::Scheduler as _;
use paceline_sched::{Capacity, Duration, Instant, Late};
use std::collections::BTreeMap;

/// Pieces that wait to be sent again at most. More cannot be in flight to 64 hops.
const REPAIRS_MAX: usize = 4_096;
/// Before samples with a deadline repairs may use one part in this many of the capacity, and so may those of best
/// effort before other best effort …
const SHARE: u64 = 10;
/// … and what that share brings together in so long, and one frame, at once.
const BURST: Duration = Duration::from_millis(50);

/// What a link of `capacity` that mends what is lost has to keep for that: bits a second, and bytes at once, on
/// the wire. Repairs take no more of it before others, so what is promised beside them holds whatever is lost.
pub(crate) fn repairs_of(capacity: Capacity) -> (u64, u64) {
    let bytes = capacity.bytes_in(BURST).div_ceil(SHARE);
    let frame = frame_on_wire(capacity, Carrier::Datagrams);
    (capacity.bits_per_s().div_ceil(SHARE), bytes + frame)
}
/// A sample that a newer one replaces is worth repairing for four round trips, and at least so long.
const REPLACED_FOR: Duration = Duration::from_millis(200);

/// Which pieces go first, whatever their deadlines: none waits behind one that may not go yet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Standing {
    /// Of a stream with a contract.
    Promised,
    BestEffort,
    Background,
}

/// Where a piece stands: by its stream's standing, its sample's deadline, its stream, its sample and its place in that.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct RepairKey {
    pub(super) standing: Standing,
    pub(super) due: Instant,
    pub(super) stream: StreamIndex,
    number: u64,
    offset: usize,
}

/// What became of pieces that were lost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MendCounters {
    /// Pieces that were sent again.
    pub repeated: u64,
    /// Their bytes.
    pub repeated_bytes: u64,
    /// Samples that were given up, since they could no longer arrive in time.
    pub given_up: u64,
}

/// Pieces that wait to be sent again.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    waiting: BTreeMap<RepairKey, Piece>,
    /// When all repairs that went before samples with a deadline are paid for at their share of the link.
    paid_at: Instant,
    /// When all of best effort that went before other best effort are.
    best_effort_paid_at: Instant,
    pub(super) counters: MendCounters,
}

impl Repairs {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
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

    /// True if anything of a stream waits.
    pub(super) fn has_any_of(&self, stream: StreamIndex) -> bool {
        self.waiting.keys().any(|key| key.stream == stream)
    }

    pub(super) fn forget(&mut self, gone: impl Fn(&RepairKey) -> bool) {
        self.waiting.retain(|key, _| !gone(key));
    }

    /// A piece was sent again.
    pub(super) fn count(&mut self, bytes: usize) {
        self.counters.repeated += 1;
        self.counters.repeated_bytes += bytes as u64;
    }

    /// A piece that keeps the wire busy for `time` went before somebody who waits for no more than its share.
    pub(super) fn pay(&mut self, now: Instant, time: Duration, best_effort: bool) {
        let paid_at = if best_effort { &mut self.best_effort_paid_at } else { &mut self.paid_at };
        *paid_at = (*paid_at).max(now) + time.mul_div(SHARE, 1);
    }

    fn may_precede(&self, now: Instant, best_effort: bool) -> bool {
        let paid_at = if best_effort { self.best_effort_paid_at } else { self.paid_at };
        paid_at <= now + BURST
    }
}

/// What goes next into a frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// A segment of a stream's head.
    Head(StreamIndex),
    /// A piece that was lost.
    Repair(RepairKey),
    /// A piece that was lost, before somebody else: what it takes of the wire counts.
    Before(RepairKey),
    /// A piece that was lost, in the turn of its stream's head.
    Turn(RepairKey),
}

impl Next {
    pub(super) const fn stream(&self) -> StreamIndex {
        match self {
            Self::Head(index) => *index,
            Self::Repair(key) | Self::Before(key) | Self::Turn(key) => key.stream,
        }
    }
}

impl Link {
    /// What became of pieces that were lost, where that is mended.
    #[must_use]
    pub const fn mended(&self) -> MendCounters {
        self.repairs.counters
    }

    /// When a piece of `sample` must have arrived to be worth sending again.
    pub(super) fn repair_due(&self, now: Instant, index: StreamIndex, sample: &Sample) -> Instant {
        let Some(stream) = self.stream(index) else { return now };
        match stream.spec.contract {
            Some(contract) if contract.late == Late::Drop => {
                sample.born + stream.spec.upstream + contract.deadline
            }
            None if stream.spec.kind.is_replaced() && !stream.spec.background => {
                let trips = self.trip(stream.spec.hop).mul_div(4, 1);
                now + trips.max(REPLACED_FOR)
            }
            Some(_) | None => Instant::FAR,
        }
    }

    fn trip(&self, hop: NodeId) -> Duration {
        let trip = self.neighbours.get(&hop).and_then(|n| n.hop.least_round_trip());
        trip.unwrap_or_default()
    }

    /// Takes up what has turned out to be lost, or to have arrived.
    pub(super) fn mend(&mut self, node: NodeId) {
        let Some(ledger) = self.neighbours.get_mut(&node).and_then(|n| n.hop.ledger()) else {
            return;
        };
        if !ledger.has_news() {
            return;
        }
        let (lost, opened) = ledger.take();
        for item in opened {
            if let Item::Open(index, id, version) = item
                && let Some(stream) = self.stream_mut(index).filter(|stream| stream.id == id)
                && stream.version == version
            {
                stream.announced = true;
            }
        }
        for item in lost {
            self.mend_item(node, item);
        }
    }

    fn mend_item(&mut self, node: NodeId, item: Item) {
        match item {
            Item::Piece(piece) => {
                self.go_back(node, piece.stream);
                self.mend_piece(piece);
            }
            // It goes with every piece until one is known to have arrived.
            Item::Open(..) => {}
            Item::Notice(notice) => {
                if let Notice::Abort(id, _) = notice {
                    self.go_back(node, StreamIndex(stream_place(id)));
                }
                if let Some(neighbour) = self.neighbours.get_mut(&node) {
                    neighbour.notices.push_back(notice);
                }
            }
            Item::Part(part) => {
                if let Some(neighbour) = self.neighbours.get_mut(&node) {
                    neighbour.parts.push_back(part);
                }
            }
        }
    }

    /// Something of a stream was lost: if its receiver takes nothing out of order, all that followed is
    /// sent again too.
    fn go_back(&mut self, node: NodeId, index: StreamIndex) {
        let goes = |stream: &&Stream| stream.spec.retransmit == Retransmit::GoBackN;
        if self.stream(index).filter(goes).is_none() {
            return;
        }
        let ledger = self.neighbours.get_mut(&node).and_then(|neighbour| neighbour.hop.ledger());
        let pieces = ledger.map(|ledger| ledger.take_back(index)).unwrap_or_default();
        pieces.into_iter().for_each(|piece| self.mend_piece(piece));
    }

    fn mend_piece(&mut self, piece: Piece) {
        let wanted = |stream: &&Stream| {
            stream.up && stream.id == piece.id && !stream.has_given_up(piece.number)
        };
        let Some(stream) = self.stream(piece.stream).filter(wanted) else { return };
        // Also of what is not repaired the other end is told that it will not come.
        let mends = stream.spec.retransmit != Retransmit::None;
        if !mends || self.repairs.waiting.len() >= REPAIRS_MAX {
            self.give_up_sample(self.polled_at, piece.stream, piece.number);
            return;
        }
        let standing = self.standing(piece.stream);
        self.repairs.put(standing, piece);
    }

    fn standing(&self, index: StreamIndex) -> Standing {
        match self.stream(index).map(|stream| &stream.spec) {
            Some(spec) if spec.background => Standing::Background,
            Some(spec) if spec.contract.is_some() => Standing::Promised,
            Some(_) | None => Standing::BestEffort,
        }
    }

    /// The piece that is to be sent again next, if its hop may be sent to. Samples that can no longer
    /// arrive are given up on the way.
    fn next_repair(&mut self, now: Instant) -> Option<RepairKey> {
        let mut from = None;
        loop {
            let mut left = self.repairs.waiting.iter();
            let (key, piece) = left.find(|(key, _)| from.is_none_or(|from| **key > from))?;
            let (key, bytes) = (*key, piece.payload.len());
            let Some(hop) = self.stream(key.stream).map(|stream| stream.spec.hop) else {
                self.repairs.remove(&key);
                continue;
            };
            let arrives = now + self.service(bytes).saturating_add(self.trip(hop).mul_div(1, 2));
            if arrives > key.due {
                self.give_up_sample(now, key.stream, key.number);
            } else if self.has_credit(now, hop) {
                return Some(key);
            } else {
                from = Some(key);
            }
        }
    }

    /// What goes next: a piece that was lost, or the segment of a stream's head.
    pub(super) fn next_work(&mut self, now: Instant) -> Option<(NodeId, Next)> {
        let repair = if self.repairs.is_empty() { None } else { self.next_repair(now) };
        let data = self.next_data(now);
        let Some(key) = repair.filter(|_| !self.is_behind() && !self.is_window_full(now)) else {
            return data.map(|(node, index)| (node, Next::Head(index)));
        };
        let next = match data {
            Some((_, index)) => self.preceding(now, key, index),
            None => Some(Next::Repair(key)),
        };
        match (next, data) {
            (Some(next), _) => Some((self.stream(key.stream)?.spec.hop, next)),
            (None, Some((node, index))) => {
                let its = self.first_of(index).filter(|_| !self.is_promised(index));
                Some((node, its.map_or(Next::Head(index), Next::Turn)))
            }
            (None, None) => None,
        }
    }

    /// True if what goes next is no piece that was lost.
    pub(super) fn next_is_head(&mut self, now: Instant) -> bool {
        self.next_work(now).is_some_and(|(_, next)| matches!(next, Next::Head(_)))
    }

    /// A piece that was lost, if it goes before the head of `index`.
    fn preceding(&self, now: Instant, key: RepairKey, index: StreamIndex) -> Option<Next> {
        if key.standing == Standing::Background {
            return self.is_background(index).then_some(Next::Repair(key));
        }
        let promised = key.standing == Standing::Promised;
        let may = self.repairs.may_precede(now, !promised);
        let goes = match self.discipline.deadline(index) {
            Some(deadline) => promised && key.due <= deadline && may,
            // Classes share the link whatever their streams lose.
            None if promised && self.seats.is_none() => return Some(Next::Repair(key)),
            None => may,
        };
        goes.then_some(Next::Before(key))
    }

    /// What of a stream is to be sent again first.
    fn first_of(&self, index: StreamIndex) -> Option<RepairKey> {
        self.repairs.waiting.keys().find(|key| key.stream == index).copied()
    }

    /// A piece was sent in the turn of its stream's head.
    pub(super) fn take_turn(&mut self, index: StreamIndex, bytes: usize) {
        let Some(left) = self.stream(index).map(Stream::head_left) else { return };
        let left = self.left(left);
        self.discipline.handle_segment(index, Self::spent(bytes, bytes), left);
    }

    /// The head of a stream was given up; if it had begun, under a number that the other end is told.
    pub(super) fn abort(&mut self, index: StreamIndex, hop: NodeId, id: u32, begun: Option<u64>) {
        let Some(number) = begun else { return };
        if self.is_mended(hop) {
            self.repairs.forget(|key| key.stream == index && key.number == number);
            let Some(stream) = self.stream_mut(index) else { return };
            if stream.has_given_up(number) {
                return;
            }
            stream.note_given_up(number);
        }
        if let Some(neighbour) = self.neighbours.get_mut(&hop) {
            neighbour.notices.push_back(Notice::Abort(id, number));
        }
    }

    /// Nothing of a sample is sent again: it could not arrive in time.
    fn give_up_sample(&mut self, now: Instant, index: StreamIndex, number: u64) {
        self.repairs.forget(|key| key.stream == index && key.number == number);
        let Some(stream) = self.stream_mut(index) else { return };
        if stream.has_given_up(number) {
            return;
        }
        stream.note_given_up(number);
        let is_head = stream.head_begun && number == stream.number;
        let (hop, id) = (stream.spec.hop, stream.id);
        if let Some(neighbour) = self.neighbours.get_mut(&hop) {
            neighbour.notices.push_back(Notice::Abort(id, number));
        }
        self.repairs.counters.given_up += 1;
        if is_head {
            self.drop_begun(now, index);
        } else {
            self.judge_skipped(index, 1);
        }
    }

    /// The head of a stream, of which something was sent, is not worth its rest.
    fn drop_begun(&mut self, now: Instant, index: StreamIndex) {
        let Some(stream) = self.stream_mut(index) else { return };
        let kind = stream.head().map(|sample| sample.kind);
        stream.drop_head(DropReason::LinkLoss);
        let tail = kind.map_or(0, |kind| stream.drop_tail(kind));
        let violated = self.discipline.remove_head(index);
        if let Some(stream) = self.stream_mut(index) {
            stream.count_violation(violated);
        }
        self.judge_skipped(index, tail);
        self.announce_head(now, index);
    }

    /// What waits for a hop that is gone is gone too.
    pub(super) fn forget_repairs(&mut self, node: NodeId) {
        if self.repairs.is_empty() {
            return;
        }
        let streams = &self.streams;
        self.repairs.forget(|key| {
            let stream = streams.get(key.stream.0 as usize).and_then(Option::as_ref);
            stream.is_none_or(|stream| stream.spec.hop == node)
        });
    }
}

/// Samples that a stream remembers to have given up: more of them than frames tell of.
const GIVEN_UP_MAX: usize = 128;

impl Stream {
    pub(super) fn has_given_up(&self, number: u64) -> bool {
        self.given_up.contains(&number)
    }

    pub(super) fn note_given_up(&mut self, number: u64) {
        if self.given_up.len() >= GIVEN_UP_MAX {
            self.given_up.pop_front();
        }
        self.given_up.push_back(number);
    }
}
