//! Retransmission of lost pieces: selection, order and expiry.
//!
//! A lost piece waits here with the deadline of its sample. A piece of a stream with a contract precedes the
//! discipline's next sample if its own deadline is earlier, and always precedes best effort. A piece of a
//! best-effort stream precedes best effort. Retransmissions are paced and counted like all other bytes of the
//! link.
//!
//! Repairs precede samples that have a deadline with at most one tenth of the link's capacity, which
//! admission reserves. So a stream with heavy loss cannot break the contracts of others. Best-effort repairs
//! precede other best effort within the same limit. Beyond the limit, they are sent when the discipline
//! schedules their own stream, ahead of its head.
//!
//! A sample with a piece that can no longer arrive in time is given up. None of it is retransmitted, the
//! receiver is notified, and the sample counts as a miss.

use super::contents::{Item, Notice, Piece};
use super::pacing::spent;
use super::repairs::{RepairCounters, RepairKey, Standing};
use super::stream::Stream;
use super::{Link, StreamIndex};
use crate::budget::RepairShare;
use crate::carrier::Carrier;
use crate::ids::NodeId;
use crate::reason::DropReason;
use crate::retransmit::Retransmit;
use crate::sample::RawSample;
use crate::wire::segment::stream_place;
use paceline_sched::discipline::Scheduler as _;
use paceline_sched::{Duration, Instant, Late};

/// The minimum time for which a replaceable sample is repaired; it is repaired for four round trips if that
/// is longer.
const REPLACED_FOR: Duration = Duration::from_millis(200);

/// The next content of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// A segment of a stream's head.
    Head(StreamIndex),
    /// A lost piece that delays no other traffic.
    Repair(RepairKey),
    /// A lost piece that precedes other traffic, so its wire time is charged.
    Before(RepairKey),
    /// A lost piece that is sent in the schedule position of its stream's head.
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
    /// Returns the counters of retransmission; all zero on carriers that keep order.
    #[must_use]
    pub fn repair_counters(&self) -> RepairCounters {
        let share_per_mille = self.repair_share().map_or(0, RepairShare::per_mille);
        RepairCounters { share_per_mille, ..self.repairs.counters() }
    }

    /// Returns the share of the capacity that admission should reserve for repairs; `None` on carriers that keep order, and without
    /// a capacity.
    #[must_use]
    pub fn repair_share(&self) -> Option<RepairShare> {
        let wire = &self.pacer.wire;
        (wire.is_paced() && wire.carrier == Carrier::Datagrams).then_some(self.repairs.share)
    }

    /// Lets the reservation for repairs follow the loss of a measured link.
    pub(super) fn follow_losses(&mut self, now: Instant) {
        let Some(measure) = self.measure.as_mut().filter(|measure| measure.has_losses()) else {
            return;
        };
        let present = self.repairs.share;
        self.repairs.share = measure.repair_share(now, present);
    }

    /// Returns the time by which a piece of `sample` must arrive to be worth retransmitting.
    pub(super) fn repair_due(
        &self,
        now: Instant,
        index: StreamIndex,
        sample: &RawSample,
    ) -> Instant {
        let Some(stream) = self.streams.get(index) else { return now };
        match stream.spec.contract {
            Some(contract) if contract.late == Late::Drop => {
                sample.published_at + stream.spec.upstream + contract.deadline
            }
            None if stream.spec.kind.is_replaced() && !stream.spec.background => {
                let trips = self.hops.trip(stream.spec.hop).mul_div(4, 1);
                now + trips.max(REPLACED_FOR)
            }
            Some(_) | None => Instant::FAR,
        }
    }

    /// Processes pieces that the ledger reports as lost or acknowledged.
    pub(super) fn mend(&mut self, node: NodeId) {
        let Some(ledger) = self.hops.get_mut(node).and_then(|n| n.hop.ledger()) else {
            return;
        };
        if !ledger.has_news() {
            return;
        }
        let (lost, opened) = ledger.take();
        for item in opened {
            if let Item::Open(index, id, version) = item
                && let Some(stream) = self.streams.get_mut(index).filter(|stream| stream.id == id)
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
            // Every piece carries the open segment until one is acknowledged.
            Item::Open(..) => {}
            Item::Notice(notice) => {
                if let Notice::Abort(id, _) = notice {
                    self.go_back(node, StreamIndex(stream_place(id)));
                }
                self.hops.notify(node, notice);
            }
            Item::Part(part) => {
                if let Some(neighbour) = self.hops.get_mut(node) {
                    neighbour.parts.push_back(part);
                }
            }
        }
    }

    /// Handles a loss on a stream with go-back-n: the receiver accepts nothing out of order, so all later
    /// pieces are retransmitted too.
    fn go_back(&mut self, node: NodeId, index: StreamIndex) {
        let goes = |stream: &&Stream| stream.spec.retransmit == Retransmit::GoBackN;
        if self.streams.get(index).filter(goes).is_none() {
            return;
        }
        let ledger = self.hops.get_mut(node).and_then(|neighbour| neighbour.hop.ledger());
        let pieces = ledger.map(|ledger| ledger.take_back(index)).unwrap_or_default();
        pieces.into_iter().for_each(|piece| self.mend_piece(piece));
    }

    fn mend_piece(&mut self, piece: Piece) {
        let wanted = |stream: &&Stream| {
            stream.up && stream.id == piece.id && !stream.has_given_up(piece.number)
        };
        let Some(stream) = self.streams.get(piece.stream).filter(wanted) else { return };
        // The receiver is notified that the sample will not arrive, even if the stream uses no
        // retransmission.
        let mends = stream.spec.retransmit != Retransmit::None;
        if !mends || self.repairs.is_full() {
            self.give_up_sample(self.polled_at, piece.stream, piece.number);
            return;
        }
        let standing = self.standing(piece.stream);
        self.repairs.put(standing, piece);
    }

    fn standing(&self, index: StreamIndex) -> Standing {
        match self.streams.get(index).map(|stream| &stream.spec) {
            Some(spec) if spec.background => Standing::Background,
            Some(spec) if spec.contract.is_some() => Standing::Promised,
            Some(_) | None => Standing::BestEffort,
        }
    }

    /// Returns the next piece to retransmit whose hop has credit. Gives up samples that can no longer arrive
    /// in time.
    fn next_repair(&mut self, now: Instant) -> Option<RepairKey> {
        let mut from = None;
        loop {
            let (key, bytes) = self.repairs.after(from)?;
            let Some(hop) = self.streams.get(key.stream).map(|stream| stream.spec.hop) else {
                self.repairs.remove(&key);
                continue;
            };
            let arrives = now
                + self.pacer.wire.service(bytes).saturating_add(self.hops.trip(hop).mul_div(1, 2));
            if arrives > key.due {
                self.give_up_sample(now, key.stream, key.number);
            } else if self.hops.has_credit(now, hop, &self.pacer.wire) {
                return Some(key);
            } else {
                from = Some(key);
            }
        }
    }

    /// Returns the next content of a frame: a lost piece, or a segment of a stream's head.
    pub(super) fn next_work(&mut self, now: Instant) -> Option<(NodeId, Next)> {
        let repair = if self.repairs.is_empty() { None } else { self.next_repair(now) };
        let data = self.next_data(now);
        let Some(key) = repair
            .filter(|_| !self.is_behind() && !self.hops.is_window_full(now, &self.pacer.wire))
        else {
            return data.map(|(node, index)| (node, Next::Head(index)));
        };
        let next = match data {
            Some((_, index)) => self.preceding(now, key, index),
            None => Some(Next::Repair(key)),
        };
        match (next, data) {
            (Some(next), _) => Some((self.streams.get(key.stream)?.spec.hop, next)),
            (None, Some((node, index))) => {
                let its = self.repairs.first_of(index).filter(|_| !self.streams.is_promised(index));
                Some((node, its.map_or(Next::Head(index), Next::Turn)))
            }
            (None, None) => None,
        }
    }

    /// Returns `true` if the next content of the frame is a segment of a stream's head.
    pub(super) fn next_is_head(&mut self, now: Instant) -> bool {
        self.next_work(now).is_some_and(|(_, next)| matches!(next, Next::Head(_)))
    }

    /// Returns the lost piece `key` if it precedes the head of `index`.
    fn preceding(&self, now: Instant, key: RepairKey, index: StreamIndex) -> Option<Next> {
        if key.standing == Standing::Background {
            return self.streams.is_background(index).then_some(Next::Repair(key));
        }
        let promised = key.standing == Standing::Promised;
        let may = self.repairs.may_precede(now, !promised);
        let goes = match self.discipline.deadline(index) {
            Some(deadline) => promised && key.due <= deadline && may,
            // With classes, the share of a class does not depend on the losses of its streams.
            None if promised && self.class_streams.is_none() => return Some(Next::Repair(key)),
            None => may,
        };
        goes.then_some(Next::Before(key))
    }

    /// Charges a retransmitted piece to the schedule position of its stream's head.
    pub(super) fn take_turn(&mut self, index: StreamIndex, bytes: usize) {
        let Some(left) = self.streams.get(index).map(Stream::head_left) else { return };
        let left = self.pacer.wire.left(left);
        self.discipline.handle_segment(index, spent(bytes, bytes), left);
    }

    /// Notifies the receiver that the head was given up, if its sending had begun under number `begun`.
    pub(super) fn abort(&mut self, index: StreamIndex, hop: NodeId, id: u32, begun: Option<u64>) {
        let Some(number) = begun else { return };
        if self.hops.is_mended(hop) {
            self.repairs.forget_sample(index, number);
            let Some(stream) = self.streams.get_mut(index) else { return };
            if stream.has_given_up(number) {
                return;
            }
            stream.note_given_up(number);
        }
        self.hops.notify(hop, Notice::Abort(id, number));
    }

    /// Gives up a sample that could not arrive in time: none of it is retransmitted.
    fn give_up_sample(&mut self, now: Instant, index: StreamIndex, number: u64) {
        self.repairs.forget_sample(index, number);
        let Some(stream) = self.streams.get_mut(index) else { return };
        if stream.has_given_up(number) {
            return;
        }
        stream.note_given_up(number);
        let is_head = stream.head_begun && number == stream.number;
        let (hop, id) = (stream.spec.hop, stream.id);
        self.hops.notify(hop, Notice::Abort(id, number));
        self.repairs.count_given_up();
        if is_head {
            self.drop_begun(now, index);
        } else {
            self.judge_skipped(index, 1);
        }
    }

    /// Drops the partly sent head of a stream.
    fn drop_begun(&mut self, now: Instant, index: StreamIndex) {
        let Some(stream) = self.streams.get_mut(index) else { return };
        let kind = stream.head().map(|sample| sample.kind);
        stream.drop_head(DropReason::LinkLoss);
        let tail = kind.map_or(0, |kind| stream.drop_tail(kind));
        let violated = self.discipline.remove_head(index);
        if let Some(stream) = self.streams.get_mut(index) {
            stream.count_violation(violated);
        }
        self.judge_skipped(index, tail);
        self.announce_head(now, index);
    }

    /// Drops the queued pieces for a hop that is down.
    pub(super) fn forget_repairs(&mut self, node: NodeId) {
        if self.repairs.is_empty() {
            return;
        }
        let streams = &self.streams;
        self.repairs
            .forget(|key| streams.get(key.stream).is_none_or(|stream| stream.spec.hop == node));
    }
}
