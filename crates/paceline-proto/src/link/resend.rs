//! Additional contents of frames on carriers that may lose them: stream announcements repeated until
//! acknowledged, and retransmitted pieces.

use super::contents::{Item, Notice, Piece};
use super::pacing::PIECE_MIN;
use super::repairs::{RepairKey, Standing};
use super::retransmit::Next;
use super::{Link, StreamIndex};
use crate::carrier::on_wire;
use crate::ids::NodeId;
use crate::retransmit::Retransmit;
use crate::wire::frame::FrameBuf;
use crate::wire::segment::{
    DataHead, OPEN_MENDED_BYTES_MAX, Retransmission, stream_place, write_open_retransmitted,
};
use paceline_sched::Instant;

impl Link {
    /// Returns `true` if a segment of a stream may share the frame with the segments already in it. A frame
    /// counts as lost if the receiver refuses one of its pieces. Go-back-n streams therefore have frames of
    /// their own, so that no other stream is retransmitted in vain.
    pub(super) fn shares_frame(&self, index: StreamIndex, alone: &mut Option<bool>) -> bool {
        let goes_back = self.streams.get(index).is_some_and(|stream| {
            stream.spec.retransmit == Retransmit::GoBackN && self.hops.is_mended(stream.spec.hop)
        });
        *alone.get_or_insert(goes_back) == goes_back
    }

    /// Returns the maximum size of the stream's announcement; 0 if it is acknowledged.
    pub(super) fn open_bytes(&self, index: StreamIndex) -> usize {
        let unknown = self.streams.get(index).is_some_and(|stream| !stream.announced);
        if unknown { OPEN_MENDED_BYTES_MAX } else { 0 }
    }

    /// Puts the stream's announcement into the frame, unless it is acknowledged or already in the frame.
    pub(super) fn put_open(&mut self, index: StreamIndex, out: &mut FrameBuf) {
        let Some(stream) = self.streams.get(index).filter(|stream| !stream.announced) else {
            return;
        };
        let (id, version) = (stream.id, stream.version);
        let said = |item: &Item| matches!(item, Item::Open(other, ..) if *other == index);
        if self.items.iter().any(said) {
            return;
        }
        let spec = &stream.spec;
        let hold = spec.contract.map(|contract| spec.upstream.saturating_add(contract.deadline));
        let mend = Retransmission { retransmit: spec.retransmit, first: stream.first, hold };
        write_open_retransmitted(id, spec.publisher, &spec.form, mend, &mut out.head);
        self.items.push(Item::Open(index, id, version));
    }

    /// Announces a stream before an abort: a receiver that does not know the stream cannot process one.
    pub(super) fn open_before(&mut self, node: NodeId, notice: Notice, out: &mut FrameBuf) {
        let Notice::Abort(id, _) = notice else { return };
        let index = StreamIndex(stream_place(id));
        let its = self.streams.get(index).is_some_and(|stream| stream.id == id);
        if its && self.hops.is_mended(node) {
            self.put_open(index, out);
        }
    }

    /// Records a notice in the frame, to repeat it if the frame is lost.
    pub(super) fn note_notice(&mut self, node: NodeId, notice: Notice) {
        if self.hops.is_mended(node) {
            self.items.push(Item::Notice(notice));
        }
    }

    /// Charges a retransmitted piece that took `bytes` of a frame, together with other pieces (`shared`) or
    /// alone.
    pub(super) fn count_repair(
        &mut self,
        now: Instant,
        next: Next,
        (bytes, shared): (usize, bool),
    ) {
        match next {
            Next::Before(key) => {
                let bytes = bytes as u64;
                let time = self.pacer.wire.time_of(if shared { bytes } else { on_wire(bytes) });
                self.repairs.pay(now, time, key.standing != Standing::Promised);
            }
            Next::Turn(key) => self.take_turn(key.stream, bytes),
            Next::Head(_) | Next::Repair(_) => {}
        }
    }

    /// Puts a lost piece, or a part of it, into the frame. Returns `false` if there is no room.
    pub(super) fn put_repair(
        &mut self,
        now: Instant,
        key: RepairKey,
        limit: usize,
        out: &mut FrameBuf,
    ) -> bool {
        let Some(piece) = self.repairs.get(&key) else { return false };
        let left = piece.payload.len();
        let offset = piece.offset;
        let head = |piece: &Piece| {
            let first = piece.head.as_ref();
            let (stream, number, last) = (piece.id, piece.number, false);
            DataHead { stream, number, first, offset, last, len: 0 }.bytes_max()
        };
        let heads = head(piece) + self.open_bytes(key.stream);
        let space = limit.saturating_sub(out.len() + heads);
        if space < left.min(PIECE_MIN) || space == 0 {
            return false;
        }
        self.put_open(key.stream, out);
        let Some(mut piece) = self.repairs.remove(&key) else { return false };
        let rest = piece.payload.split_off(left.min(space));
        if !rest.is_empty() {
            let (offset, head) = (offset + piece.payload.len(), None);
            let rest = Piece { offset, head, payload: rest, ..piece.clone() };
            self.repairs.put(key.standing, rest);
            piece.last = false;
        }
        let len = piece.payload.len();
        self.repairs.count(len);
        if let Some(head) = &mut piece.head {
            head.age = now.since(piece.published_at);
        }
        let (stream, number, first) = (piece.id, piece.number, piece.head.as_ref());
        DataHead { stream, number, first, offset, last: piece.last, len }.write(&mut out.head);
        out.put_payload(piece.payload.clone());
        self.items.push(Item::Piece(piece));
        let hop = self.streams.get(key.stream).map(|stream| stream.spec.hop);
        let frame = hop.and_then(|hop| self.hops.next_seq(hop));
        if let Some(stream) = self.streams.get_mut(key.stream) {
            stream.last_frame = frame.max(stream.last_frame);
        }
        true
    }
}
