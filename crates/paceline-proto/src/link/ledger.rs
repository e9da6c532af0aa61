//! The frames of a hop whose carrier may lose them: what each carried, until it arrived or is lost.
//!
//! A frame's number is never used twice: what is sent again goes in another frame. So a number that is
//! missing at the other end stays missing there, and says nothing but that.

use super::Notice;
use super::losses::Losses;
use crate::wire::frame::Ack;
use crate::wire::segment::SampleHead;
use bytes::Bytes;
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// An acknowledgement tells of 64 frames behind its first gap. What is this far behind the newest frame
/// has to be settled before it falls out of there.
const TOLD_OF: u64 = 60;
/// So many frames may lie between the oldest one that waits and the next one with segments: bare frames
/// need room too.
const FRAMES_MAX: u64 = 52;

/// A piece of a sample that was sent.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) stream: StreamIndex,
    /// The stream's number on the wire, so that its successor is not taken for it.
    pub(super) id: u32,
    /// The sample's number on the stream.
    pub(super) number: u64,
    /// The sample's head, for its first piece.
    pub(super) head: Option<SampleHead>,
    /// When the sample's age was zero.
    pub(super) born: Instant,
    pub(super) offset: usize,
    pub(super) last: bool,
    /// When it must have arrived to be worth anything.
    pub(super) due: Instant,
    pub(super) payload: Bytes,
}

/// A piece of a control message that was sent.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) number: u64,
    pub(super) total: usize,
    pub(super) offset: usize,
    pub(super) payload: Bytes,
}

/// Something that a frame carried, and that has to be said again if the frame is lost.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Piece(Piece),
    /// What a stream is: by its index, its number on the wire, and which time it was said.
    Open(StreamIndex, u32, u32),
    Notice(Notice),
    Part(Part),
}

impl Item {
    pub(super) const fn is_piece(&self) -> bool {
        matches!(self, Self::Piece(_))
    }

    fn into_piece(self) -> Option<Piece> {
        if let Self::Piece(piece) = self { Some(piece) } else { None }
    }
}

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
    /// When it has left the wire here.
    left: Instant,
    background: bool,
    state: State,
    /// A later one has arrived before it.
    overtaken: bool,
    items: Vec<Item>,
}

/// What has become of the frames of a hop.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Fates {
    /// Frames that were taken for lost.
    pub lost: u64,
    /// Those of them that had arrived all the same, as far as is known.
    pub mistaken: u64,
}

/// What is in flight to a hop, and what has to be said again.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    sent: VecDeque<Sent>,
    next_seq: u64,
    /// One more than the newest frame that has arrived.
    arrived_end: u64,
    bytes: u64,
    background: u64,
    /// When the first frame was sent that nothing has been heard since.
    unanswered: Option<Instant>,
    losses: Losses,
    lost: Vec<Item>,
    opened: Vec<Item>,
    fates: Fates,
}

impl Ledger {
    /// Bytes in flight, and those of them that are of the background.
    pub(super) const fn flight(&self) -> (u64, u64) {
        (self.bytes, self.background)
    }

    pub(super) const fn fates(&self) -> Fates {
        self.fates
    }

    /// Frames that wait for their acknowledgement.
    pub(super) fn waiting(&self) -> usize {
        self.sent.iter().filter(|sent| sent.state == State::Waits).count()
    }

    /// Those that left more than `trip` ago.
    pub(super) fn overdue(&self, now: Instant, trip: Duration) -> usize {
        self.overdue_frames(now, trip).count()
    }

    /// The bytes of those that left more than `trip` ago and are not of the background.
    pub(super) fn overdue_bytes(&self, now: Instant, trip: Duration) -> u64 {
        let live = self.overdue_frames(now, trip).filter(|sent| !sent.background);
        live.map(|sent| sent.bytes).sum()
    }

    fn overdue_frames(&self, now: Instant, trip: Duration) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(move |it| it.state == State::Waits && it.left + trip < now)
    }

    fn oldest_waiting(&self) -> Option<u64> {
        self.sent.iter().find(|sent| sent.state == State::Waits).map(|sent| sent.seq)
    }

    /// True if a frame with segments may be sent: what an acknowledgement tells of is bounded.
    pub(super) fn has_room(&self) -> bool {
        self.oldest_waiting().is_none_or(|oldest| self.next_seq - oldest < FRAMES_MAX)
    }

    /// True if the frame `seq`, and every one before it, has arrived or is lost.
    pub(super) fn has_settled(&self, seq: u64) -> bool {
        self.oldest_waiting().is_none_or(|oldest| oldest > seq)
    }

    /// How long nothing has been heard although something was sent.
    pub(super) fn unanswered_for(&self, now: Instant) -> Duration {
        self.unanswered.map_or(Duration::ZERO, |since| now.since(since))
    }

    pub(super) const fn is_unanswered(&self) -> bool {
        self.unanswered.is_some()
    }

    /// How long an answer may take.
    pub(super) fn patience(&self, now: Instant) -> Duration {
        self.losses.silent_for(now)
    }

    /// Frame `seq` of `bytes` on the wire was sent, and keeps the wire busy until `left`.
    pub(super) fn note_sent(&mut self, now: Instant, seq: u64, bytes: u64, left: Instant) {
        let (state, items) = (State::Waits, Vec::new());
        let (background, overtaken) = (false, false);
        self.sent.push_back(Sent { seq, bytes, left, background, state, overtaken, items });
        self.next_seq = seq + 1;
        self.bytes += bytes;
        self.unanswered = self.unanswered.or(Some(now));
        self.forget();
    }

    /// What the frame that was sent last carries.
    pub(super) fn note_items(&mut self, items: Vec<Item>) {
        if let Some(newest) = self.sent.back_mut() {
            newest.items = items;
        }
    }

    /// The frame that was sent last carries nothing that is live.
    pub(super) fn note_background(&mut self) {
        if let Some(newest) = self.sent.back_mut().filter(|newest| !newest.background) {
            newest.background = true;
            self.background += newest.bytes;
        }
    }

    /// Takes note of what has arrived. Returns the frame whose round trip that measures, if it does: its
    /// bytes on the wire, and when they had left.
    pub(super) fn handle_ack(&mut self, now: Instant, ack: Ack) -> Option<(u64, Instant)> {
        self.unanswered = None;
        let end = ack.end().min(self.next_seq);
        let newer = end > self.arrived_end;
        let mut measured = None;
        for sent in self.sent.iter_mut().take_while(|sent| sent.seq < end) {
            let came = ack.covers(sent.seq);
            if !came {
                sent.overtaken = true;
                continue;
            }
            // Of what is further behind the acknowledgement does not tell what came.
            let told = sent.seq + TOLD_OF >= end;
            let took = now.since(sent.left);
            if sent.overtaken && told && sent.state != State::Arrived {
                self.losses.note_reordered(now, took);
            }
            // Also one that was given up too soon: else nobody would ever learn how long it takes.
            if newer && sent.seq + 1 == end && told && sent.state != State::Arrived {
                measured = Some((sent.bytes, sent.left));
            }
            match sent.state {
                State::Arrived => {}
                State::Lost if told => {
                    sent.state = State::Arrived;
                    self.fates.mistaken += 1;
                }
                State::Lost => {}
                State::Waits => {
                    sent.state = State::Arrived;
                    self.bytes -= sent.bytes;
                    self.background -= if sent.background { sent.bytes } else { 0 };
                    self.losses.note_progress();
                    let opens = |item: &Item| matches!(item, Item::Open(..));
                    self.opened.extend(core::mem::take(&mut sent.items).into_iter().filter(opens));
                }
            }
        }
        self.arrived_end = self.arrived_end.max(end);
        if let Some((_, left)) = measured {
            self.losses.note_trip(now.since(left));
        }
        self.forget();
        self.detect(now);
        measured
    }

    /// Finds what is lost by now.
    pub(super) fn detect(&mut self, now: Instant) {
        let later = self.losses.later_frames(now);
        let mut silent = false;
        for at in 0..self.sent.len() {
            let Some(sent) = self.sent.get(at).filter(|sent| sent.state == State::Waits) else {
                continue;
            };
            let overtaken = sent.seq < self.arrived_end;
            let passed = later.is_some_and(|later| sent.seq + later < self.arrived_end);
            let untold = sent.seq + TOLD_OF < self.next_seq;
            if !passed && !untold && now < self.lost_at(now, sent) {
                continue;
            }
            silent |= !overtaken;
            let Some(sent) = self.sent.get_mut(at) else { continue };
            sent.state = State::Lost;
            self.bytes -= sent.bytes;
            self.background -= if sent.background { sent.bytes } else { 0 };
            self.fates.lost += 1;
            self.lost.append(&mut sent.items);
        }
        if silent {
            self.losses.note_silence(now);
        }
    }

    fn lost_at(&self, now: Instant, sent: &Sent) -> Instant {
        if sent.seq < self.arrived_end {
            sent.left + self.losses.overtaken_for(now)
        } else {
            sent.left + self.losses.silent_for(now)
        }
    }

    /// Every piece of a stream that is in flight, to be sent again: behind a gap none was taken.
    pub(super) fn take_back(&mut self, stream: StreamIndex) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for sent in self.sent.iter_mut().filter(|sent| sent.state == State::Waits) {
            let its = |item: &Item| matches!(item, Item::Piece(piece) if piece.stream == stream);
            let (taken, left) = core::mem::take(&mut sent.items).into_iter().partition(its);
            sent.items = left;
            let taken: Vec<Item> = taken;
            pieces.extend(taken.into_iter().filter_map(Item::into_piece));
        }
        pieces
    }

    /// When [`Self::detect`] finds something if nothing is heard before.
    pub(super) fn next_loss(&self, now: Instant) -> Instant {
        let waiting = self.sent.iter().filter(|sent| sent.state == State::Waits);
        waiting.map(|sent| self.lost_at(now, sent)).min().unwrap_or(Instant::FAR)
    }

    /// What was lost, in the order in which it was sent; and the opens that arrived.
    pub(super) fn take(&mut self) -> (Vec<Item>, Vec<Item>) {
        (core::mem::take(&mut self.lost), core::mem::take(&mut self.opened))
    }

    /// True if [`Self::take`] has anything.
    pub(super) const fn has_news(&self) -> bool {
        !self.lost.is_empty() || !self.opened.is_empty()
    }

    /// Frames of which no acknowledgement tells anything new are over.
    fn forget(&mut self) {
        let next = self.next_seq;
        let over = |sent: &Sent| {
            sent.state == State::Arrived || sent.state == State::Lost && sent.seq + TOLD_OF < next
        };
        while self.sent.front().is_some_and(over) {
            self.sent.pop_front();
        }
    }
}
