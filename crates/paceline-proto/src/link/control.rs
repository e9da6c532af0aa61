//! Control messages on a link: their contract and their priority relative to samples.
//!
//! Control is one stream per link, for all hops together. Its contract is one piece per period, where the
//! period is 20 times the transmission time of a piece, and each piece is due within its period. That is 5 %
//! of the link, which admission reserves. Until its deadline control yields to samples with earlier
//! deadlines. It is sent whenever no contracted sample is queued, and always before best effort. So in every
//! busy period the control that is due takes no more than its share, and breaks no contract.
//!
//! Disciplines that do not serve by deadlines lack this order. There admission counts one piece of control as
//! blocking every sample ([`crate::budget::in_the_way`]).

use super::repair::{Next, Standing};
use super::{Link, WINDOW_FRAMES};
use crate::budget::{CONTROL_SHARE, piece_on_wire};
use crate::carrier::{off_wire, on_wire};
use crate::ids::NodeId;
use crate::wire::frame::FrameBuf;
use crate::wire::segment::ControlHead;
use paceline_sched::{Instant, Scheduler};

/// The number of frames with control that may be in flight beyond the window of data.
const CONTROL_FRAMES: usize = 3;
/// The minimum size of a piece, in bytes, when a message is cut to fill the rest of a frame.
const PIECE_MIN: usize = 256;

/// The state of control's contract: waiting time and charge.
#[derive(Debug, Default)]
pub(super) struct ControlTurn {
    waits_since: Option<Instant>,
    paid_at: Instant,
}

/// The amount of control in a frame ahead of samples.
#[derive(Clone, Copy, Debug)]
pub(super) enum ControlRoom {
    /// One piece: samples with a deadline are queued behind it.
    Piece,
    /// A whole frame: no sample with a deadline is queued.
    Frame,
}

impl ControlTurn {
    /// Returns the release time of the next piece: it is queued, and the charge for earlier pieces is paid.
    fn released(&mut self, now: Instant) -> Instant {
        (*self.waits_since.get_or_insert(now)).max(self.paid_at)
    }
}

impl super::Neighbour {
    /// Returns `true` if control is queued for the hop and the hop has room for it.
    pub(super) fn may_send_control(&self, now: Instant) -> bool {
        self.has_control()
            && self.hop.is_up()
            && self.hop.can_be_told()
            && self.hop.overdue_frames(now) < WINDOW_FRAMES + CONTROL_FRAMES
    }

    /// Returns `true` if control is queued, or was lost and must be sent again.
    fn has_control(&self) -> bool {
        !self.control.is_empty() || !self.parts.is_empty()
    }
}

impl Link {
    /// Returns the hop for the next control that precedes samples, and the amount of control.
    pub(super) fn next_control(&mut self, now: Instant) -> Option<(NodeId, ControlRoom)> {
        if now < self.pacer.control_ready_at() {
            return None;
        }
        let mut nodes = self.neighbours.iter();
        let node = nodes.find_map(|(node, n)| n.may_send_control(now).then_some(*node))?;
        Some((node, self.control_room(now)?))
    }

    /// Returns the amount of control to send next; `None` while a sample with an earlier deadline is queued.
    fn control_room(&mut self, now: Instant) -> Option<ControlRoom> {
        let due = if self.spec.capacity.is_some() { self.promised_due(now) } else { None };
        let Some(due) = due else { return Some(ControlRoom::Frame) };
        let period = self.pacer.wire_time(self.control_piece()).mul_div(CONTROL_SHARE, 1);
        (self.turn.released(now) + period <= due.max(now)).then_some(ControlRoom::Piece)
    }

    fn control_piece(&self) -> u64 {
        piece_on_wire(on_wire(self.frame_bytes))
    }

    /// Returns the deadline of the next contracted content; `None` if the next content has no contract or no
    /// deadline.
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

    /// Puts control ahead of samples into a frame.
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

    /// Puts a piece of control into a frame. The next piece is released after 20 times its transmission time.
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

    /// Puts control into a frame of at most `limit` bytes, if control may be sent now.
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
