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

use super::Link;
use super::repairs::Standing;
use super::retransmit::Next;
use crate::budget::CONTROL_SHARE;
use crate::carrier::{off_wire, on_wire};
use crate::ids::NodeId;
use crate::wire::frame::FrameBuf;
use paceline_sched::{Instant, Scheduler};

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

impl Link {
    /// Returns the hop for the next control that precedes samples, and the amount of control.
    pub(super) fn next_control(&mut self, now: Instant) -> Option<(NodeId, ControlRoom)> {
        if now < self.pacer.control_ready_at() {
            return None;
        }
        let node = self.hops.next_control(now, &self.pacer.wire)?;
        Some((node, self.control_room(now)?))
    }

    /// Returns true if control of this hop may be sent now, and it is not the turn of another hop.
    pub(super) fn is_turn_of(&self, now: Instant, node: NodeId) -> bool {
        now >= self.pacer.control_ready_at()
            && self.hops.get(node).is_some_and(|it| it.may_send_control(now))
            && self.hops.next_control(now, &self.pacer.wire) == Some(node)
    }

    /// Returns the amount of control to send next; `None` while a sample with an earlier deadline is queued.
    fn control_room(&mut self, now: Instant) -> Option<ControlRoom> {
        let due = if self.pacer.wire.is_paced() { self.promised_due(now) } else { None };
        let Some(due) = due else { return Some(ControlRoom::Frame) };
        let period =
            self.pacer.wire.time_of(self.pacer.wire.control_piece()).mul_div(CONTROL_SHARE, 1);
        (self.turn.released(now) + period <= due.max(now)).then_some(ControlRoom::Piece)
    }

    /// Returns `true` if a greeting may be sent now: as control, it yields to samples with an earlier deadline.
    pub(super) fn may_greet(&mut self, now: Instant) -> bool {
        now >= self.pacer.control_ready_at() && self.control_room(now).is_some()
    }

    /// Charges a greeting of `bytes` on the wire to the share of greetings, and to that of control.
    pub(super) fn charge_greeting(&mut self, now: Instant, bytes: u64) {
        self.hops.greetings.handle_sent(now, &self.pacer.wire, bytes);
        let released = self.turn.released(now);
        self.turn.paid_at = released + self.pacer.wire.time_of(bytes).mul_div(CONTROL_SHARE, 1);
        self.turn.waits_since = None;
        self.pacer.handle_control(now, bytes);
    }

    /// Returns the deadline of the next contracted content; `None` if the next content has no contract or no
    /// deadline.
    pub(super) fn promised_due(&mut self, now: Instant) -> Option<Instant> {
        let due = match self.next_work(now)?.1 {
            Next::Head(index) if self.streams.is_promised(index) => {
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
            ControlRoom::Frame => self.put_control(now, node, self.pacer.wire.limit(), out),
        }
    }

    /// Puts a piece of control into a frame. The next piece is released after 20 times its transmission time.
    fn put_control_piece(&mut self, now: Instant, node: NodeId, out: &mut FrameBuf) {
        let before = out.len();
        let released = self.turn.released(now);
        let piece =
            usize::try_from(off_wire(self.pacer.wire.control_piece())).unwrap_or(usize::MAX);
        self.put_control(now, node, self.pacer.wire.limit().min(before.saturating_add(piece)), out);
        if out.len() > before {
            let time = self.pacer.wire.time_of(on_wire((out.len() - before) as u64));
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
        let Some(neighbour) = self.hops.get_mut(node) else { return };
        if !neighbour.may_send_control(now) || now < self.pacer.control_ready_at() {
            return;
        }
        let before = out.len();
        if neighbour.hop.is_lossy() {
            neighbour.put_parts(limit, out, &mut self.items);
        } else {
            neighbour.put_messages(limit, out);
        }
        let control = (out.len() - before) as u64;
        if control > 0 {
            self.turn.waits_since = None;
            self.pacer.handle_control(now, on_wire(control));
            self.hops.charge_control(node, control);
        }
    }
}
