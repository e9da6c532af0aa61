//! A next hop: handshake, liveness, what is in flight to it.

use super::carrier::Carrier;
use super::ledger::{Fates, Item, Ledger};
use super::transit::Transit;
use super::trips::Trips;
use crate::receive::Heard;
use crate::wire::frame::{Ack, FrameHeader};
use paceline_sched::{Duration, Instant};
use std::collections::VecDeque;

/// How often a hop is probed when nothing else is sent to it.
pub(super) const PROBE_EVERY: Duration = Duration::from_millis(500);
/// How often a hop is greeted until both ends know each other's epoch.
pub(super) const GREET_EVERY: Duration = Duration::from_millis(100);
/// A hop that was silent for this long is down.
pub(super) const SILENCE_MAX: Duration = Duration::from_millis(1_800);
/// A hop that is not up and was silent for this long is forgotten.
pub(super) const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);
/// Of so many frames in a row one asks for an answer, however short they are: the window is a number of
/// frames too, and small samples would fill it before anybody asked.
const ASK_EVERY_FRAMES: usize = super::WINDOW_FRAMES / 3;
/// How long sent frames may wait for an acknowledgement before one is asked for again, where each
/// frame asks at once and the next may wait for the answer, and where few ask.
const ASK_AGAIN_SOON: Duration = Duration::from_millis(25);
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// A hop whose oldest frame waits for longer than this is stalled: it no longer counts against what
/// the link may have in flight, and gets nothing until it answers.
const STALLED_AFTER: Duration = Duration::from_millis(150);

/// What a hop's state asks the link to do next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HopChange {
    /// Both ends know each other: streams may start.
    Up,
    /// The other end is silent, or has started anew: what it knew of our streams is lost.
    Down,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    seq: u64,
    bytes: u64,
    sent: Instant,
    /// Asked for an answer at once, so its round trip is worth measuring.
    asked: bool,
    /// Carries nothing that is live.
    background: bool,
    /// Bytes that it takes of the transport's batches at most.
    room: u64,
}

/// One next hop of a link.
#[derive(Debug)]
pub struct Hop {
    epoch: u32,
    known: u32,
    up: bool,
    next_seq: u64,
    flight: VecDeque<InFlight>,
    flight_bytes: u64,
    background_bytes: u64,
    /// Bytes that the frames in flight take of the transport's batches at most.
    flight_room: u64,
    /// What a batch of the transport holds.
    batch_bytes: u64,
    unasked_bytes: u64,
    unasked_frames: usize,
    last_ask: Instant,
    last_heard: Instant,
    last_sent: Instant,
    owed: Option<Ack>,
    /// What is owed has not been said yet.
    owes: bool,
    owe_now: bool,
    /// When the newest frame came that is owed for.
    owed_since: Instant,
    trips: Trips,
    transit: Transit,
    /// Bytes sent to it since it was found, as they count on the wire.
    wire_bytes: u64,
    paced: bool,
    ask_again: Duration,
    /// Where frames may be lost: what is in flight, in place of [`Self::flight`].
    ledger: Option<Box<Ledger>>,
}

impl Hop {
    /// A hop that was found at `now`; `epoch` must be higher than that of any earlier hop to the same
    /// node. A `paced` hop is one of a link with a capacity.
    #[must_use]
    pub fn new(now: Instant, epoch: u32, paced: bool) -> Self {
        Self {
            epoch: epoch.max(1),
            known: 0,
            up: false,
            next_seq: 0,
            flight: VecDeque::new(),
            flight_bytes: 0,
            background_bytes: 0,
            flight_room: 0,
            batch_bytes: Carrier::Ordered.frame_bytes_max(),
            unasked_bytes: 0,
            unasked_frames: 0,
            last_ask: Instant::ZERO,
            last_heard: now,
            last_sent: Instant::ZERO,
            owed: None,
            owes: false,
            owe_now: false,
            owed_since: now,
            trips: Trips::new(),
            transit: Transit::new(),
            wire_bytes: 0,
            paced,
            ask_again: if paced { ASK_AGAIN_SOON } else { ASK_AGAIN },
            ledger: None,
        }
    }

    /// Returns `true` if its frames may be lost, so that lost segments are sent again.
    #[must_use]
    pub const fn is_lossy(&self) -> bool {
        self.ledger.is_some()
    }

    /// From now on its frames may be lost.
    pub(super) fn expect_loss(&mut self) {
        self.ledger.get_or_insert_default();
    }

    pub(super) fn ledger(&mut self) -> Option<&mut Ledger> {
        self.ledger.as_deref_mut()
    }

    /// What became of frames that were taken for lost, where they are mended.
    #[must_use]
    pub fn fates(&self) -> Fates {
        self.ledger.as_ref().map(|ledger| ledger.fates()).unwrap_or_default()
    }

    /// True if a frame with segments may be sent, as far as acknowledgements can tell of it.
    pub(super) fn can_be_told(&self) -> bool {
        self.ledger.as_ref().is_none_or(|ledger| ledger.has_room())
    }

    /// When frames of this hop turn out to be lost if nothing is heard before.
    pub(super) fn next_loss(&self, now: Instant) -> Instant {
        self.ledger.as_ref().map_or(Instant::FAR, |ledger| ledger.next_loss(now))
    }

    /// Our epoch: what the other end must know before its numbered frames count.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// True while both ends know each other.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// Bytes sent and not yet acknowledged.
    #[must_use]
    pub fn flight_bytes(&self) -> u64 {
        self.ledger.as_ref().map_or(self.flight_bytes, |ledger| ledger.flight().0)
    }

    /// Those of them that are of frames in the background.
    #[must_use]
    pub fn background_bytes(&self) -> u64 {
        self.ledger.as_ref().map_or(self.background_bytes, |ledger| ledger.flight().1)
    }

    /// Frames sent and not yet acknowledged.
    #[must_use]
    pub fn flight_frames(&self) -> usize {
        self.ledger.as_ref().map_or(self.flight.len(), |ledger| ledger.waiting())
    }

    /// Frames that may wait in queues below us. On a link with a capacity those that were sent within the last
    /// round trip do not: they are on their way, and of a long one there are many.
    #[must_use]
    pub fn overdue_frames(&self, now: Instant) -> usize {
        let Some(trip) = self.least_round_trip().filter(|_| self.paced) else {
            return self.flight_frames();
        };
        let trip = trip.saturating_add(self.trips.longest_held());
        match &self.ledger {
            Some(ledger) => ledger.overdue(now, trip),
            None => self.flight.partition_point(|frame| frame.sent + trip < now),
        }
    }

    /// Bytes in flight that left more than `trip` ago, where frames may be lost; but for what is in the background.
    pub(super) fn overdue_bytes(&self, now: Instant, trip: Duration) -> u64 {
        self.ledger.as_ref().map_or(0, |ledger| ledger.overdue_bytes(now, trip))
    }

    /// Sets the bytes that a batch of the transport holds.
    pub(super) const fn set_batch_bytes(&mut self, bytes: u64) {
        self.batch_bytes = bytes;
    }

    /// Bytes that frames take of the transport's batches at most, as long as the transport may still hold them. On a
    /// link with a capacity the frames of the last round trip are on the wire, unless the transport's thread gets no
    /// processor time.
    fn queued_room(&self, now: Instant) -> u64 {
        let Some(trip) = self.least_round_trip().filter(|_| self.paced) else {
            return self.flight_room;
        };
        let recent = self.flight.iter().rev().take_while(|frame| frame.sent + trip >= now);
        self.flight_room.saturating_sub(recent.map(|frame| frame.room).sum())
    }

    /// Returns `true` if the transport's queue has room for one more frame of any length. Where frames may be lost it
    /// need not: a frame that finds no room is sent again.
    pub(super) fn has_queue_room(&self, now: Instant) -> bool {
        let most = super::WINDOW_FRAMES as u64 * self.batch_bytes;
        self.ledger.is_some() || self.queued_room(now) + self.batch_bytes <= most
    }

    /// Returns `true` if so much of the transport's queue is taken that frames should share batches.
    pub(super) fn merges(&self, now: Instant) -> bool {
        let half = super::WINDOW_FRAMES as u64 * self.batch_bytes / 2;
        self.ledger.is_none() && self.queued_room(now) >= half
    }

    /// The number that the next frame will have.
    #[must_use]
    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// True if the frame `seq`, and every one before it, was acknowledged or given up.
    #[must_use]
    pub fn has_settled(&self, seq: u64) -> bool {
        let settled = |ledger: &Ledger| ledger.has_settled(seq);
        let front = || self.flight.front().is_none_or(|oldest| oldest.seq > seq);
        self.ledger.as_deref().map_or_else(front, settled)
    }

    /// The longest of the last 10 to 20 seconds that a frame's answer waited for its turn at the other end:
    /// for a frame that was on its way back, and on one that it rode on.
    /// At least two frames of `frame_time`, as on a way back that is like the way there: who begins to send
    /// must not wait until the first answer that is late has come.
    #[must_use]
    pub fn longest_held(&self, frame_time: Duration) -> Duration {
        self.trips.longest_held().max(frame_time.mul_div(2, 1))
    }

    /// The least round trip of the last 10 to 20 seconds, less what answers waited for their turn at the
    /// other end; `None` before the first.
    #[must_use]
    pub fn least_round_trip(&self) -> Option<Duration> {
        self.trips.least()
    }

    /// The least round trip since the hop came up: what the way takes, whatever the load. Under load
    /// every answer waits for its turn at the other end, and after 20 s [`Self::least_round_trip`]
    /// has seen nothing else.
    #[must_use]
    pub const fn shortest_round_trip(&self) -> Option<Duration> {
        self.transit.round_trip()
    }

    /// How long a frame whose bytes keep the wire busy for `wire_time` is on its way for them: as
    /// long, or less where the way lets frames through at once.
    #[must_use]
    pub fn transit(&self, wire_time: Duration) -> Duration {
        self.transit.of(wire_time)
    }

    /// By how much the last frame was answered later than the way takes: what waited before it in
    /// queues that are not ours.
    #[must_use]
    pub fn queued_below(&self) -> Duration {
        self.trips.queued()
    }

    /// True if the oldest frame in flight has waited too long for its acknowledgement, on a link whose frames
    /// take up to `frame_time`.
    #[must_use]
    pub fn is_stalled(&self, now: Instant, frame_time: Duration) -> bool {
        let patience = self.least_round_trip().map_or(Duration::ZERO, |t| t.mul_div(4, 1));
        let patience = patience.max(STALLED_AFTER).saturating_add(self.longest_held(frame_time));
        if let Some(ledger) = &self.ledger {
            return ledger.unanswered_for(now) > patience;
        }
        self.flight.front().is_some_and(|oldest| now.since(oldest.sent) > patience)
    }

    /// Takes note of a frame's header from this hop. The link's transmission time of a frame is taken
    /// off its round trip by `wire_time`.
    pub fn handle_heard(
        &mut self,
        now: Instant,
        heard: &Heard,
        wire_time: impl Fn(u64) -> Duration,
    ) -> (Option<HopChange>, u64) {
        if heard.epoch < self.known {
            return (None, 0); // of an incarnation that is over
        }
        self.last_heard = self.last_heard.max(now);
        let newer = heard.epoch > self.known;
        if newer {
            self.known = heard.epoch;
            self.owed = None;
        }
        if newer && self.up {
            self.restart(now);
            return (Some(HopChange::Down), 0);
        }
        if heard.datagrams && !self.up {
            self.expect_loss();
        }
        if heard.known != self.epoch {
            // It does not know us yet: whoever is new hears of us at once.
            self.owe_now |= newer;
            return (None, 0);
        }
        let change = if self.up { None } else { Some(HopChange::Up) };
        self.up = true;
        if heard.owed.is_some() {
            if heard.owed != self.owed {
                self.owed_since = now;
            }
            self.owes |= heard.ack_now || heard.owed != self.owed;
            self.owed = heard.owed;
            self.owe_now |= heard.ack_now;
        }
        let ack = heard.ack.map(|ack| self.handle_ack(now, (ack, heard.held), wire_time));
        let lost = ack.unwrap_or_default();
        (change, lost)
    }

    /// Returns how many frames turned out to be lost although the transport keeps order.
    fn handle_ack(
        &mut self,
        now: Instant,
        (ack, held): (Ack, Duration),
        wire_time: impl Fn(u64) -> Duration,
    ) -> u64 {
        if let Some(ledger) = &mut self.ledger {
            if let Some((bytes, left)) = ledger.handle_ack(now, ack) {
                let trip = now.since(left);
                self.trips.note(now, (trip, held), trip);
                let took = (now + wire_time(bytes)).since(left);
                self.transit.note(bytes, (took, held), wire_time(bytes));
            }
            return 0;
        }
        let end = ack.end();
        let (mut lost, mut waited) = (0, Duration::ZERO);
        // The transport keeps order: a frame before one that arrived will not come any more.
        while let Some(oldest) = self.flight.front().copied() {
            if oldest.seq >= end {
                break;
            }
            self.flight.pop_front();
            self.flight_bytes -= oldest.bytes;
            self.flight_room -= oldest.room;
            if oldest.background {
                self.background_bytes -= oldest.bytes;
            }
            if !ack.covers(oldest.seq) {
                lost += 1;
                continue;
            }
            let took = now.since(oldest.sent);
            let trip = took.saturating_sub(wire_time(oldest.bytes));
            waited = waited.max(trip);
            if oldest.asked && oldest.seq + 1 == end {
                self.trips.note(now, (trip, held), waited);
                self.transit.note(oldest.bytes, (took, held), wire_time(oldest.bytes));
            }
        }
        lost
    }

    /// Starts anew: a higher epoch, nothing in flight, not up until the other end knows it.
    pub fn restart(&mut self, now: Instant) {
        let (known, wire_bytes) = (self.known, self.wire_bytes);
        let ledger = self.ledger.as_ref().map(|_| Box::default());
        let batch_bytes = self.batch_bytes;
        let new = Self::new(now, self.epoch.saturating_add(1), self.paced);
        *self = Self { last_heard: now, known, ledger, batch_bytes, wire_bytes, ..new };
    }

    /// What time has changed at `now`: a hop that was silent too long goes down.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<HopChange> {
        let change = self.handle_silence(now);
        if change.is_none()
            && let Some(ledger) = &mut self.ledger
        {
            ledger.detect(now);
        }
        change
    }

    /// A hop that was silent too long goes down.
    pub(super) fn handle_silence(&mut self, now: Instant) -> Option<HopChange> {
        let silent = self.up && now.since(self.last_heard) >= SILENCE_MAX;
        silent.then(|| {
            self.restart(now);
            HopChange::Down
        })
    }

    /// True for a hop that is not up and has said nothing for long: it is gone.
    #[must_use]
    pub fn is_forgotten(&self, now: Instant) -> bool {
        !self.up && now.since(self.last_heard) >= FORGOTTEN_AFTER
    }

    /// True if a frame should leave for this hop although no segment waits for it: a greeting, a
    /// probe, an acknowledgement that is wanted at once, or the question what has arrived.
    #[must_use]
    pub fn wants_frame(&self, now: Instant) -> bool {
        self.owe_now || now >= self.next_frame()
    }

    /// When [`Self::wants_frame`] will be true if nothing happens.
    #[must_use]
    pub fn next_frame(&self) -> Instant {
        if !self.up {
            return self.last_sent + GREET_EVERY;
        }
        let probe = self.last_ask + PROBE_EVERY;
        if let Some(ledger) = &self.ledger {
            // Whatever was lost is sent again before that, and asks.
            let again = ledger.patience(self.last_ask).max(self.ask_again);
            return if ledger.is_unanswered() { probe.min(self.last_ask + again) } else { probe };
        }
        if self.flight.is_empty() { probe } else { probe.min(self.last_ask + self.ask_again) }
    }

    /// When [`Self::handle_timeout`] has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.last_heard + if self.up { SILENCE_MAX } else { FORGOTTEN_AFTER }
    }

    /// The header of a frame without segments, which keeps the wire busy for `wire_time`: it pays what is
    /// owed and asks if that is due.
    pub fn bare_header(&mut self, now: Instant, wire_time: Duration) -> FrameHeader {
        let asks = self.up && now >= self.next_frame();
        let seq = asks.then_some(self.next_seq);
        if asks {
            self.note_sent(now, 0, true, wire_time);
        }
        self.last_sent = now;
        let ack = self.pay();
        let datagrams = self.ledger.is_some();
        let (epoch, known, ack_now) = (self.epoch, self.known, asks);
        let held = ack.map(|_| self.held_until(now, wire_time));
        FrameHeader { epoch, known, seq, ack, ack_now, datagrams, held, transit: None }
    }

    /// The header that the next frame with segments will have; it is longest in this form, but for
    /// its transit, which the link adds.
    #[must_use]
    pub const fn header(&self) -> FrameHeader {
        FrameHeader {
            epoch: self.epoch,
            known: self.known,
            seq: Some(self.next_seq),
            ack: if self.owes { self.owed } else { None },
            ack_now: true,
            datagrams: self.ledger.is_some(),
            held: if self.owes && self.owed.is_some() { Some(Duration::ZERO) } else { None },
            transit: None,
        }
    }

    /// How long what is owed has waited once a frame that keeps the wire busy for `wire_time` from now on
    /// has arrived.
    #[must_use]
    pub fn held_until(&self, now: Instant, wire_time: Duration) -> Duration {
        now.since(self.owed_since).saturating_add(self.transit(wire_time))
    }

    /// Counts a numbered frame of `bytes` as sent; true if its sender must ask for an answer, because
    /// `ask_every` bytes went out since it last asked, or so many frames.
    pub fn handle_sent(
        &mut self,
        now: Instant,
        bytes: u64,
        ask_every: u64,
        wire_time: Duration,
    ) -> bool {
        self.unasked_bytes += bytes;
        self.unasked_frames += 1;
        let many = self.unasked_bytes >= ask_every || self.unasked_frames >= ASK_EVERY_FRAMES;
        // Where frames may be lost each asks: what was lost must show at once.
        let asks = many || now >= self.last_ask + PROBE_EVERY || self.ledger.is_some();
        self.note_sent(now, bytes, asks, wire_time);
        self.pay();
        asks
    }

    /// Counts bytes that were sent to this hop, as they count on the wire.
    pub(super) const fn count_wire(&mut self, bytes: u64) {
        self.wire_bytes += bytes;
    }

    /// Returns the bytes sent to this hop since it was found, as they count on the wire.
    #[must_use]
    pub const fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// The frame that was sent last carries nothing that is live.
    pub fn handle_background(&mut self) {
        if let Some(ledger) = &mut self.ledger {
            ledger.note_background();
            return;
        }
        if let Some(newest) = self.flight.back_mut().filter(|newest| !newest.background) {
            newest.background = true;
            self.background_bytes += newest.bytes;
        }
    }

    /// What the frame that was sent last has to say again if it is lost.
    pub(super) fn note_items(&mut self, items: Vec<Item>) {
        if let Some(ledger) = &mut self.ledger {
            ledger.note_items(items);
        }
    }

    fn note_sent(&mut self, now: Instant, bytes: u64, asked: bool, wire_time: Duration) {
        let (seq, background) = (self.next_seq, false);
        if let Some(ledger) = &mut self.ledger {
            ledger.note_sent(now, seq, bytes, now + wire_time);
        } else {
            // Two frames that share no batch are together longer than one, so a frame takes twice its length at most.
            let room = if self.merges(now) { 2 * bytes } else { u64::MAX }.min(self.batch_bytes);
            self.flight.push_back(InFlight { seq, bytes, sent: now, asked, background, room });
            self.flight_bytes += bytes;
            self.flight_room += room;
        }
        self.next_seq += 1;
        self.last_sent = now;
        if asked {
            self.last_ask = now;
            self.unasked_bytes = 0;
            self.unasked_frames = 0;
        }
    }

    const fn pay(&mut self) -> Option<Ack> {
        self.owe_now = false;
        self.owes = false;
        self.owed
    }
}
