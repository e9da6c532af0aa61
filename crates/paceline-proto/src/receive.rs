//! The receiving end of a link: frames in, complete samples and control messages out.
//!
//! On carriers that may lose frames (`receive/mender.rs`), samples may be buffered until missing ones arrive.
//! The owner then calls [`Receiver::handle_timeout`] at the instant returned by [`Receiver::poll_timeout`].

mod assembly;
mod incoming;
mod lost;
mod mender;
mod room;
mod sorter;
mod transit;

use crate::form::Form;
use crate::ids::PublisherId;
use crate::probes::ProbeInterval;
use crate::reason::DropReason;
use crate::sample::RawSample;
use crate::wire::ack::{Ack, Arrivals};
use crate::wire::codec::{Reader, WireError};
use crate::wire::frame::FrameHeader;
use crate::wire::segment::{Place, SampleHead, Segment, stream_place};
use bytes::{Bytes, BytesMut};
use incoming::{Incoming, Unfinished};
pub use lost::Lost;
use mender::{Arrival, Mender};
use paceline_sched::{Duration, Instant};
use room::Room;
pub use room::Victim;
use transit::{Attention, PathDelay, Transit};

/// The maximum number of bytes that are allocated for a control message based on a header alone; the buffer grows as data
/// arrives.
const TRUSTED_BYTES: usize = 1 << 20;
/// The memory of a slot for a stream.
const STREAM_COST: usize = size_of::<Option<Incoming>>();

/// The information of a frame's header for the link back to its sender.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Heard {
    /// The sender's epoch.
    pub epoch: u32,
    /// Our epoch as the sender knows it.
    pub known: u32,
    /// The sender's acknowledgement of our frames.
    pub ack: Option<Ack>,
    /// The acknowledgement delay at the sender, including the transmission time of this frame; zero if the
    /// header does not state it.
    pub held: Duration,
    /// The acknowledgement that we owe the sender.
    pub owed: Option<Ack>,
    /// The sender requests the acknowledgement at once.
    pub ack_now: bool,
    /// The sender treats its frames as ones that may be lost, and retransmits.
    pub datagrams: bool,
    /// The sender's stamp, to send back.
    pub stamp: Option<u32>,
    /// The sender's interval of probes.
    pub probes: ProbeInterval,
}

/// Content received in a frame.
#[derive(Debug)]
pub enum Received {
    /// A complete sample of a stream.
    Sample {
        /// The publisher of the sample.
        publisher: PublisherId,
        /// The form of the stream.
        form: Form,
        /// The sample, with its age on the local clock.
        sample: RawSample,
    },
    /// A complete control message.
    Control(Bytes),
    /// Samples of a stream that will not arrive completely.
    Lost {
        /// The publisher of the samples.
        publisher: PublisherId,
        /// The form of the stream.
        form: Form,
        /// The samples.
        lost: Lost,
    },
}

/// Reassembles the samples and control messages of one neighbour.
#[derive(Debug, Default)]
pub struct Receiver {
    epoch: u32,
    arrivals: Arrivals,
    /// Streams by slot, at most [`crate::wire::STREAMS_MAX`].
    streams: Vec<Option<Incoming>>,
    control: Option<(usize, BytesMut)>,
    unfinished_bytes: usize,
    /// The memory that this receiver counts as used.
    room: Room,
    half_round_trip: Duration,
    attention: Attention,
    path: PathDelay,
    unknown_stream: u64,
    /// Present once the sender has sent frames that may be lost.
    mender: Option<Box<Mender>>,
}

impl Receiver {
    /// Returns a receiver in its initial state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets half the minimum round trip of the link, which estimates the path delay of a frame.
    pub const fn set_half_round_trip(&mut self, half: Duration) {
        self.half_round_trip = half;
    }

    /// Returns the number of segments for unknown streams: closed ones, and ones whose open segment was lost.
    #[must_use]
    pub fn unknown_stream(&self) -> u64 {
        match &self.mender {
            Some(mender) => self.unknown_stream + mender.unknown_stream,
            None => self.unknown_stream,
        }
    }

    /// Returns `true` if no stream was ever opened, so that no state need be kept after the hop is gone.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.streams.is_empty() && self.mender.is_none()
    }

    /// Returns the instant at which to call [`Self::handle_timeout`] if no frame arrives before.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.mender.as_ref().map_or(Instant::FAR, |mender| mender.next_timeout())
    }

    /// Delivers samples that have waited long enough for missing ones before them.
    pub fn handle_timeout(&mut self, now: Instant, mut found: impl FnMut(Received)) {
        if let Some(mender) = &mut self.mender {
            mender.release(now, &self.arrivals, &mut found);
        }
        self.count();
    }

    /// Parses a frame and passes its contents to `found`, in order. `our_epoch` is the epoch of our link on
    /// the hop back to the sender. Numbered frames count only if the sender knows it.
    ///
    /// # Errors
    /// Returns a [`WireError`] if the frame is malformed. Contents before the error have been passed on, and
    /// the frame counts as received; the rest of it is ignored.
    #[expect(
        clippy::result_large_err,
        reason = "success is as large, and an allocation costs more"
    )]
    pub fn handle_frame(
        &mut self,
        now: Instant,
        our_epoch: u32,
        frame: Bytes,
        found: impl FnMut(Received),
    ) -> Result<Heard, (Option<Heard>, WireError)> {
        let heard = self.read_frame(now, our_epoch, frame, found);
        self.count();
        heard
    }

    #[expect(clippy::result_large_err, reason = "as above")]
    fn read_frame(
        &mut self,
        now: Instant,
        our_epoch: u32,
        frame: Bytes,
        mut found: impl FnMut(Received),
    ) -> Result<Heard, (Option<Heard>, WireError)> {
        let bytes = frame.len();
        let mut reader = Reader::new(frame);
        let header = FrameHeader::read(&mut reader).map_err(|error| (None, error))?;
        let mut heard = Heard {
            epoch: header.epoch,
            known: header.known,
            ack: header.ack,
            held: header.held.unwrap_or_default(),
            owed: None,
            ack_now: header.ack_now,
            datagrams: header.datagrams,
            stamp: header.stamp,
            probes: header.probes,
        };
        let longest = self.attention.longest_transit(now, header.echo);
        if header.epoch < self.epoch {
            return Ok(heard);
        }
        if header.epoch > self.epoch {
            self.forget(&mut found);
            self.epoch = header.epoch;
            self.path = PathDelay::default();
        }
        let transit = Transit::of(now, &header, &mut self.path, self.half_round_trip, longest);
        if let Some(seq) = header.seq
            && header.known == our_epoch
        {
            if header.datagrams {
                let result =
                    self.handle_datagram(now, (seq, transit, bytes), &mut reader, &mut found);
                heard.owed = Some(self.arrivals.ack());
                return result.map(|()| heard).map_err(|error| (Some(heard), error));
            }
            let seen = self.arrivals.covers(seq);
            if seq > self.arrivals.end() {
                // A frame was lost, possibly with a piece of this message.
                self.control = None;
            }
            self.arrivals.note(seq);
            heard.owed = Some(self.arrivals.ack());
            while !reader.is_empty() && !seen {
                let segment = transit.read(&mut reader);
                let at = (now, transit.half());
                let handled = segment.and_then(|it| self.handle_segment(at, it, &mut found));
                if let Err(error) = handled {
                    return Err((Some(heard), error));
                }
            }
        }
        Ok(heard)
    }

    /// Processes a frame that may be reordered or duplicated.
    fn handle_datagram(
        &mut self,
        now: Instant,
        (seq, transit, bytes): (u64, Transit, usize),
        reader: &mut Reader,
        found: &mut impl FnMut(Received),
    ) -> Result<(), WireError> {
        if self.arrivals.covers(seq) {
            return Ok(());
        }
        let mender = self.mender.get_or_insert_default();
        let half_round_trip = transit.half();
        let arrival = Arrival { now, frame: seq, bytes, half_round_trip };
        let mut in_turn = true;
        let mut result = Ok(());
        while !reader.is_empty() && result.is_ok() {
            let segment = transit.read(reader);
            match segment
                .and_then(|segment| mender.handle_segment(arrival, segment, &self.room, found))
            {
                Ok(took) => in_turn &= took,
                Err(error) => result = Err(error),
            }
        }
        if in_turn {
            self.arrivals.note(seq);
        }
        mender.release(now, &self.arrivals, found);
        result
    }

    /// Discards unfinished samples after the sender has left, so that they take no memory until it returns. The numbering of
    /// its streams continues then.
    pub fn part(&mut self, mut found: impl FnMut(Received)) {
        self.forget(&mut found);
        self.count();
    }

    /// Discards unfinished samples after the sender has restarted or left.
    fn forget(&mut self, found: &mut impl FnMut(Received)) {
        if let Some(mender) = &mut self.mender {
            mender.forget(found);
        }
        for incoming in self.streams.iter_mut().flatten() {
            incoming.parted = true;
            if let Some(unfinished) = incoming.unfinished.take() {
                found(incoming.lost_one(&unfinished.head, DropReason::LinkDown));
            }
        }
        self.arrivals = Arrivals::default();
        self.control = None;
        self.unfinished_bytes = 0;
    }

    /// Handles a segment that arrives `now`; `half` is the part of its transit time that is not in the age of its sample.
    fn handle_segment(
        &mut self,
        (now, half): (Instant, Duration),
        segment: Segment,
        found: &mut impl FnMut(Received),
    ) -> Result<(), WireError> {
        match segment {
            Segment::Data { stream, number, place, last, payload } => {
                let data = Piece { number, last, payload };
                match place {
                    Place::First(head) => {
                        return self.handle_first((now, half), stream, head, data, found);
                    }
                    Place::At(offset) => self.handle_next(stream, offset, &data, found),
                }
            }
            Segment::Control { total, last, payload } => {
                if let Some(message) = self.join_control(total, last, payload) {
                    found(Received::Control(message));
                }
            }
            Segment::Open { stream, publisher, form, retransmission: _ } => {
                self.give_up(stream, DropReason::LinkLoss, found);
                let same = |old: &mut Incoming| old.publisher == publisher && old.form == form;
                if !self.find(stream).is_some_and(same) {
                    self.open(stream, publisher, form, found);
                }
            }
            Segment::Close { stream, end } => {
                self.give_up(stream, DropReason::NoRoute, found);
                if let Some(incoming) = self.find(stream) {
                    let step = incoming.skip_to(end, found);
                    self.close_place(stream, found);
                    return step;
                }
            }
            // Used only on carriers that may lose frames.
            Segment::Part { .. } | Segment::Padding { .. } => {}
            Segment::Abort { stream, number } => {
                let next = self.find(stream).map(|incoming| incoming.next_number);
                if next == number.checked_add(1) {
                    self.give_up(stream, DropReason::DeadlineMissed, found);
                }
            }
        }
        Ok(())
    }

    /// Opens a stream in its slot. Without room for more slots the stream stays unknown.
    fn open(
        &mut self,
        id: u32,
        publisher: PublisherId,
        form: Form,
        found: &mut impl FnMut(Received),
    ) {
        self.close_place(id, found);
        let place = stream_place(id) as usize;
        let more = (place + 1).saturating_sub(self.streams.len());
        if more > 0 && !self.room.fits(more * STREAM_COST) {
            return;
        }
        let (next_number, unfinished, parted) = (0, None, false);
        let incoming = Incoming { id, publisher, form, next_number, unfinished, parted };
        if more > 0 {
            self.streams.resize_with(place + 1, || None);
        }
        if let Some(slot) = self.streams.get_mut(place) {
            *slot = Some(incoming);
        }
    }

    fn handle_first(
        &mut self,
        (now, half): (Instant, Duration),
        stream: u32,
        head: SampleHead,
        piece: Piece,
        found: &mut impl FnMut(Received),
    ) -> Result<(), WireError> {
        self.give_up(stream, DropReason::LinkLoss, found);
        let spare = self.room.for_samples().saturating_sub(self.unfinished_bytes);
        let Some(incoming) = find(&mut self.streams, stream) else {
            self.unknown_stream += 1;
            return Ok(());
        };
        let (publisher, form) = (incoming.publisher, incoming.form);
        // After an impossible number the stream continues there, and no sample counts as lost.
        let step = incoming.skip_to(piece.number, found);
        incoming.next_number = piece.number.saturating_add(1);
        let published_at = now - head.age.saturating_add(half);
        if piece.last {
            found(Received::Sample {
                publisher,
                form,
                sample: sample(head, published_at, piece.payload),
            });
        } else if head.total > spare || piece.payload.len() >= head.total {
            found(incoming.lost_one(&head, DropReason::TooLarge));
        } else {
            self.unfinished_bytes += head.total;
            // It is counted as used. A buffer that grows step by step would leave its smaller predecessors behind.
            let mut bytes = BytesMut::with_capacity(head.total);
            bytes.extend_from_slice(&piece.payload);
            incoming.unfinished = Some(Unfinished { head, published_at, since: now, bytes });
        }
        step
    }

    fn handle_next(
        &mut self,
        stream: u32,
        offset: usize,
        piece: &Piece,
        found: &mut impl FnMut(Received),
    ) {
        let Some(incoming) = find(&mut self.streams, stream) else {
            self.unknown_stream += 1;
            return;
        };
        let current = Some(incoming.next_number) == piece.number.checked_add(1);
        let Some(unfinished) = incoming.unfinished.as_mut().filter(|_| current) else { return };
        let end = offset.saturating_add(piece.payload.len());
        let fits = unfinished.bytes.len() == offset
            && (end == unfinished.head.total) == piece.last
            && end <= unfinished.head.total;
        if !fits {
            self.give_up(stream, DropReason::LinkLoss, found);
            return;
        }
        unfinished.bytes.extend_from_slice(&piece.payload);
        if piece.last
            && let Some(whole) = incoming.unfinished.take()
        {
            self.unfinished_bytes -= whole.head.total;
            let (publisher, form) = (incoming.publisher, incoming.form);
            let sample = sample(whole.head, whole.published_at, whole.bytes.freeze());
            found(Received::Sample { publisher, form, sample });
        }
    }

    fn find(&mut self, stream: u32) -> Option<&mut Incoming> {
        find(&mut self.streams, stream)
    }

    /// Closes the stream in the slot of `stream`, if any.
    fn close_place(&mut self, stream: u32, found: &mut impl FnMut(Received)) {
        let place = stream_place(stream) as usize;
        let old = self.streams.get(place).and_then(Option::as_ref).map(|incoming| incoming.id);
        if let Some(id) = old {
            self.give_up(id, DropReason::NoRoute, found);
            self.streams.get_mut(place).and_then(Option::take);
        }
    }

    /// Discards the unfinished sample of a stream, if any.
    fn give_up(&mut self, stream: u32, reason: DropReason, found: &mut impl FnMut(Received)) {
        if let Some(incoming) = find(&mut self.streams, stream)
            && let Some(unfinished) = incoming.unfinished.take()
        {
            self.unfinished_bytes -= unfinished.head.total;
            found(incoming.lost_one(&unfinished.head, reason));
        }
    }

    fn join_control(&mut self, total: Option<usize>, last: bool, piece: Bytes) -> Option<Bytes> {
        if let Some(total) = total {
            self.control = None;
            if last {
                return (piece.len() == total).then_some(piece);
            }
            if !self.room.fits(total) {
                // Without room the message is lost; the next digest repairs that.
                return None;
            }
            self.control = Some((total, BytesMut::with_capacity(total.min(TRUSTED_BYTES))));
        }
        let (total, bytes) = self.control.as_mut()?;
        bytes.extend_from_slice(&piece);
        if bytes.len() > *total {
            self.control = None;
            return None;
        }
        if !last {
            return None;
        }
        let (total, bytes) = self.control.take()?;
        (bytes.len() == total).then(|| bytes.freeze())
    }
}

fn find(streams: &mut [Option<Incoming>], stream: u32) -> Option<&mut Incoming> {
    let slot = streams.get_mut(stream_place(stream) as usize)?;
    slot.as_mut().filter(|incoming| incoming.id == stream)
}

struct Piece {
    number: u64,
    last: bool,
    payload: Bytes,
}

fn sample(head: SampleHead, published_at: Instant, payload: Bytes) -> RawSample {
    let SampleHead { seq, captured, shift, kind, encoding, doubt, attachment, .. } = head;
    let doubt = doubt.unwrap_or(RawSample::UNPROVEN);
    RawSample { seq, captured, shift, published_at, doubt, kind, encoding, payload, attachment }
}

#[cfg(test)]
#[path = "receive/tests.rs"]
mod tests;
