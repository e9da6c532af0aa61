//! Packing of frames: the choice of the next segment and its length.

use super::contents::{Item, Notice, Piece};
use super::control::ControlRoom;
use super::hops::{Neighbour, window_bytes};
use super::limits::Limits;
use super::pacing::{PIECE_MIN, spent};
use super::retransmit::Next;
use super::stream::Stream;
use super::{Link, StreamIndex};
use crate::carrier::{off_wire, on_wire};
use crate::ids::NodeId;
use crate::retransmit::Retransmit;
use crate::sample::RawSample;
use crate::wire::frame::{Echo, FrameBuf, FrameHeader};
use crate::wire::segment::{
    DataHead, OPEN_BYTES_MAX, OPEN_MENDED_BYTES_MAX, SampleHead, write_abort, write_close,
    write_open,
};
use bytes::Bytes;
use paceline_sched::{Duration, Instant, Scheduler};

/// The safety margin before the deadline of a sample in a frame, as a fraction 1/`SLACK_PART` of a full
/// frame's time.
const SLACK_PART: u64 = 16;
/// The maximum size of a close or abort segment.
const NOTICE_BYTES_MAX: usize = 1 + 5 + 10;

/// The end of a sample: `end` bytes into the frame, with a segment charged as `spent` bytes.
struct Ends {
    end: usize,
    spent: u32,
}

impl Link {
    /// Builds the next frame in `out`, if one may leave at `now`, and returns its hop.
    ///
    /// The frame counts as sent. The caller keeps it until the transport has accepted it.
    pub fn poll_frame(&mut self, now: Instant, out: &mut FrameBuf) -> Option<NodeId> {
        out.clear();
        self.backlog.continue_turn(now);
        self.polled_at = now;
        self.open_gates(now);
        self.drop_missed(now);
        if let Some(node) = self.continue_train(now, out) {
            return Some(node);
        }
        if now < self.pacer.ready_at() {
            return None;
        }
        let control = self.next_control(now);
        let work = if control.is_none() { self.next_work(now) } else { None };
        let next = control.map(|(node, _)| node).or(work.map(|(node, _)| node));
        // A bare frame is short, so it is sent first, unless the next frame carries the same header.
        let greeted = self.hops.wants_greeting(now, &self.pacer.wire);
        let greeted = greeted.filter(|_| self.may_greet(now));
        if let Some(node) = self.hops.wants_bare_frame(now, next)
            && self.may_answer(now, next.is_some() || greeted.is_some())
        {
            self.fill_bare(now, node, out);
            return Some(node);
        }
        if let Some(node) = greeted {
            self.fill_bare(now, node, out);
            return Some(node);
        }
        let precedes = work.is_some_and(|(_, work)| self.streams.is_promised(work.stream()));
        if control.is_none()
            && !precedes
            && let Some(node) = self.begin_train(now, out)
        {
            return Some(node);
        }
        match next {
            Some(node) => self.fill(now, node, out, control.map(|(_, room)| room)),
            None if self.is_behind() => {}
            None => self.pacer.handle_idle(now),
        }
        next
    }

    /// Returns the stream of the next segment. Streams whose hop has no credit are suspended until it returns
    /// some, so they do not block other streams.
    pub(super) fn next_data(&mut self, now: Instant) -> Option<(NodeId, StreamIndex)> {
        // While misses remain, the picked sample may be one of them. Without credit on any hop, a pick would
        // use up a stream's schedule position for nothing.
        if self.is_behind() || !self.hops.any_has_credit(now, &self.pacer.wire) {
            return None;
        }
        loop {
            let index = self.discipline.pick(now)?;
            if self.streams.is_background(index) {
                if self.hops.background_room(now, &self.pacer).is_none() {
                    if now >= self.pacer.free_at() {
                        self.note_limited();
                    }
                    return None;
                }
            } else if self.hops.is_window_full(now, &self.pacer.wire) {
                self.note_limited();
                return None;
            }
            if self.expiry(now, index).is_some() {
                let dropped = self.drop_expired(now, index);
                self.backlog.note_dropped(dropped);
                if self.is_behind() {
                    return None;
                }
                continue;
            }
            if self.is_hopeless(now, index) {
                self.give_up_hopeless(now, index);
                if self.is_behind() {
                    return None;
                }
                continue;
            }
            // A copy that is behind catches up first, so that one frame can carry the rest for both.
            let picked = index;
            let index = self.behind(now, index).unwrap_or(index);
            let index = self.oldest(now, index);
            let node = self.streams.get(index)?.spec.hop;
            if self.hops.has_credit(now, node, &self.pacer.wire) {
                return Some((node, index));
            }
            self.note_limited();
            // The hop of a predecessor is that of the picked stream.
            let blocked = if self.streams.get(picked)?.spec.hop == node { picked } else { index };
            self.discipline.suspend(blocked);
            self.suspended.push(blocked);
            if let Some(stream) = self.streams.get_mut(blocked) {
                stream.suspended = true;
            }
        }
    }

    fn fill_bare(&mut self, now: Instant, node: NodeId, out: &mut FrameBuf) {
        let wire_time = self.time_to_send(now, on_wire(FrameHeader::UNSTAMPED_BYTES_MAX as u64));
        // As in `note_frame`.
        let wire_time = if self.measure.is_some() { Duration::ZERO } else { wire_time };
        let stamp = self.stamp(now);
        let Some(neighbour) = self.hops.get_mut(node) else { return };
        if neighbour.hop.is_up() && !neighbour.notices.is_empty() {
            self.fill(now, node, out, None);
            return;
        }
        let before = neighbour.hop.next_seq();
        FrameHeader { stamp, ..neighbour.hop.bare_header(now, wire_time) }.write(&mut out.head);
        let greets = !neighbour.hop.is_up();
        let seq = (neighbour.hop.next_seq() > before).then_some(before);
        let wire = self.pacer.wire.occupied(out.len() as u64);
        self.pacer.handle_sent(now, wire);
        if greets {
            self.answers.note_other();
            self.charge_greeting(now, wire);
        } else {
            self.answers.charge(now, self.pacer.wire.time_of(wire));
        }
        self.count_sent(node, wire);
        self.note_measured(now, (node, seq), (wire, false, false));
    }

    fn fill(
        &mut self,
        now: Instant,
        node: NodeId,
        out: &mut FrameBuf,
        control: Option<ControlRoom>,
    ) {
        let Some(neighbour) = self.hops.get(node) else { return };
        self.answers.note_other();
        self.items.clear();
        self.header(now, neighbour).write(&mut out.head);
        self.put_notices(node, out);
        if let Some(room) = control {
            self.put_control_first(now, (node, room), out);
        }
        let background = self.put_data(now, node, out, control.is_some());
        let others = out.group.as_ref().map_or(0, |group| group.others_bytes());
        let wire = self.pacer.wire.occupied((out.len() + others) as u64);
        let seq = self.hops.next_seq(node);
        let items = core::mem::take(&mut self.items);
        self.note_frame(now, (node, wire), items, &mut out.head);
        if let Some(group) = &mut out.group {
            self.note_group_frame(now, (node, wire), group);
        }
        if background {
            if let Some(neighbour) = self.hops.get_mut(node) {
                neighbour.hop.handle_background();
            }
            self.pacer.handle_background(now, wire);
        } else {
            self.pacer.handle_sent(now, wire);
        }
        self.count_sent(node, wire);
        self.note_measured(now, (node, seq), (wire, self.is_full(out), false));
    }

    /// Returns the stamp of a frame that is assembled `now`, if frames carry one.
    fn stamp(&self, now: Instant) -> Option<u32> {
        (self.stamps || self.proves).then(|| Echo::stamp_of(now))
    }

    /// Returns the header of the next frame with segments to a neighbour.
    pub(super) fn header(&self, now: Instant, neighbour: &Neighbour) -> FrameHeader {
        let transit = self.pacer.wire.capacity.map(|_| Duration::ZERO);
        let stamp = self.stamp(now);
        let echo = if self.proves { neighbour.hop.echo(now) } else { None };
        FrameHeader { ack_now: false, transit, stamp, echo, ..neighbour.hop.header() }
    }

    /// Returns the time until a frame of `wire` bytes has left, with the rest of its burst before it.
    fn time_to_send(&self, now: Instant, wire: u64) -> Duration {
        self.pacer.starts_at(now).since(now).saturating_add(self.pacer.wire.time_of(wire))
    }

    /// Records a frame that occupies `wire` bytes as sent to `node`, and completes its header in `head`.
    pub(super) fn note_frame(
        &mut self,
        now: Instant,
        (node, wire): (NodeId, u64),
        items: Vec<Item>,
        head: &mut [u8],
    ) {
        // With a capacity, a single frame may fill the window, so each frame requests an acknowledgement.
        let ask_every =
            if self.pacer.wire.is_paced() { 1 } else { window_bytes(&self.pacer.wire) / 3 };
        let wire_time = self.time_to_send(now, wire);
        // A frame leaves a measured link at once: its serial time is that of another network, and a part of the round trip.
        let serial = if self.measure.is_some() { Duration::ZERO } else { wire_time };
        let Some(neighbour) = self.hops.get_mut(node) else { return };
        FrameHeader::set_held(head, neighbour.hop.held_until(now, serial));
        FrameHeader::set_transit(head, neighbour.hop.transit(wire_time));
        if neighbour.hop.handle_sent(now, wire, ask_every, serial) {
            FrameHeader::ask_now(head);
        }
        neighbour.hop.note_items(items);
    }

    /// Fills the frame with segments. If the frame has no control yet (`controlled` is false), control
    /// follows the segments with a contract. Returns `true` if the frame carries only background segments.
    fn put_data(
        &mut self,
        now: Instant,
        node: NodeId,
        out: &mut FrameBuf,
        mut controlled: bool,
    ) -> bool {
        let mut limits = Limits::new(self.pacer.wire.limit());
        let (mut live, mut behind) = (false, false);
        let mut alone = None;
        loop {
            let next = self.next_work(now);
            if let Some((hop, Next::Head(index))) = next
                && hop == node
                && let Some(copies) = self.copies(now, index)
            {
                // The frame of a group has nothing else.
                if !controlled && self.items.is_empty() {
                    self.put_group(now, index, &copies, out);
                }
                break;
            }
            let promised = next.is_some_and(|(_, next)| self.streams.is_promised(next.stream()));
            if !controlled && !promised {
                if self.is_turn_of(now, node) {
                    self.put_control(now, node, limits.of(false), out);
                }
                controlled = true;
            }
            let Some((hop, next)) = next else { break };
            // A frame is delivered when its end arrives, so background segments would delay live ones.
            let background = self.streams.is_background(next.stream());
            if hop != node || live && background || !self.shares_frame(next.stream(), &mut alone) {
                break;
            }
            if background
                && !behind
                && let Some(room) = self.hops.background_room(now, &self.pacer)
            {
                limits.cut(usize::try_from(off_wire(room)).unwrap_or(usize::MAX));
            }
            let before = out.len();
            let shared = self.items.iter().any(Item::is_piece);
            let put = match next {
                Next::Head(index) => self.put_segment(now, index, &mut limits, out),
                Next::Repair(key) | Next::Before(key) | Next::Turn(key) => {
                    self.put_repair(now, key, limits.of(promised), out)
                }
            };
            if put {
                self.count_repair(now, next, (out.len() - before, shared));
            }
            if promised && !matches!(next, Next::Head(_)) {
                limits.cut_best_effort(0);
            }
            // A retransmitted piece is already late: do not let it wait for other segments of its frame.
            let urgent = matches!(next, Next::Repair(_) | Next::Before(_)) && !background;
            if !put || urgent && self.next_is_head(now) {
                break;
            }
            live |= !background;
            behind |= background;
        }
        behind && !live
    }

    /// Counts a frame for `node` that occupies `wire` bytes on the wire.
    pub(super) fn count_sent(&mut self, node: NodeId, wire: u64) {
        self.frames += 1;
        self.wire_bytes += wire;
        if let Some(neighbour) = self.hops.get_mut(node) {
            neighbour.hop.count_wire(wire);
        }
    }

    pub(super) fn room(&self, out: &FrameBuf) -> usize {
        self.pacer.wire.limit().saturating_sub(out.len())
    }

    fn put_notices(&mut self, node: NodeId, out: &mut FrameBuf) {
        let open = if self.hops.is_mended(node) { OPEN_MENDED_BYTES_MAX } else { 0 };
        while self.room(out) > NOTICE_BYTES_MAX + open {
            let Some(neighbour) = self.hops.get_mut(node) else { return };
            let Some(notice) = neighbour.notices.pop_front() else { return };
            if matches!(notice, Notice::Close(..)) {
                neighbour.note_close(notice);
            }
            self.open_before(node, notice, out);
            match notice {
                Notice::Close(stream, end) => write_close(stream, end, &mut out.head),
                Notice::Abort(stream, number) => write_abort(stream, number, &mut out.head),
            }
            self.note_notice(node, notice);
        }
    }

    /// Appends the next segment of a stream's head to the frame. Returns `false` if there is no room.
    ///
    /// `limits` bounds the frame's length. A sample that ends in the frame lowers the bound if later segments
    /// would make it miss its deadline.
    pub(super) fn put_segment(
        &mut self,
        now: Instant,
        index: StreamIndex,
        limits: &mut Limits,
        out: &mut FrameBuf,
    ) -> bool {
        self.put_piece(now, index, None, (limits, out))
    }

    /// Appends a piece of a stream's head to the frame: `exactly` so many bytes, or as many as fit.
    pub(super) fn put_piece(
        &mut self,
        now: Instant,
        index: StreamIndex,
        exactly: Option<usize>,
        (limits, out): (&mut Limits, &mut FrameBuf),
    ) -> bool {
        let Some(stream) = self.streams.get(index) else { return false };
        let Some(sample) = stream.head() else { return false };
        let mended = self.hops.is_mended(stream.spec.hop);
        let kept = stream.spec.retransmit != Retransmit::None;
        let (published_at, due) = (sample.published_at, self.repair_due(now, index, sample));
        let head = self.sample_head(now, stream, sample);
        let heads = self.heads_max(index, stream, &head);
        // A lost frame that opened the stream also contained the start of the sample, so only a complete
        // sample is of use.
        let opens = !mended && !stream.announced && !stream.head_begun;
        let (id, number, offset) = (stream.id, stream.number, stream.head_sent);
        let limit = limits.of(self.streams.is_promised(index));
        let space = exactly.unwrap_or_else(|| limit.saturating_sub(out.len() + heads));
        let left = stream.head_left();
        if exactly.is_none() && (space < left.min(PIECE_MIN) || space == 0) {
            return false;
        }
        let space = if exactly.is_none() { space.min(self.gap(index)) } else { space };
        let begun = stream.head_begun;
        let Some(stream) = self.streams.get_mut(index) else { return false };
        let Some((piece, last)) = stream.cut(space) else { return false };
        let end = out.len() + heads + piece.len();
        if opens {
            stream.announced = true;
            write_open(id, stream.spec.publisher, &stream.spec.form, &mut out.head);
        }
        if mended {
            self.put_open(index, out);
        }
        let len = piece.len();
        let spent = spent(left, len);
        if last {
            self.finish(now, index, Ends { end, spent }, limits);
        } else {
            let rest = self.pacer.wire.left(left - len);
            self.discipline.handle_segment(index, spent, rest);
        }
        let first = (!begun).then_some(&head);
        DataHead { stream: id, number, first, offset, last, len }.write(&mut out.head);
        if mended {
            // Without retransmission, only the fact that the piece was sent is recorded.
            let payload = if kept { piece.clone() } else { Bytes::new() };
            let (stream, head) = (index, first.filter(|_| kept).cloned());
            let piece =
                Piece { stream, id, number, head, published_at, offset, last, due, payload };
            self.items.push(Item::Piece(piece));
        }
        out.put_payload(piece);
        true
    }

    /// Returns the head of a sample in its first piece.
    pub(super) fn sample_head(&self, now: Instant, stream: &Stream, it: &RawSample) -> SampleHead {
        SampleHead {
            shift: it.shift,
            total: it.payload.len(),
            seq: it.seq,
            captured: it.captured,
            kind: it.kind,
            encoding: it.encoding.clone(),
            age: it.age(now),
            doubt: self.doubt_of(now, stream.spec.hop, it),
            attachment: it.attachment.clone(),
        }
    }

    /// Returns the size of everything in front of the next piece of a stream's head, at most.
    pub(super) fn heads_max(&self, index: StreamIndex, stream: &Stream, it: &SampleHead) -> usize {
        let first = (!stream.head_begun).then_some(it);
        let (id, number, offset) = (stream.id, stream.number, stream.head_sent);
        let data = DataHead { stream: id, number, first, offset, last: false, len: 0 };
        let open = if self.hops.is_mended(stream.spec.hop) {
            self.open_bytes(index)
        } else if !stream.announced && !stream.head_begun {
            OPEN_BYTES_MAX
        } else {
            0
        };
        data.bytes_max() + open
    }

    /// Returns the doubt about a sample's age, if it is known and the frame proves its own transit time.
    fn doubt_of(&self, now: Instant, hop: NodeId, sample: &RawSample) -> Option<Duration> {
        let doubt = Some(sample.doubt).filter(|doubt| *doubt < RawSample::UNPROVEN);
        doubt.filter(|_| self.hops.get(hop).is_some_and(|it| it.hop.echo(now).is_some()))
    }

    /// Completes the head of a stream.
    fn finish(&mut self, now: Instant, index: StreamIndex, ends: Ends, limits: &mut Limits) {
        let Ends { end, spent } = ends;
        let starts = self.pacer.starts_at(now);
        let ends = starts + self.pacer.wire.time_of(on_wire(end as u64));
        // Header sizes are upper bounds here. A sample that seems to end late because of them waits for no
        // other either.
        let due = self.discipline.deadline(index);
        // The receiver knows the sample's age only approximately: one that ends just in time might count as
        // late there.
        let slack = || self.pacer.wire.frame_time().mul_div(1, SLACK_PART);
        let time = due.map(|due| due.since(starts).saturating_sub(slack()));
        if let Some(most) = time.and_then(|time| self.pacer.wire.frame_within(time)) {
            limits.cut(most.max(end));
        }
        if self.streams.is_promised(index) {
            limits.cut_best_effort(self.shared_bytes(now, index));
        }
        let node = self.streams.get(index).map(|stream| stream.spec.hop);
        let frame = node.and_then(|node| self.hops.next_seq(node));
        let newer = self.overtaking(index);
        self.count_leaving(index);
        if let Some(stream) = self.streams.get_mut(index) {
            stream.finish_head(ends);
            stream.last_frame = frame;
        }
        let (served, next) = ((spent, ends), self.following_head(now, index));
        let follows = next.is_some();
        let service = self.discipline.handle_served_and_next(index, served, next);
        if follows {
            self.announce_length(index);
        }
        if self.streams.get(index).is_some_and(Stream::head_is_demoted) {
            self.announce_head(now, index);
        }
        if let Some(stream) = self.streams.get_mut(index) {
            stream.counters.late += u64::from(!service.on_time);
            if !service.on_time {
                stream.note_miss();
            }
            stream.count_violation(service.violated);
        }
        if let Some(seq) = newer {
            self.overtake(index, seq);
        }
    }
}
