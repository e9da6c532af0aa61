//! A neighbour: its hop, and the queues of control messages and notices for it.

use super::closes::push_bounded;
use super::control_queue::ControlQueue;
use super::hop::{Hop, WINDOW_FRAMES};
use crate::link::contents::{Item, Notice, Part};
use crate::link::pacing::PIECE_MIN;
use crate::wire::frame::FrameBuf;
use crate::wire::segment::{ControlHead, PART_BYTES_MAX, write_part};
use paceline_sched::Instant;
use std::collections::VecDeque;

/// The number of frames with control that may be in flight beyond the window of data.
const CONTROL_FRAMES: usize = 3;
/// A next hop, with the control messages and notices for it.
#[derive(Debug)]
pub(in crate::link) struct Neighbour {
    pub(in crate::link) hop: Hop,
    pub(in crate::link) control: ControlQueue,
    /// The start tag of the next control, in bytes ([`super::Hops::next_control`]).
    pub(super) control_start: u64,
    /// Abort and close segments for the next frame.
    pub(in crate::link) notices: VecDeque<Notice>,
    /// Closes that were sent but not yet acknowledged, each with its frame number.
    closes: VecDeque<(u64, Notice)>,
    /// The number of the first queued control message, on carriers that may lose frames.
    message: u64,
    /// Lost pieces of control messages.
    pub(in crate::link) parts: VecDeque<Part>,
}

impl Neighbour {
    /// Returns a neighbour behind `hop`. `notices` are the closes of its previous connection.
    pub(super) fn new(hop: Hop, notices: VecDeque<Notice>) -> Self {
        let (closes, parts) = (VecDeque::new(), VecDeque::new());
        let (control, control_start) = (ControlQueue::default(), 0);
        Self { hop, control, control_start, notices, closes, message: 0, parts }
    }

    /// Resets the queues after the hop went down.
    pub(in crate::link) fn take_down(&mut self) {
        self.control.clear();
        self.keep_closes();
        self.message = 0;
        self.parts.clear();
    }

    /// Returns `true` if control is queued for the hop and the hop has room for it.
    pub(in crate::link) fn may_send_control(&self, now: Instant) -> bool {
        self.has_control()
            && self.hop.is_up()
            && self.hop.can_be_told()
            && self.hop.overdue_frames(now) < WINDOW_FRAMES + CONTROL_FRAMES
    }

    /// Returns `true` if control is queued, or was lost and must be sent again.
    fn has_control(&self) -> bool {
        !self.control.is_empty() || !self.parts.is_empty()
    }

    /// Keeps the closes that the other end may not have received, when the hop goes down. Aborts are dropped:
    /// the number of the next sample shows that the aborted one never arrived.
    pub(super) fn keep_closes(&mut self) {
        let waiting = core::mem::take(&mut self.notices);
        let sent = core::mem::take(&mut self.closes).into_iter().map(|(_, notice)| notice);
        let closes = sent.chain(waiting).filter(|notice| matches!(notice, Notice::Close(..)));
        closes.for_each(|notice| push_bounded(&mut self.notices, notice));
    }

    /// Records a close in the frame that is being filled.
    pub(in crate::link) fn note_close(&mut self, close: Notice) {
        let hop = &self.hop;
        while self.closes.front().is_some_and(|(seq, _)| hop.has_settled(*seq)) {
            self.closes.pop_front();
        }
        self.closes.push_back((hop.next_seq(), close));
    }

    /// Sends again the closes that the other end may not have received.
    pub(super) fn repeat_closes(&mut self) {
        let closes = core::mem::take(&mut self.closes);
        self.notices.extend(closes.into_iter().map(|(_, close)| close));
    }

    /// Queues a close: without a bound while the hop is up and sends it.
    pub(super) fn notify_close(&mut self, close: Notice) {
        if self.hop.is_up() {
            self.notices.push_back(close);
        } else {
            push_bounded(&mut self.notices, close);
        }
    }

    /// Puts messages into a frame of at most `limit` bytes, where no frame is lost.
    pub(in crate::link) fn put_messages(&mut self, limit: usize, out: &mut FrameBuf) {
        loop {
            let room = limit.saturating_sub(out.len() + ControlHead::BYTES_MAX);
            let Some((message, sent)) = self.control.front() else { return };
            let (whole, left) = (message.len(), message.len() - sent);
            if room == 0 || room < left && room < PIECE_MIN {
                return;
            }
            let Some((piece, offset, last)) = self.control.take(room) else { return };
            let total = (offset == 0).then_some(whole);
            ControlHead { total, last, len: piece.len() }.write(&mut out.head);
            out.head.extend_from_slice(&piece);
        }
    }

    /// Puts messages into a frame of at most `limit` bytes, lost pieces first, and records them in `items`.
    pub(in crate::link) fn put_parts(
        &mut self,
        limit: usize,
        out: &mut FrameBuf,
        items: &mut Vec<Item>,
    ) {
        loop {
            let room = limit.saturating_sub(out.len() + PART_BYTES_MAX);
            let left = match (self.parts.front(), self.control.front()) {
                (Some(part), _) => part.payload.len(),
                (None, Some((message, sent))) => message.len() - sent,
                (None, None) => return,
            };
            if room == 0 || room < left && room < PIECE_MIN {
                return;
            }
            let part = if let Some(mut part) = self.parts.pop_front() {
                let rest = part.payload.split_off(left.min(room));
                if !rest.is_empty() {
                    let offset = part.offset + part.payload.len();
                    self.parts.push_front(Part { offset, payload: rest, ..part.clone() });
                }
                part
            } else {
                let Some(part) = self.next_part(room) else { return };
                part
            };
            let Part { number, total, offset, .. } = part;
            write_part(number, total, offset, part.payload.len(), &mut out.head);
            out.head.extend_from_slice(&part.payload);
            items.push(Item::Part(part));
        }
    }

    /// Returns the next unsent piece of control, at most `room` bytes.
    fn next_part(&mut self, room: usize) -> Option<Part> {
        let total = self.control.front()?.0.len();
        let (payload, offset, last) = self.control.take(room)?;
        let part = Part { number: self.message, total, offset, payload };
        self.message += u64::from(last);
        Some(part)
    }
}
