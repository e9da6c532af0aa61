//! Control on a link: its contract, and its place among samples.
//!
//! Control is a stream of each link, whoever its hops are. Its contract is one piece in twenty times what the link
//! needs for one, due within that: 5 % of the link, which admission keeps off what it tests. Until it is due it gives
//! way to samples that are due sooner; it goes whenever none with a contract waits, and always before best effort. So
//! each busy time of the link has, of control that is due within it, no more than its share, and no promise is broken
//! by it.
//!
//! Disciplines that do not serve by deadlines have no such order: beside them admission counts a piece of control as
//! in the way of every sample ([`in_the_way`]).

use super::pacer::CONTROL_SHARE;
use super::repair::{Next, Standing};
use super::{
    Carrier, Link, WINDOW_FRAMES, WIRE_OVERHEAD, frame_on_wire, off_wire, on_wire, repairs_of,
};
use crate::ids::NodeId;
use crate::wire::frame::FrameBuf;
use crate::wire::segment::ControlHead;
use paceline_sched::{Capacity, Instant, Policy, Scheduler};

/// Frames of control that may be in flight beyond the window of data.
const CONTROL_FRAMES: usize = 3;
/// A message is not cut to put less than this into what is left of a frame.
const PIECE_MIN: usize = 256;
/// Before samples with a contract control takes one part in this many of a frame …
const PIECE_PART: u64 = 4;
/// … and at least so many bytes.
const PIECE_BYTES_MIN: u64 = 300;

/// What of control goes before samples with a contract at once, on the wire, where frames take `frame` there.
const fn piece_on_wire(frame: u64) -> u64 {
    let part = frame / PIECE_PART;
    let least = PIECE_BYTES_MIN + WIRE_OVERHEAD;
    if part > least { part } else { least }
}

/// Bytes on the wire that may go before a sample, however soon it is due: the longest frame, since what is being sent
/// is not interrupted, what is sent again, and a piece of control where deadlines do not say who goes first.
pub(crate) fn in_the_way(policy: Policy, capacity: Capacity, carrier: Carrier) -> u64 {
    let frame = frame_on_wire(capacity, carrier);
    let repairs = match carrier {
        Carrier::Ordered | Carrier::Local => 0,
        Carrier::Datagrams => repairs_of(capacity).1,
    };
    let control = match policy {
        Policy::Edf | Policy::DelayEdd | Policy::Vds | Policy::Dwcs { .. } => 0,
        Policy::Fifo | Policy::StaticPriority | Policy::Drr | Policy::Wf2qPlus | Policy::Hfsc => {
            piece_on_wire(frame)
        }
    };
    frame + repairs + control
}

/// Since when control waits for samples, and when what went before some is paid for.
#[derive(Debug, Default)]
pub(super) struct ControlTurn {
    waits_since: Option<Instant>,
    paid_at: Instant,
}

/// How much of control goes into a frame before samples.
#[derive(Clone, Copy, Debug)]
pub(super) enum ControlRoom {
    /// A piece: samples with a deadline wait for it.
    Piece,
    /// As much as the frame holds: none waits.
    Frame,
}

impl ControlTurn {
    /// When the period of the next piece began: it waits, and those before it are paid for.
    fn released(&mut self, now: Instant) -> Instant {
        (*self.waits_since.get_or_insert(now)).max(self.paid_at)
    }
}

impl super::Neighbour {
    /// Control waits for the hop, and the hop has room for it.
    pub(super) fn may_send_control(&self, now: Instant) -> bool {
        self.has_control()
            && self.hop.is_up()
            && self.hop.can_be_told()
            && self.hop.overdue_frames(now) < WINDOW_FRAMES + CONTROL_FRAMES
    }

    /// Control that waits, or that was lost.
    fn has_control(&self) -> bool {
        !self.control.is_empty() || !self.parts.is_empty()
    }
}

impl Link {
    /// A hop that control goes to next, before samples, and how much of it.
    pub(super) fn next_control(&mut self, now: Instant) -> Option<(NodeId, ControlRoom)> {
        if now < self.pacer.control_ready_at() {
            return None;
        }
        let mut nodes = self.neighbours.iter();
        let node = nodes.find_map(|(node, n)| n.may_send_control(now).then_some(*node))?;
        Some((node, self.control_room(now)?))
    }

    /// How much of control goes next; `None` while a sample waits that is due sooner.
    fn control_room(&mut self, now: Instant) -> Option<ControlRoom> {
        let due = if self.spec.capacity.is_some() { self.promised_due(now) } else { None };
        let Some(due) = due else { return Some(ControlRoom::Frame) };
        let period = self.pacer.wire_time(self.control_piece()).mul_div(CONTROL_SHARE, 1);
        (self.turn.released(now) + period <= due.max(now)).then_some(ControlRoom::Piece)
    }

    fn control_piece(&self) -> u64 {
        piece_on_wire(on_wire(self.frame_bytes))
    }

    /// By when what goes next is to be served, if it has a contract and does not wait behind all that has.
    fn promised_due(&mut self, now: Instant) -> Option<Instant> {
        let due = match self.next_work(now)?.1 {
            Next::Head(index) if self.is_promised(index) => {
                self.discipline.virtual_deadline(index)?
            }
            Next::Repair(key) | Next::Before(key) if key.standing == Standing::Promised => key.due,
            Next::Head(_) | Next::Repair(_) | Next::Before(_) | Next::Turn(_) => return None,
        };
        (due < Instant::FAR).then_some(due)
    }

    /// Puts so much of control into a frame whose turn it is.
    pub(super) fn put_control_first(
        &mut self,
        now: Instant,
        (node, room): (NodeId, ControlRoom),
        out: &mut FrameBuf,
    ) {
        match room {
            ControlRoom::Piece => self.put_control_piece(now, node, out),
            ControlRoom::Frame => self.put_control(now, node, self.limit(), out),
        }
    }

    /// Puts a piece of control into a frame. The next one waits until twenty times its time is over.
    fn put_control_piece(&mut self, now: Instant, node: NodeId, out: &mut FrameBuf) {
        let before = out.len();
        let released = self.turn.released(now);
        let piece = usize::try_from(off_wire(self.control_piece())).unwrap_or(usize::MAX);
        self.put_control(now, node, self.limit().min(before.saturating_add(piece)), out);
        if out.len() > before {
            let time = self.pacer.wire_time(on_wire((out.len() - before) as u64));
            self.turn.paid_at = released + time.mul_div(CONTROL_SHARE, 1);
        }
    }

    /// Puts control into a frame of at most `limit` bytes, if it may be sent now.
    pub(super) fn put_control(
        &mut self,
        now: Instant,
        node: NodeId,
        limit: usize,
        out: &mut FrameBuf,
    ) {
        let may = self.neighbours.get(&node).is_some_and(|n| n.may_send_control(now));
        if !may || now < self.pacer.control_ready_at() {
            return;
        }
        let before = out.len();
        if self.is_mended(node) {
            self.put_parts(node, limit, out);
        } else {
            self.put_messages(node, limit, out);
        }
        let control = (out.len() - before) as u64;
        if control > 0 {
            self.turn.waits_since = None;
            self.pacer.handle_control(now, on_wire(control));
        }
    }

    fn put_messages(&mut self, node: NodeId, limit: usize, out: &mut FrameBuf) {
        loop {
            let room = limit.saturating_sub(out.len() + ControlHead::BYTES_MAX);
            let Some(neighbour) = self.neighbours.get_mut(&node) else { return };
            let Some(message) = neighbour.control.front() else { return };
            let left = message.len() - neighbour.control_sent;
            if room == 0 || room < left && room < PIECE_MIN {
                return;
            }
            let len = left.min(room);
            let total = (neighbour.control_sent == 0).then_some(message.len());
            let piece = message.slice(neighbour.control_sent..neighbour.control_sent + len);
            ControlHead { total, last: len == left, len }.write(&mut out.head);
            out.head.extend_from_slice(&piece);
            neighbour.control_sent += len;
            if len == left {
                neighbour.control.pop_front();
                neighbour.control_sent = 0;
            }
        }
    }
}
