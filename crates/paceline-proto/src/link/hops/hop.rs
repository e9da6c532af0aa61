//! A next hop: handshake, liveness and the frames in flight to it.

use super::answer::Answer;
use super::attendance::{Attendance, Greeted};
use super::flight::{InFlight, InOrder};
use super::ledger::{Fates, Ledger};
use super::rtt::RttEstimator;
use super::smoothed::Smoothed;
use super::stamp::HeardStamp;
use super::transit::Transit;
use crate::carrier::Carrier;
use crate::link::contents::Item;
use crate::probes::ProbeInterval;
use crate::receive::Heard;
use crate::wire::ack::Ack;
use crate::wire::frame::{Echo, FrameHeader};
use paceline_sched::{Duration, Instant};

/// The transport's queue has room for this number of the longest frames, and for some more, so it never has to drop
/// one.
pub(in crate::link) const WINDOW_FRAMES: usize = 12;
/// The number of frames after which one requests an acknowledgement, whatever their sizes. The window also
/// limits the number of frames, and small samples would fill it before enough bytes were sent.
const ASK_EVERY_FRAMES: usize = WINDOW_FRAMES / 3;
/// The time after the last request at which an acknowledgement of later frames is requested. Only hops that are not paced
/// have such frames.
const ASK_AFTER: Duration = Duration::from_millis(100);
/// The minimum time after which an unanswered request is repeated.
const REPEAT_MIN: Duration = Duration::from_millis(25);
/// The number of frames to multicast groups that are lost in a row until the hop gets unicast frames again.
const GROUP_LOSSES_MAX: u32 = 8;
/// A hop whose oldest unacknowledged frame is older than this is stalled. It receives nothing until it
/// answers, and no longer counts against the link's limit of bytes in flight.
const STALLED_AFTER: Duration = Duration::from_millis(150);

/// A change of a hop's state that the link must handle.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HopChange {
    /// Both ends know each other: streams may start.
    Up,
    /// The hop is silent or has restarted, so it has lost its state of our streams.
    Down,
}

/// One next hop of a link.
#[derive(Debug)]
pub struct Hop {
    epoch: u32,
    known: u32,
    up: bool,
    /// It was up since it was found.
    was_up: bool,
    found: Instant,
    next_seq: u64,
    flight: InOrder,
    /// The departure of the newest frame that is known to have arrived.
    passed: Instant,
    /// The maximum frame length, in bytes.
    frame_bytes_max: u64,
    unasked_bytes: u64,
    unasked_frames: usize,
    attendance: Attendance,
    answer: Answer,
    rtt: RttEstimator,
    /// The round trips of requests on carriers that keep order.
    trips: Smoothed,
    transit: Transit,
    /// The stamp of the other end to answer.
    stamp: HeardStamp,
    /// Bytes sent to the hop since it was found, as counted on the wire.
    wire_bytes: u64,
    paced: bool,
    /// The frames in flight on carriers that may lose frames; replaces [`Self::flight`].
    ledger: Option<Box<Ledger>>,
}

impl Hop {
    /// Returns a hop that was found at `now`. `epoch` must be higher than that of any earlier hop to the same
    /// node. `paced` is `true` on a link with a capacity.
    #[must_use]
    pub fn new(now: Instant, epoch: u32, paced: bool) -> Self {
        Self {
            epoch: epoch.max(1),
            known: 0,
            up: false,
            was_up: false,
            found: now,
            next_seq: 0,
            flight: InOrder::default(),
            passed: Instant::ZERO,
            frame_bytes_max: Carrier::Ordered.frame_bytes_max(),
            unasked_bytes: 0,
            unasked_frames: 0,
            attendance: Attendance::new(now),
            answer: Answer::new(now, Duration::ZERO),
            rtt: RttEstimator::new(),
            trips: Smoothed::default(),
            transit: Transit::new(),
            stamp: HeardStamp::default(),
            wire_bytes: 0,
            paced,
            ledger: None,
        }
    }

    /// Returns `true` if its frames may be lost, so that lost segments are retransmitted.
    #[must_use]
    pub const fn is_lossy(&self) -> bool {
        self.ledger.is_some()
    }

    /// Switches to a carrier that may lose frames.
    pub(in crate::link) fn expect_loss(&mut self) {
        self.ledger.get_or_insert_default();
    }

    pub(in crate::link) fn ledger(&mut self) -> Option<&mut Ledger> {
        self.ledger.as_deref_mut()
    }

    /// Returns the counters of lost frames; all zero on carriers that keep order.
    #[must_use]
    pub fn fates(&self) -> Fates {
        self.ledger.as_ref().map(|ledger| ledger.fates()).unwrap_or_default()
    }

    /// Returns `true` if a frame with segments may be sent without exceeding the range that acknowledgements
    /// can describe.
    pub(in crate::link) fn can_be_told(&self) -> bool {
        self.ledger.as_ref().is_none_or(|ledger| ledger.has_room())
    }

    /// Returns the time at which a frame will count as lost if no acknowledgement arrives.
    pub(in crate::link) fn next_loss(&self, now: Instant) -> Instant {
        self.ledger.as_ref().map_or(Instant::FAR, |ledger| ledger.next_loss(now))
    }

    /// Returns our epoch. The hop must know it before it accepts numbered frames.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns `true` while both ends know each other.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// Returns `true` if both ends knew each other at any time since the hop was found.
    #[must_use]
    pub const fn was_up(&self) -> bool {
        self.was_up
    }

    /// Returns `true` if a frame of the other end has arrived.
    pub(super) const fn is_heard(&self) -> bool {
        self.known > 0
    }

    /// Returns the time at which the hop was found.
    pub(super) const fn found(&self) -> Instant {
        self.found
    }

    /// Returns the number of greetings since it was found or last went down, and the time of the last one.
    pub(super) const fn greeted(&self) -> Greeted {
        self.attendance.greeted()
    }

    /// Continues the greetings of an earlier hop to the same node.
    pub(super) const fn set_greeted(&mut self, greeted: Greeted) {
        self.attendance.set_greeted(greeted);
    }

    /// Returns the bytes sent and not yet acknowledged.
    #[must_use]
    pub fn flight_bytes(&self) -> u64 {
        self.ledger.as_ref().map_or(self.flight.bytes(), |ledger| ledger.flight().0)
    }

    /// Returns the bytes in flight that belong to background frames.
    #[must_use]
    pub fn background_bytes(&self) -> u64 {
        self.ledger.as_ref().map_or(self.flight.background(), |ledger| ledger.flight().1)
    }

    /// Returns the number of frames sent and not yet acknowledged.
    #[must_use]
    pub fn flight_frames(&self) -> usize {
        self.ledger.as_ref().map_or(self.flight.len(), |ledger| ledger.waiting())
    }

    /// Returns the number of frames that may still wait in queues below the link. On a link with a capacity
    /// this excludes frames sent within the last round trip: they are in transit, and a long path carries
    /// many.
    #[must_use]
    pub fn overdue_frames(&self, now: Instant) -> usize {
        let Some(trip) = self.least_round_trip().filter(|_| self.paced) else {
            return self.flight_frames();
        };
        let trip = trip.saturating_add(self.rtt.longest_held());
        match &self.ledger {
            Some(ledger) => ledger.overdue(now, trip),
            None => self.flight.sent_before(now - trip),
        }
    }

    /// Returns the bytes of live frames that left more than `trip` ago. Zero on carriers that keep order.
    pub(in crate::link) fn overdue_bytes(&self, now: Instant, trip: Duration) -> u64 {
        self.ledger.as_ref().map_or(0, |ledger| ledger.overdue_bytes(now, trip))
    }

    /// Returns the departure of the newest frame that is known to have arrived.
    pub(in crate::link) const fn passed(&self) -> Instant {
        self.passed
    }

    /// Returns the bytes of unacknowledged live frames that left before `time`. Zero on carriers that may lose frames.
    pub(in crate::link) fn live_before(&self, time: Instant) -> u64 {
        self.flight.live_before(time)
    }

    /// Sets the maximum frame length, in bytes.
    pub(in crate::link) const fn set_frame_bytes_max(&mut self, bytes: u64) {
        self.frame_bytes_max = bytes;
    }

    /// Sets the interval of probes that the capacity of the link allows. The other end learns it from the next frame.
    pub fn set_probe_interval(&mut self, now: Instant, interval: ProbeInterval) {
        self.attendance.set_own(now, interval);
    }

    /// Sets the round trip that is expected before the first measurement: probes are not more frequent.
    pub(in crate::link) fn expect_round_trip(&mut self, now: Instant, trip: Duration) {
        self.attendance.note_trip(now, trip);
    }

    /// Returns the interval of probes on this hop: the longer one of both ends.
    #[must_use]
    pub fn probe_interval(&self) -> ProbeInterval {
        self.attendance.interval()
    }

    /// Sets the longest delay of acknowledgements.
    pub(in crate::link) const fn set_answers_within(&mut self, delay: Duration) {
        self.answer.set_within(delay);
    }

    /// Returns the most bytes that the transport may still queue. On a link with a capacity, frames of the last
    /// round trip are on the wire, unless the transport's thread is starved of processor time.
    fn queued_bytes(&self, now: Instant) -> u64 {
        let Some(trip) = self.least_round_trip().filter(|_| self.paced) else {
            return self.flight.bytes();
        };
        let recent = self.flight.bytes_since(now - trip);
        self.flight.bytes().saturating_sub(recent)
    }

    /// Returns `true` if the transport's queue has room for one more frame of any length. Always `true` where
    /// frames may be lost: a frame that finds no room is retransmitted.
    pub(in crate::link) fn has_queue_room(&self, now: Instant) -> bool {
        let most = WINDOW_FRAMES as u64 * self.frame_bytes_max;
        self.ledger.is_some() || self.queued_bytes(now) + self.frame_bytes_max <= most
    }

    /// Returns the sequence number of the next frame.
    #[must_use]
    pub const fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Returns `true` if the frame `seq` and all earlier ones were acknowledged or given up.
    #[must_use]
    pub fn has_settled(&self, seq: u64) -> bool {
        let settled = |ledger: &Ledger| ledger.has_settled(seq);
        let front = || self.flight.oldest().is_none_or(|oldest| oldest.seq > seq);
        self.ledger.as_deref().map_or_else(front, settled)
    }

    /// Returns the longest acknowledgement delay at the hop within the last 10 to 20 s. The delay starts with
    /// a frame's arrival there and ends with the arrival of the acknowledgement here, without the path delay.
    ///
    /// Returns at least two times `frame_time`, the delay on a return path that is as fast as the forward
    /// path. A new sender must not stop until the first late acknowledgement has arrived.
    #[must_use]
    pub fn longest_held(&self, frame_time: Duration) -> Duration {
        self.rtt.longest_held().max(frame_time.mul_div(2, 1))
    }

    /// Returns the minimum round trip of the last 10 to 20 s, without acknowledgement delay; `None` before
    /// the first measurement.
    #[must_use]
    pub fn least_round_trip(&self) -> Option<Duration> {
        self.rtt.least()
    }

    /// Returns the last round trip without acknowledgement delay, and the jitter of round trips by RFC 3550; `None` before
    /// the first measurement.
    #[must_use]
    pub fn present_round_trip(&self) -> Option<(Duration, Duration)> {
        self.rtt.present()
    }

    /// Returns the minimum round trip since the hop came up: the path delay, whatever the load. Under load
    /// every acknowledgement is delayed at the hop, and after 20 s [`Self::least_round_trip`] includes that
    /// delay.
    #[must_use]
    pub const fn shortest_round_trip(&self) -> Option<Duration> {
        self.transit.round_trip()
    }

    /// Returns the transit time of a frame whose bytes occupy the wire for `wire_time`. It is shorter than
    /// `wire_time` where the path forwards frames at once.
    #[must_use]
    pub fn transit(&self, wire_time: Duration) -> Duration {
        self.transit.of(wire_time)
    }

    /// Returns the delay of the last acknowledged frame beyond the path delay: its wait in queues below the
    /// link.
    #[must_use]
    pub fn queued_below(&self) -> Duration {
        self.rtt.queued()
    }

    /// Returns `true` if the oldest frame in flight has waited too long for its acknowledgement, on a link
    /// whose frames take up to `frame_time`.
    #[must_use]
    pub fn is_stalled(&self, now: Instant, frame_time: Duration) -> bool {
        let patience = self.least_round_trip().map_or(Duration::ZERO, |t| t.mul_div(4, 1));
        let patience = patience.max(STALLED_AFTER).saturating_add(self.longest_held(frame_time));
        if let Some(ledger) = &self.ledger {
            return ledger.unanswered_for(now) > patience;
        }
        self.flight.oldest().is_some_and(|oldest| now.since(oldest.sent) > patience)
    }

    /// Processes the header of a frame from this hop. Returns the hop's change of state and the number of
    /// lost frames. `wire_time` gives the transmission time of a frame on this link, which is subtracted from
    /// its round trip.
    pub fn handle_heard(
        &mut self,
        now: Instant,
        heard: &Heard,
        wire_time: impl Fn(u64) -> Duration,
    ) -> (Option<HopChange>, u64) {
        if heard.epoch < self.known {
            return (None, 0); // from an earlier incarnation
        }
        self.attendance.note_heard(now, heard.probes);
        let newer = heard.epoch > self.known;
        if newer {
            self.known = heard.epoch;
            self.answer.forget();
        }
        if newer && self.up {
            self.restart(now);
            return (Some(HopChange::Down), 0);
        }
        if heard.datagrams && !self.up {
            self.expect_loss();
        }
        if heard.known != self.epoch {
            // The hop does not know us yet: answer a new incarnation at once.
            if newer {
                self.answer.request(now);
            }
            return (None, 0);
        }
        if let Some(stamp) = heard.stamp {
            self.stamp.note(now, stamp);
        }
        let change = if self.up { None } else { Some(HopChange::Up) };
        self.up = true;
        self.was_up = true;
        if heard.ack_now {
            self.attendance.note_asked(now);
        }
        if let Some(ack) = heard.owed {
            self.answer.note(now, ack, heard.ack_now, self.is_lossy());
        }
        let ack = heard.ack.map(|ack| self.handle_ack(now, (ack, heard.held), wire_time));
        let lost = ack.unwrap_or_default();
        (change, lost)
    }

    /// Returns the answer to the other end's stamp, if it has sent one lately.
    #[must_use]
    pub fn echo(&self, now: Instant) -> Option<Echo> {
        self.stamp.echo(now, self.probe_interval().silence_max())
    }

    /// Returns the number of frames that were lost although the transport keeps order.
    fn handle_ack(
        &mut self,
        now: Instant,
        (ack, held): (Ack, Duration),
        wire_time: impl Fn(u64) -> Duration,
    ) -> u64 {
        if let Some(ledger) = &mut self.ledger {
            if let Some((bytes, left)) = ledger.handle_ack(now, ack) {
                let trip = now.since(left);
                self.passed = self.passed.max(left);
                self.attendance.note_answered(left);
                self.rtt.note(now, (trip, held), trip);
                let took = (now + wire_time(bytes)).since(left);
                self.note_transit(now, bytes, (took, held), wire_time(bytes));
            }
            return 0;
        }
        let end = ack.end();
        let (mut lost, mut waited) = (0, Duration::ZERO);
        // The transport keeps order, so an unacknowledged frame before an acknowledged one is lost.
        while let Some(oldest) = self.flight.oldest() {
            if oldest.seq >= end {
                break;
            }
            self.flight.pop_oldest();
            if !ack.covers(oldest.seq) {
                lost += 1;
                continue;
            }
            self.passed = self.passed.max(oldest.sent);
            let took = now.since(oldest.sent);
            let trip = took.saturating_sub(wire_time(oldest.bytes));
            waited = waited.max(trip);
            if oldest.asked {
                self.attendance.note_answered(oldest.sent);
            }
            if oldest.asked && oldest.seq + 1 == end {
                self.trips.note(trip);
                self.rtt.note(now, (trip, held), waited);
                self.note_transit(now, oldest.bytes, (took, held), wire_time(oldest.bytes));
            }
        }
        lost
    }

    /// Records that a frame was acknowledged after `took`, and was held at the other end.
    fn note_transit(
        &mut self,
        now: Instant,
        bytes: u64,
        (took, held): (Duration, Duration),
        wire_time: Duration,
    ) {
        self.transit.note(bytes, (took, held), wire_time);
        if let Some(trip) = self.transit.round_trip() {
            self.attendance.note_trip(now, trip);
        }
    }

    /// Restarts the hop with a higher epoch and nothing in flight. It is down until the other end knows the
    /// new epoch.
    pub fn restart(&mut self, now: Instant) {
        let (known, wire_bytes) = (self.known, self.wire_bytes);
        let (was_up, found) = (self.was_up, self.found);
        let ledger = self.ledger.as_ref().map(|_| Box::default());
        let frame_bytes_max = self.frame_bytes_max;
        let answer = Answer::new(now, self.answer.within());
        let attendance = self.attendance.restarted(now);
        let new = Self::new(now, self.epoch.saturating_add(1), self.paced);
        *self = Self { attendance, known, ledger, frame_bytes_max, answer, ..new };
        (self.wire_bytes, self.was_up, self.found) = (wire_bytes, was_up, found);
    }

    /// Processes timeouts at `now`: detects lost frames and takes a silent hop down.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<HopChange> {
        let change = self.handle_silence(now);
        if change.is_none()
            && let Some(ledger) = &mut self.ledger
        {
            ledger.detect(now);
        }
        change
    }

    /// Takes the hop down if it was silent for three intervals of probes.
    pub(in crate::link) fn handle_silence(&mut self, now: Instant) -> Option<HopChange> {
        let silent = self.up && now >= self.next_timeout();
        silent.then(|| {
            self.restart(now);
            HopChange::Down
        })
    }

    /// Returns `true` if the hop is not up and was silent for 5 s, or longer on a slow link.
    #[must_use]
    pub fn is_forgotten(&self, now: Instant) -> bool {
        !self.up && now >= self.next_timeout()
    }

    /// Returns `true` if a frame should be sent although no segment is queued: a greeting, a probe, an
    /// immediate acknowledgement, or a request for one.
    #[must_use]
    pub fn wants_frame(&self, now: Instant) -> bool {
        now >= self.next_frame()
    }

    /// Returns the time at which [`Self::wants_frame`] becomes true if nothing else happens.
    #[must_use]
    pub fn next_frame(&self) -> Instant {
        self.answer.due().min(self.next_request())
    }

    /// Returns the time at which a frame should request an acknowledgement although no segment is queued.
    fn next_request(&self) -> Instant {
        if !self.up {
            return self.attendance.next_greeting(self.was_up);
        }
        let again = self.asks_again_after().map(|time| self.attendance.last_ask() + time);
        self.attendance.next_probe(self.rtt.least().is_some()).min(again.unwrap_or(Instant::FAR))
    }

    /// Returns the time after the last request at which frames in flight request an acknowledgement; `None` if no frame waits
    /// for one.
    ///
    /// A repeated request is a frame in flight itself. So it is not due before the answer to the last one could have arrived:
    /// otherwise requests would cause further ones for ever, on a path that is longer than the time between them.
    fn asks_again_after(&self) -> Option<Duration> {
        if let Some(ledger) = &self.ledger {
            // Lost segments are retransmitted before that, and those frames request an acknowledgement.
            let again = || ledger.patience(self.attendance.last_ask()).max(REPEAT_MIN);
            return ledger.is_unanswered().then(again);
        }
        if self.unasked_frames > 0 {
            return Some(ASK_AFTER);
        }
        let again = || {
            let patience = self.trips.timeout().saturating_add(self.rtt.longest_held());
            patience.max(REPEAT_MIN).mul_div(1 << self.attendance.doublings(), 1)
        };
        (!self.flight.is_empty()).then(again)
    }

    /// Returns the time of the next timeout for [`Self::handle_timeout`].
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.attendance.patience_ends(self.up)
    }

    /// Returns the header of a frame without segments that occupies the wire for `wire_time`. It carries the
    /// owed acknowledgement and, if due, requests one.
    pub fn bare_header(&mut self, now: Instant, wire_time: Duration) -> FrameHeader {
        let asks = self.up && now >= self.next_request();
        let seq = asks.then_some(self.next_seq);
        if asks {
            self.note_sent(now, 0, true, wire_time);
        } else {
            self.attendance.note_sent(now, now, false);
        }
        let ack = self.answer.take();
        let datagrams = self.ledger.is_some();
        let (epoch, known, ack_now) = (self.epoch, self.known, asks);
        let held = ack.map(|_| self.held_until(now, wire_time));
        let (transit, stamp, echo) = (None, None, None);
        let probes = self.attendance.own();
        FrameHeader {
            epoch,
            known,
            seq,
            ack,
            ack_now,
            datagrams,
            held,
            transit,
            stamp,
            echo,
            probes,
        }
    }

    /// Returns the header of the next frame with segments, in its longest form. The link adds the transit
    /// time.
    #[must_use]
    pub fn header(&self) -> FrameHeader {
        let ack = self.answer.unsent();
        FrameHeader {
            epoch: self.epoch,
            known: self.known,
            seq: Some(self.next_seq),
            ack,
            ack_now: true,
            datagrams: self.ledger.is_some(),
            held: ack.map(|_| Duration::ZERO),
            transit: None,
            stamp: None,
            echo: None,
            probes: self.attendance.own(),
        }
    }

    /// Returns the delay of the owed acknowledgement at the time when a frame sent now, which occupies the
    /// wire for `wire_time`, arrives.
    #[must_use]
    pub fn held_until(&self, now: Instant, wire_time: Duration) -> Duration {
        self.answer.held(now).saturating_add(self.transit(wire_time))
    }

    /// Records a numbered frame of `bytes` as sent. Returns `true` if it must request an acknowledgement,
    /// because `ask_every` bytes or 4 frames were sent since the last request, or because it was sent 100 ms ago.
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
        // Where frames may be lost, each requests one, so that loss shows at once.
        let is_late = now >= self.attendance.last_ask() + ASK_AFTER;
        let asks = many || is_late || self.ledger.is_some();
        self.note_sent(now, bytes, asks, wire_time);
        self.answer.take();
        asks
    }

    /// Adds bytes sent to this hop, as counted on the wire.
    pub(in crate::link) const fn count_wire(&mut self, bytes: u64) {
        self.wire_bytes += bytes;
    }

    /// Returns the bytes sent to this hop since it was found, as counted on the wire.
    #[must_use]
    pub const fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// Marks the last sent frame as one that carries only background streams.
    pub fn handle_background(&mut self) {
        if let Some(ledger) = &mut self.ledger {
            ledger.note_background();
            return;
        }
        self.flight.note_background();
    }

    /// Marks the last sent frame as one to a multicast group, whose bytes another hop counts if `elsewhere`.
    pub(in crate::link) fn note_group(&mut self, elsewhere: bool) {
        if let Some(ledger) = &mut self.ledger {
            ledger.note_group(elsewhere);
        }
    }

    /// Returns `true` if its frames to multicast groups seem not to arrive: too many in a row were lost.
    #[must_use]
    pub fn misses_groups(&self) -> bool {
        self.ledger.as_ref().is_some_and(|ledger| ledger.group_losses() >= GROUP_LOSSES_MAX)
    }

    /// Records the contents of the last sent frame that must be repeated if it is lost.
    pub(in crate::link) fn note_items(&mut self, items: Vec<Item>) {
        if let Some(ledger) = &mut self.ledger {
            ledger.note_items(items);
        }
    }

    fn note_sent(&mut self, now: Instant, bytes: u64, asked: bool, wire_time: Duration) {
        let (seq, background) = (self.next_seq, false);
        if let Some(ledger) = &mut self.ledger {
            ledger.note_sent(now, seq, bytes, now + wire_time);
        } else {
            self.flight.push(InFlight { seq, bytes, sent: now, asked, background });
        }
        self.next_seq += 1;
        self.attendance.note_sent(now, now + wire_time, asked);
        if asked {
            self.unasked_bytes = 0;
            self.unasked_frames = 0;
        }
    }
}
