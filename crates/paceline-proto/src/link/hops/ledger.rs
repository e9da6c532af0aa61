//! The frames in flight to a hop whose carrier may lose them, with their contents.
//!
//! A frame's number is never reused: retransmitted contents are sent in another frame. So a number that is
//! missing at the receiver proves only that this frame has not arrived.

use super::losses::Losses;
use crate::link::contents::{Item, Piece};
use crate::wire::ack::{Ack, DISTINGUISHED};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// A frame this far behind the newest one is settled, before the receiver cannot distinguish it any more.
const SETTLED: u64 = DISTINGUISHED - 4;
/// The maximum distance from the oldest unacknowledged frame to the next frame with segments. The rest of the
/// range is for bare frames.
const FRAMES_MAX: u64 = DISTINGUISHED - 12;
/// A lost frame is remembered until one sent this number of frames later has arrived, so that its late arrival is noticed.
const REMEMBERED: u64 = 512;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Waits,
    Arrived,
    Lost,
}

#[derive(Debug)]
struct Sent {
    seq: u64,
    bytes: u64,
    /// The time at which it has left the wire here.
    left: Instant,
    background: bool,
    /// It went to a multicast group.
    grouped: bool,
    /// It went to a multicast group, and another hop counts its bytes.
    counted_elsewhere: bool,
    state: State,
    /// An acknowledgement has shown that a later frame arrived before it.
    overtaken: bool,
    items: Vec<Item>,
}

/// Counters of frames that were declared lost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Fates {
    /// Frames that were declared lost.
    pub lost: u64,
    /// Frames declared lost that had arrived, as far as acknowledgements show.
    pub mistaken: u64,
}

/// The frames in flight to a hop, and the contents to send again.
#[derive(Debug, Default)]
pub(in crate::link) struct Ledger {
    sent: VecDeque<Sent>,
    next_seq: u64,
    /// No frame before this one waits for its acknowledgement.
    oldest: u64,
    waiting: usize,
    /// One more than the newest frame that has arrived.
    arrived_end: u64,
    bytes: u64,
    background: u64,
    /// The time of the first frame sent since the last acknowledgement.
    unanswered: Option<Instant>,
    losses: Losses,
    lost: Vec<Item>,
    opened: Vec<Item>,
    fates: Fates,
    /// The frames to multicast groups that were lost since one arrived.
    group_losses: u32,
}

impl Ledger {
    /// Returns the number of frames to multicast groups that were lost since one arrived.
    pub(in crate::link) const fn group_losses(&self) -> u32 {
        self.group_losses
    }

    /// Forgets the lost frames to multicast groups.
    pub(in crate::link) const fn forget_group_losses(&mut self) {
        self.group_losses = 0;
    }

    /// Returns the bytes in flight, and those of them in background frames.
    pub(in crate::link) const fn flight(&self) -> (u64, u64) {
        (self.bytes, self.background)
    }

    pub(in crate::link) const fn fates(&self) -> Fates {
        self.fates
    }

    /// Returns the number of unacknowledged frames.
    pub(in crate::link) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the index of the first frame that may wait.
    fn first(&self) -> usize {
        let front = self.sent.front().map_or(self.next_seq, |sent| sent.seq);
        usize::try_from(self.oldest.saturating_sub(front)).unwrap_or(usize::MAX)
    }

    /// Iterates over the frames that wait for their acknowledgement, in the order of departure.
    fn all_waiting(&self) -> impl Iterator<Item = &Sent> {
        let waits = |sent: &&Sent| sent.state == State::Waits;
        self.sent.range(self.first().min(self.sent.len())..).filter(waits)
    }

    /// Returns the number of unacknowledged frames that left more than `trip` ago.
    pub(in crate::link) fn overdue(&self, now: Instant, trip: Duration) -> usize {
        self.overdue_frames(now, trip).count()
    }

    /// Returns the bytes of unacknowledged live frames that left more than `trip` ago.
    pub(in crate::link) fn overdue_bytes(&self, now: Instant, trip: Duration) -> u64 {
        let live = self.overdue_frames(now, trip);
        let live = live.filter(|sent| !sent.background && !sent.counted_elsewhere);
        live.map(|sent| sent.bytes).sum()
    }

    fn overdue_frames(&self, now: Instant, trip: Duration) -> impl Iterator<Item = &Sent> {
        self.all_waiting().take_while(move |it| it.left + trip < now)
    }

    fn oldest_waiting(&self) -> Option<u64> {
        self.all_waiting().next().map(|sent| sent.seq)
    }

    /// Returns `true` if a frame with segments may be sent. The range of an acknowledgement is bounded.
    pub(in crate::link) fn has_room(&self) -> bool {
        self.oldest_waiting().is_none_or(|oldest| self.next_seq - oldest < FRAMES_MAX)
    }

    /// Returns `true` if the frame `seq` and all earlier ones have arrived or are lost.
    pub(in crate::link) fn has_settled(&self, seq: u64) -> bool {
        self.oldest_waiting().is_none_or(|oldest| oldest > seq)
    }

    /// Returns the time since the first frame that was sent after the last acknowledgement.
    pub(in crate::link) fn unanswered_for(&self, now: Instant) -> Duration {
        self.unanswered.map_or(Duration::ZERO, |since| now.since(since))
    }

    pub(in crate::link) const fn is_unanswered(&self) -> bool {
        self.unanswered.is_some()
    }

    /// Returns the longest time to wait for an acknowledgement.
    pub(in crate::link) fn patience(&self, now: Instant) -> Duration {
        self.losses.silent_for(now)
    }

    /// Records frame `seq` with `bytes` on the wire, which occupies the wire until `left`.
    pub(in crate::link) fn note_sent(&mut self, now: Instant, seq: u64, bytes: u64, left: Instant) {
        let (state, items) = (State::Waits, Vec::new());
        let (background, overtaken) = (false, false);
        let (grouped, counted_elsewhere) = (false, false);
        self.sent.push_back(Sent {
            seq,
            bytes,
            left,
            background,
            grouped,
            counted_elsewhere,
            state,
            overtaken,
            items,
        });
        self.next_seq = seq + 1;
        self.waiting += 1;
        self.bytes += bytes;
        self.unanswered = self.unanswered.or(Some(now));
        self.forget();
    }

    /// Records the contents of the last sent frame.
    pub(in crate::link) fn note_items(&mut self, items: Vec<Item>) {
        if let Some(newest) = self.sent.back_mut() {
            newest.items = items;
        }
    }

    /// Marks the last sent frame as one that carries only background streams.
    pub(in crate::link) fn note_background(&mut self) {
        if let Some(newest) = self.sent.back_mut().filter(|newest| !newest.background) {
            newest.background = true;
            self.background += newest.bytes;
        }
    }

    /// Marks the last sent frame as one to a multicast group, whose bytes another hop counts if `elsewhere`.
    pub(in crate::link) fn note_group(&mut self, elsewhere: bool) {
        if let Some(newest) = self.sent.back_mut() {
            (newest.grouped, newest.counted_elsewhere) = (true, elsewhere);
            self.bytes -= if elsewhere { newest.bytes } else { 0 };
        }
    }

    /// Processes an acknowledgement. If it yields a round-trip sample, returns the frame's bytes on the wire
    /// and its departure time.
    pub(in crate::link) fn handle_ack(&mut self, now: Instant, ack: Ack) -> Option<(u64, Instant)> {
        self.unanswered = None;
        let end = ack.end().min(self.next_seq);
        let newer = end > self.arrived_end;
        let mut measured = None;
        for sent in self.sent.iter_mut().take_while(|sent| sent.seq < end) {
            if !ack.covers(sent.seq) {
                sent.overtaken |= ack.lacks(sent.seq);
                continue;
            }
            // Older frames count as received although the receiver does not distinguish them.
            let known = sent.seq + SETTLED >= end;
            if sent.state == State::Arrived || sent.state == State::Lost && !known {
                continue;
            }
            if sent.overtaken && known {
                self.losses.note_reordered(now, now.since(sent.left));
            }
            // A frame that was declared lost too early counts too; otherwise the estimate would never grow.
            if newer && sent.seq + 1 == end && known {
                measured = Some((sent.bytes, sent.left));
            }
            if sent.grouped {
                self.group_losses = 0;
            }
            if sent.state == State::Lost {
                self.fates.mistaken += 1;
            } else {
                self.waiting -= 1;
                self.bytes -= if sent.counted_elsewhere { 0 } else { sent.bytes };
                self.background -= if sent.background { sent.bytes } else { 0 };
                self.losses.note_progress();
                let opens = |item: &Item| matches!(item, Item::Open(..));
                self.opened.extend(core::mem::take(&mut sent.items).into_iter().filter(opens));
            }
            sent.state = State::Arrived;
        }
        self.arrived_end = self.arrived_end.max(end);
        if let Some((_, left)) = measured {
            self.losses.note_trip(now.since(left));
        }
        self.forget();
        self.detect(now);
        measured
    }

    /// Declares frames lost according to the rules in `losses.rs`.
    pub(in crate::link) fn detect(&mut self, now: Instant) {
        let later = self.losses.later_frames(now);
        let mut silent = false;
        let end = self.sent.len();
        for at in self.first().min(end)..end {
            let Some(sent) = self.sent.get(at).filter(|sent| sent.state == State::Waits) else {
                continue;
            };
            let overtaken = sent.overtaken;
            let passed =
                later.is_some_and(|later| overtaken && sent.seq + later < self.arrived_end);
            let unknown = sent.seq + SETTLED < self.next_seq;
            if !passed && !unknown && now < self.lost_at(now, sent) {
                // Later frames left later.
                if sent.seq >= self.arrived_end {
                    break;
                }
                continue;
            }
            silent |= !overtaken;
            let Some(sent) = self.sent.get_mut(at) else { continue };
            sent.state = State::Lost;
            self.waiting -= 1;
            self.bytes -= if sent.counted_elsewhere { 0 } else { sent.bytes };
            self.background -= if sent.background { sent.bytes } else { 0 };
            self.fates.lost += 1;
            self.group_losses += u32::from(sent.grouped);
            self.lost.append(&mut sent.items);
        }
        if silent {
            self.losses.note_silence(now);
        }
        self.forget();
    }

    fn lost_at(&self, now: Instant, sent: &Sent) -> Instant {
        if sent.overtaken {
            sent.left + self.losses.overtaken_for(now)
        } else {
            sent.left + self.losses.silent_for(now)
        }
    }

    /// Takes all pieces of a stream in flight for retransmission: after a gap, the receiver accepted none of
    /// them.
    pub(in crate::link) fn take_back(&mut self, stream: StreamIndex) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let from = self.first().min(self.sent.len());
        for sent in self.sent.range_mut(from..).filter(|sent| sent.state == State::Waits) {
            let its = |item: &Item| matches!(item, Item::Piece(piece) if piece.stream == stream);
            let (taken, left) = core::mem::take(&mut sent.items).into_iter().partition(its);
            sent.items = left;
            let taken: Vec<Item> = taken;
            pieces.extend(taken.into_iter().filter_map(Item::into_piece));
        }
        pieces
    }

    /// Returns the time at which [`Self::detect`] finds a loss if no acknowledgement arrives.
    pub(in crate::link) fn next_loss(&self, now: Instant) -> Instant {
        // Of the frames that no later one has overtaken, the first is lost first.
        let overtaken = self.all_waiting().take_while(|sent| sent.seq < self.arrived_end);
        let next = self.all_waiting().find(|sent| !sent.overtaken);
        let first = overtaken.chain(next).map(|sent| self.lost_at(now, sent)).min();
        first.unwrap_or(Instant::FAR)
    }

    /// Takes the lost contents in sending order, and the announcements that arrived.
    pub(in crate::link) fn take(&mut self) -> (Vec<Item>, Vec<Item>) {
        (core::mem::take(&mut self.lost), core::mem::take(&mut self.opened))
    }

    /// Returns `true` if [`Self::take`] returns anything.
    pub(in crate::link) const fn has_news(&self) -> bool {
        !self.lost.is_empty() || !self.opened.is_empty()
    }

    /// Forgets settled frames about which nothing new matters.
    fn forget(&mut self) {
        self.oldest = self.oldest_waiting().unwrap_or(self.next_seq);
        let arrived = self.arrived_end;
        let over = |sent: &Sent| match sent.state {
            State::Waits => false,
            State::Arrived => true,
            State::Lost => sent.seq + REMEMBERED < arrived,
        };
        while self.sent.front().is_some_and(over) {
            self.sent.pop_front();
        }
    }
}
