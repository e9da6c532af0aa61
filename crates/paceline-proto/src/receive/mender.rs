//! Reception on carriers that may lose frames: puts samples and control messages in order.

use super::assembly::Assembly;
use super::room::{Begun, Room};
use super::sorter::{Came, Missing, Sorted, Sorter};
use super::{Received, sample};
use crate::form::Form;
use crate::ids::PublisherId;
use crate::reason::DropReason;
use crate::wire::NUMBER_STEP_MAX;
use crate::wire::ack::Arrivals;
use crate::wire::codec::WireError;
use crate::wire::segment::{CONTROL_BYTES_MAX, Place, Retransmission, Segment, stream_place};
use bytes::Bytes;
use paceline_sched::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// The estimated memory of a stream without samples, in bytes.
const STREAM_COST: usize = 2 * size_of::<Stream>();
/// The maximum number of buffered control messages that wait for an earlier one.
const MESSAGES_MAX: u64 = 4_096;
/// The maximum number of bytes of these messages.
const MESSAGE_BYTES_MAX: usize = 2 * CONTROL_BYTES_MAX;
/// The reordering threshold: a missing frame this far behind the newest one was lost.
const OVERTAKEN_FRAMES: u64 = 3;

#[derive(Debug)]
struct Stream {
    id: u32,
    publisher: PublisherId,
    form: Form,
    sorter: Sorter,
}

/// Reassembles the frames of one neighbour on a carrier that may lose them.
#[derive(Debug, Default)]
pub(super) struct Mender {
    /// Streams by slot.
    streams: BTreeMap<u32, Stream>,
    bytes: usize,
    messages: BTreeMap<u64, Assembly>,
    next_message: u64,
    message_bytes: usize,
    /// The slots of streams with buffered samples.
    blocked: BTreeSet<u32>,
    pub(super) unknown_stream: u64,
    sorted: Vec<Sorted>,
}

/// The common properties of all segments of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) now: Instant,
    pub(super) frame: u64,
    /// The length of the frame.
    pub(super) bytes: usize,
    pub(super) half_round_trip: Duration,
}

impl Mender {
    /// Processes a segment. Returns `false` if it is out of order, so that its frame must count as lost.
    ///
    /// # Errors
    /// Returns [`WireError::TooLarge`] for a sample number that is too far ahead.
    pub(super) fn handle_segment(
        &mut self,
        at: Arrival,
        segment: Segment,
        room: &Room,
        found: &mut impl FnMut(Received),
    ) -> Result<bool, WireError> {
        if let Segment::Data { stream, number, .. } | Segment::Abort { stream, number } = segment {
            self.check_step(stream, number)?;
        }
        Ok(match segment {
            Segment::Data { stream, number, place, last, payload } => {
                let (head, offset) = match place {
                    Place::First(head) => (Some(head), 0),
                    Place::At(offset) => (None, offset),
                };
                let half_round_trip = at.half_round_trip;
                // A small part of a frame would keep all of it in memory.
                let small = payload.len() < at.bytes / 2;
                let payload = if small { Bytes::copy_from_slice(&payload) } else { payload };
                let came = Came { number, head, offset, last, payload, half_round_trip };
                self.handle_piece(at, stream, came, room.for_samples())
            }
            Segment::Abort { stream, number } => {
                let place = stream_place(stream);
                let Some(known) = find(&mut self.streams, stream) else { return Ok(true) };
                let before = known.sorter.bytes();
                let room = room.for_samples().saturating_sub(self.bytes);
                let in_turn = known.sorter.abort(at.now, at.frame, number, room);
                self.bytes = self.bytes - before + known.sorter.bytes();
                self.blocked.insert(place);
                in_turn
            }
            Segment::Open { stream, publisher, form, retransmission } => {
                if room.fits(STREAM_COST) || self.streams.contains_key(&stream_place(stream)) {
                    self.open(stream, publisher, form, retransmission.unwrap_or_default(), found);
                }
                true
            }
            Segment::Close { stream, end } => {
                if find(&mut self.streams, stream).is_some() {
                    let step = self.check_step(stream, end);
                    let end = step.as_ref().ok().map(|()| end);
                    self.close(stream_place(stream), end, found);
                    step?;
                }
                true
            }
            Segment::Part { number, total, offset, payload } => {
                self.handle_part((number, total, offset), payload, room, found)
            }
            // Control is not used on carriers that may lose frames.
            Segment::Control { .. } | Segment::Padding { .. } => true,
        })
    }

    /// Refuses a number that is too far ahead: it would report everything before it as lost.
    fn check_step(&mut self, stream: u32, number: u64) -> Result<(), WireError> {
        let Some(known) = find(&mut self.streams, stream) else { return Ok(()) };
        let max = known.sorter.next().saturating_add(NUMBER_STEP_MAX);
        if number > max {
            return Err(WireError::TooLarge { field: "sample number", value: number, max });
        }
        Ok(())
    }

    fn handle_piece(&mut self, at: Arrival, stream: u32, came: Came, most: usize) -> bool {
        let room = most.saturating_sub(self.bytes);
        let Some(known) = find(&mut self.streams, stream) else {
            self.unknown_stream += 1;
            return true;
        };
        let before = known.sorter.bytes();
        let in_turn = known.sorter.put(at.now, at.frame, came, room);
        self.bytes = self.bytes - before + known.sorter.bytes();
        self.blocked.insert(stream_place(stream));
        in_turn
    }

    fn open(
        &mut self,
        id: u32,
        publisher: PublisherId,
        form: Form,
        retransmission: Retransmission,
        found: &mut impl FnMut(Received),
    ) {
        let place = stream_place(id);
        if let Some(known) = self.streams.get_mut(&place) {
            if known.id == id && known.publisher == publisher && known.form == form {
                let mut sorted = core::mem::take(&mut self.sorted);
                let before = known.sorter.bytes();
                known.sorter.set_retransmission(retransmission, &mut sorted);
                self.bytes = self.bytes - before + known.sorter.bytes();
                hand_over(known, &mut sorted, found);
                self.sorted = sorted;
                return;
            }
            if known.id > id {
                return; // reordered behind its successor
            }
            self.close(place, None, found);
        }
        let mut stream = Stream { id, publisher, form, sorter: Sorter::default() };
        let mut sorted = core::mem::take(&mut self.sorted);
        stream.sorter.set_retransmission(retransmission, &mut sorted);
        hand_over(&stream, &mut sorted, found);
        self.sorted = sorted;
        self.streams.insert(place, stream);
    }

    /// Closes a stream. `end` is the number that its next sample would have had, if known.
    fn close(&mut self, place: u32, end: Option<u64>, found: &mut impl FnMut(Received)) {
        self.blocked.remove(&place);
        let Some(mut stream) = self.streams.remove(&place) else { return };
        self.bytes -= stream.sorter.bytes();
        let mut sorted = core::mem::take(&mut self.sorted);
        stream.sorter.flush(DropReason::NoRoute, &mut sorted);
        stream.sorter.skip_to(end.unwrap_or_default(), &mut sorted);
        hand_over(&stream, &mut sorted, found);
        self.sorted = sorted;
    }

    /// Discards unfinished samples after the sender has restarted. The numbering of its streams continues.
    pub(super) fn forget(&mut self, found: &mut impl FnMut(Received)) {
        let mut sorted = core::mem::take(&mut self.sorted);
        let mut streams = core::mem::take(&mut self.streams);
        for stream in streams.values_mut() {
            stream.sorter.part(&mut sorted);
            hand_over(stream, &mut sorted, found);
        }
        *self = Self { streams, unknown_stream: self.unknown_stream, sorted, ..Self::default() };
    }

    /// Delivers samples that need not wait any longer.
    pub(super) fn release(
        &mut self,
        now: Instant,
        arrivals: &Arrivals,
        found: &mut impl FnMut(Received),
    ) {
        if self.blocked.is_empty() {
            return;
        }
        let missing = missing(arrivals);
        let mut sorted = core::mem::take(&mut self.sorted);
        let Self { streams, blocked, bytes, .. } = self;
        blocked.retain(|place| {
            let Some(stream) = streams.get_mut(place) else { return false };
            let before = stream.sorter.bytes();
            stream.sorter.release(now, missing, &mut sorted);
            *bytes = *bytes - before + stream.sorter.bytes();
            hand_over(stream, &mut sorted, found);
            stream.sorter.next_timeout() < Instant::FAR
        });
        self.sorted = sorted;
    }

    /// Returns the time at which [`Self::release`] has work if nothing arrives before.
    pub(super) fn next_timeout(&self) -> Instant {
        let blocked = self.blocked.iter().filter_map(|place| self.streams.get(place));
        blocked.map(|stream| stream.sorter.next_timeout()).min().unwrap_or(Instant::FAR)
    }

    /// Returns the buffer limit for a message. The next one in order always has room, even if later messages
    /// fill their limit.
    const fn room_for_message(&self, number: u64) -> usize {
        if number > self.next_message { MESSAGE_BYTES_MAX } else { 2 * MESSAGE_BYTES_MAX }
    }

    /// Returns the memory of its samples, and of everything else.
    pub(super) fn cost(&self) -> (usize, usize) {
        (self.bytes, self.message_bytes + self.streams.len() * STREAM_COST)
    }

    /// Returns the arrival time of the oldest sample that waits, and of the newest one that is not whole.
    pub(super) fn ages(&self) -> (Begun, Begun) {
        let all = || self.streams.iter();
        let oldest = all().filter_map(|(place, it)| Some((it.sorter.oldest()?, *place))).min();
        let newest = all().filter_map(|(place, it)| Some((it.sorter.newest()?.0, *place))).max();
        (oldest, newest)
    }

    /// Delivers the first sample of a stream, or drops it if it is not whole.
    pub(super) fn drop_oldest(&mut self, place: u32, found: &mut impl FnMut(Received)) {
        self.free(place, |sorter, sorted| sorter.drop_first(DropReason::QueueFull, sorted), found);
    }

    /// Drops the newest sample of a stream that is not whole.
    pub(super) fn refuse_newest(&mut self, place: u32, found: &mut impl FnMut(Received)) {
        self.free(place, |sorter, _| sorter.refuse_newest(DropReason::TooLarge), found);
    }

    fn free(
        &mut self,
        place: u32,
        free: impl FnOnce(&mut Sorter, &mut Vec<Sorted>),
        found: &mut impl FnMut(Received),
    ) {
        let Some(stream) = self.streams.get_mut(&place) else { return };
        let mut sorted = core::mem::take(&mut self.sorted);
        let before = stream.sorter.bytes();
        free(&mut stream.sorter, &mut sorted);
        self.bytes = self.bytes - before + stream.sorter.bytes();
        hand_over(stream, &mut sorted, found);
        self.sorted = sorted;
        self.blocked.insert(place);
    }

    fn handle_part(
        &mut self,
        (number, total, offset): (u64, usize, usize),
        piece: Bytes,
        room: &Room,
        found: &mut impl FnMut(Received),
    ) -> bool {
        if number < self.next_message {
            return true;
        }
        // Without room the part is refused, so that the sender retransmits it.
        if number - self.next_message >= MESSAGES_MAX
            || self.message_bytes + piece.len() > self.room_for_message(number)
            || !room.fits(piece.len())
        {
            return false;
        }
        let message = self.messages.entry(number).or_default();
        let before = message.cost();
        let agrees = message.set_total(total) && message.put(offset, piece);
        self.message_bytes = self.message_bytes - before + message.cost();
        if !agrees {
            return true;
        }
        while let Some(first) = self.messages.first_entry() {
            if *first.key() != self.next_message || !first.get().is_whole() {
                break;
            }
            self.next_message += 1;
            let message = first.remove();
            self.message_bytes -= message.cost();
            found(Received::Control(message.join()));
        }
        true
    }
}

fn hand_over(stream: &Stream, sorted: &mut Vec<Sorted>, found: &mut impl FnMut(Received)) {
    let (publisher, form) = (stream.publisher, stream.form);
    for item in sorted.drain(..) {
        found(match item {
            Sorted::Sample(head, published_at, payload) => {
                Received::Sample { publisher, form, sample: sample(head, published_at, payload) }
            }
            Sorted::Lost(lost) => Received::Lost { publisher, form, lost },
        });
    }
}

fn find(streams: &mut BTreeMap<u32, Stream>, stream: u32) -> Option<&mut Stream> {
    streams.get_mut(&stream_place(stream)).filter(|known| known.id == stream)
}

/// Returns the missing frames that may merely be reordered.
fn missing(arrivals: &Arrivals) -> Missing {
    Missing { first: arrivals.missing_among(OVERTAKEN_FRAMES) }
}
