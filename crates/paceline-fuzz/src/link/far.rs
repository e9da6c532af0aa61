//! The other end of a hop: a real receiver, and a model of the events that it must report.

use bytes::Bytes;
use paceline_proto::receive::{Heard, Received, Receiver};
use paceline_proto::wire::ack::Ack;
use paceline_proto::wire::frame::FrameHeader;
use paceline_proto::wire::segment::{Place, Segment};
use paceline_proto::{DropReason, Form, PublisherId, RawSample};
use paceline_sched::{Duration, Instant};
use std::collections::BTreeMap;

/// An event in a received frame.
#[derive(Debug, Eq, PartialEq)]
enum Found {
    Sample(PublisherId, Form, u64),
    Lost(PublisherId, u64, DropReason),
    Control(usize),
}

/// A stream as the other end knows it.
#[derive(Debug)]
struct Known {
    id: u32,
    publisher: PublisherId,
    form: Form,
    next_number: u64,
    /// The partly received sample: its sequence number and the bytes received so far.
    begun: Option<(u64, usize)>,
    /// The sender restarted after the last sample.
    parted: bool,
}

impl Known {
    /// Reports the missing samples below `number` as lost.
    fn skip_to(&mut self, number: u64, found: &mut Vec<Found>) {
        let reason = if self.parted { DropReason::LinkDown } else { DropReason::LinkLoss };
        self.parted = false;
        if number > self.next_number {
            found.push(Found::Lost(self.publisher, number - self.next_number, reason));
            self.next_number = number;
        }
    }
}

pub(super) struct Far {
    receiver: Receiver,
    pub(super) epoch: u32,
    /// The sender's latest known epoch.
    pub(super) knows: u32,
    pub(super) owed: Option<Ack>,
    next_seq: u64,
    /// Keyed by the stream's number on the wire.
    streams: BTreeMap<u32, Known>,
    /// The partly received control message: bytes received, and its total length.
    control: Option<(usize, usize)>,
    /// Control messages that arrived.
    pub(super) messages: Vec<Bytes>,
}

impl Far {
    pub(super) fn new(epoch: u32) -> Self {
        Self {
            receiver: Receiver::new(),
            epoch,
            knows: 0,
            owed: None,
            next_seq: 0,
            streams: BTreeMap::new(),
            control: None,
            messages: Vec::new(),
        }
    }

    /// Returns the header fields of its next answer.
    pub(super) fn heard(&self) -> Heard {
        let (epoch, known, ack) = (self.epoch, self.knows, self.owed);
        Heard { epoch, known, ack, ..Heard::default() }
    }

    /// Receives a frame. Its events must be those of the model, and each sample must equal the one in `book`.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        frame: &Bytes,
        header: &FrameHeader,
        segments: &[Segment],
        book: &BTreeMap<u64, RawSample>,
    ) {
        let expected = self.expect(header, segments);
        let mut found = Vec::new();
        let messages = &mut self.messages;
        let heard = self.receiver.handle_frame(now, self.epoch, frame.clone(), |received| {
            found.push(match received {
                Received::Sample { publisher, form, sample } => {
                    check_sample(&sample, &book[&sample.seq]);
                    Found::Sample(publisher, form, sample.seq)
                }
                Received::Lost { publisher, lost, .. } => {
                    Found::Lost(publisher, lost.samples, lost.reason)
                }
                Received::Control(message) => {
                    messages.push(message.clone());
                    Found::Control(message.len())
                }
            });
        });
        assert_eq!(found, expected);
        let heard = heard.expect("a frame of ours is understood");
        assert_eq!((heard.epoch, heard.known), (header.epoch, header.known));
        self.owed = heard.owed.or(self.owed);
    }

    fn expect(&mut self, header: &FrameHeader, segments: &[Segment]) -> Vec<Found> {
        let mut found = Vec::new();
        if header.epoch > self.knows {
            for known in self.streams.values_mut() {
                known.parted = true;
                let lost = known.begun.take().map(|_| DropReason::LinkDown);
                found.extend(lost.map(|reason| Found::Lost(known.publisher, 1, reason)));
            }
            (self.knows, self.next_seq) = (header.epoch, 0);
            (self.control, self.owed) = (None, None);
        }
        let Some(seq) = header.seq.filter(|_| header.known == self.epoch) else { return found };
        if seq > self.next_seq {
            self.control = None; // a frame is missing, and it may have contained a piece
        }
        self.next_seq = seq + 1;
        segments.iter().for_each(|segment| self.expect_of(segment, &mut found));
        found
    }

    fn expect_of(&mut self, segment: &Segment, found: &mut Vec<Found>) {
        match segment {
            Segment::Open { stream, publisher, form, .. } => {
                self.give_up(*stream, DropReason::LinkLoss, found);
                self.open(*stream, *publisher, *form, found);
            }
            Segment::Close { stream, end } => {
                if self.known(*stream).is_some() {
                    self.give_up(*stream, DropReason::NoRoute, found);
                    self.known(*stream).unwrap().skip_to(*end, found);
                    self.streams.remove(&(stream % 4_096));
                }
            }
            Segment::Abort { stream, number } => {
                if self.known(*stream).is_some_and(|known| known.next_number == number + 1) {
                    self.give_up(*stream, DropReason::DeadlineMissed, found);
                }
            }
            Segment::Data { stream, number, place: Place::First(head), last, payload } => {
                self.give_up(*stream, DropReason::LinkLoss, found);
                let Some(known) = self.known(*stream) else { return };
                known.skip_to(*number, found);
                known.next_number = number + 1;
                match last {
                    true => found.push(Found::Sample(known.publisher, known.form, head.seq)),
                    false => known.begun = Some((head.seq, payload.len())),
                }
            }
            Segment::Data { stream, number, place: Place::At(offset), last, payload } => {
                let Some(known) = self.known(*stream) else { return };
                let Some((seq, received)) = known.begun.filter(|_| known.next_number == number + 1)
                else {
                    return;
                };
                if received != *offset {
                    return self.give_up(*stream, DropReason::LinkLoss, found);
                }
                known.begun = (!last).then_some((seq, received + payload.len()));
                found.extend(last.then_some(Found::Sample(known.publisher, known.form, seq)));
            }
            Segment::Control { total, last, payload } => {
                self.expect_control(*total, *last, payload.len(), found);
            }
            Segment::Part { .. } | Segment::Padding { .. } => {
                panic!("{segment:?} where nothing is lost")
            }
        }
    }

    fn expect_control(
        &mut self,
        total: Option<usize>,
        last: bool,
        len: usize,
        found: &mut Vec<Found>,
    ) {
        if let Some(total) = total {
            self.control = Some((0, total));
        }
        let Some((received, total)) = self.control else { return };
        self.control = (!last).then_some((received + len, total));
        found.extend((last && received + len == total).then_some(Found::Control(total)));
    }

    fn open(&mut self, id: u32, publisher: PublisherId, form: Form, found: &mut Vec<Found>) {
        let place = id % 4_096;
        if let Some(other) = self.streams.get(&place).map(|known| known.id) {
            if other == id {
                return;
            }
            self.give_up(other, DropReason::NoRoute, found);
        }
        let known = Known { id, publisher, form, next_number: 0, begun: None, parted: false };
        self.streams.insert(place, known);
    }

    fn known(&mut self, id: u32) -> Option<&mut Known> {
        self.streams.get_mut(&(id % 4_096)).filter(|known| known.id == id)
    }

    fn give_up(&mut self, id: u32, reason: DropReason, found: &mut Vec<Found>) {
        if let Some(known) = self.known(id)
            && known.begun.take().is_some()
        {
            found.push(Found::Lost(known.publisher, 1, reason));
        }
    }
}

/// Checks that a sample arrived unchanged and that its age did not shrink.
fn check_sample(got: &RawSample, sent: &RawSample) {
    assert_eq!((got.seq, got.captured), (sent.seq, sent.captured));
    assert_eq!(got.attachment, sent.attachment, "sample {}", sent.seq);
    assert_eq!((got.kind, &got.encoding), (sent.kind, &sent.encoding));
    assert!(got.payload == sent.payload, "sample {}: another payload", sent.seq);
    assert!(
        got.published_at <= sent.published_at + Duration::from_micros(1),
        "sample {} became younger",
        sent.seq
    );
}
