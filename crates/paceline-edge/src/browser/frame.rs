//! The messages with samples to a browser, and its acknowledgements and samples.
//!
//! Numbers are little-endian, times are microseconds of the clock of the serving node as 64-bit floating-point numbers, which
//! are exact to a microsecond for 285 years.
//!
//! | message to the browser | fields |
//! | --- | --- |
//! | | number 4 · time of sending 8 · parts |
//! | part 1, first | stream 4 · sample number 4 · flags 1 (1 last, 2 attachment, 4 bound) · published 8 · *4:* bound of the error 8 · captured, UTC in microseconds 8 · kind 1 · sequence number 8 · length 1 and encoding · *2:* length 2 and attachment · total 4 · length 4 and bytes |
//! | part 2, further | stream 4 · sample number 4 · flags 1 (1 last) · offset 4 · length 4 and bytes |
//! | part 3, given up | stream 4 · sample number 4 |
//! | part 0 | padding up to the end |
//!
//! A message is as long as the frame of the link that it stands for, so that its path is measured with what the link counts.
//! The browser answers with messages 1, an acknowledgement (count 2 · numbers 4 each), and 2, a sample of its own (publisher 4 · published 8 ·
//! bound of the error 8 · captured 8 · kind 1 · bytes).

use bytes::{Buf as _, Bytes};
use paceline_proto::wire::frame::FrameHeader;
use paceline_proto::wire::segment::{Place, SampleHead, Segment, stream_place};
use paceline_proto::wire::{Reader, WireError};
use paceline_proto::{Form, Kind, PublisherId, Retransmit};
use paceline_sched::{Duration, Instant};

/// The first byte of an acknowledgement of a browser.
const ACK: u8 = 1;
/// The first byte of a sample of a browser.
const SAMPLE: u8 = 2;
/// The bytes before the payload of a sample.
const SAMPLE_HEAD: usize = 1 + 4 + 3 * 8 + 1;
/// The bytes before the parts of a message.
const HEAD: usize = 4 + 8;
/// The longest wait for lost samples.
const HOLD_MAX: Duration = Duration::from_secs(2);
/// The most acknowledgements in a message.
const ACKS_MAX: usize = 4_096;

/// A sample that a browser publishes.
#[derive(Clone, Debug, PartialEq)]
pub struct BrowserSample {
    /// The browser's number of the publisher.
    pub publisher: u32,
    /// The time since the browser published it.
    pub age: Duration,
    /// The true age exceeds `age` by at most this.
    pub bound: Duration,
    /// The capture time since 1970 by the browser's clock.
    pub captured: Duration,
    /// The kind.
    pub kind: Kind,
    /// The message.
    pub payload: Bytes,
}

/// A stream that a frame opens or closes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StreamChange {
    /// The stream carries the samples of a publisher in a form. Over a carrier that loses messages, a sample waits for lost ones
    /// before it for the last time, zero if nothing is repaired.
    Opened(u32, PublisherId, Form, Duration),
    /// The stream has ended.
    Closed(u32),
}

/// A message to the browser, from a frame of the link.
#[derive(Debug, Default)]
pub struct OutMessage {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The streams that the frame opens or closes.
    pub streams: Vec<StreamChange>,
}

/// A message of a browser.
#[derive(Clone, Debug, PartialEq)]
pub enum InMessage {
    /// These messages have arrived.
    Ack(Vec<u32>),
    /// A sample of one of its publishers.
    Sample(BrowserSample),
}

/// Writes a frame that leaves at `now` as the message with this number.
///
/// # Errors
/// Returns an error if the frame is malformed, which none of a link is.
pub fn write(now: Instant, number: u32, frame: &Bytes) -> Result<OutMessage, WireError> {
    let mut out =
        OutMessage { bytes: Vec::with_capacity(frame.len().max(HEAD)), streams: Vec::new() };
    out.bytes.extend_from_slice(&number.to_le_bytes());
    put_time(micros(now), &mut out.bytes);
    let mut reader = Reader::new(frame.clone());
    let header = FrameHeader::read(&mut reader)?;
    while !reader.is_empty() && header.seq.is_some() {
        out.put(now, Segment::read(&mut reader)?);
    }
    let length = out.bytes.len().max(frame.len());
    out.bytes.resize(length, 0);
    Ok(out)
}

impl OutMessage {
    fn put(&mut self, now: Instant, segment: Segment) {
        match segment {
            Segment::Data { stream, number, place: Place::First(head), last, payload } => {
                self.begin(1, stream, number);
                put_head(now, &head, last, &mut self.bytes);
                self.bytes.extend_from_slice(&len(head.total));
                self.put_payload(&payload);
            }
            Segment::Data { stream, number, place: Place::At(offset), last, payload } => {
                self.begin(2, stream, number);
                self.bytes.push(u8::from(last));
                self.bytes.extend_from_slice(&len(offset));
                self.put_payload(&payload);
            }
            Segment::Abort { stream, number } => self.begin(3, stream, number),
            Segment::Open { stream, publisher, form, retransmission } => {
                let hold = retransmission
                    .filter(|retransmission| retransmission.retransmit != Retransmit::None);
                let hold = hold
                    .map(|retransmission| retransmission.hold.unwrap_or(HOLD_MAX).min(HOLD_MAX));
                let hold = hold.unwrap_or_default();
                self.streams.push(StreamChange::Opened(stream, publisher, form, hold));
            }
            Segment::Close { stream, end: _ } => self.streams.push(StreamChange::Closed(stream)),
            // The node of the browser handles these, and padding needs no content.
            Segment::Control { .. } | Segment::Part { .. } | Segment::Padding { .. } => {}
        }
    }

    /// A sample number is shortened: parts of a sample are never 2^32 samples apart.
    fn begin(&mut self, part: u8, stream: u32, number: u64) {
        self.bytes.push(part);
        self.bytes.extend_from_slice(&stream.to_le_bytes());
        let [a, b, c, d, ..] = number.to_le_bytes();
        self.bytes.extend_from_slice(&[a, b, c, d]);
    }

    fn put_payload(&mut self, payload: &Bytes) {
        self.bytes.extend_from_slice(&len(payload.len()));
        self.bytes.extend_from_slice(payload);
    }
}

fn put_head(now: Instant, head: &SampleHead, last: bool, out: &mut Vec<u8>) {
    let attachment = head.attachment.as_deref();
    let bound = head.doubt.map(|doubt| doubt.as_micros() as f64);
    out.push(u8::from(last) | u8::from(attachment.is_some()) << 1 | u8::from(bound.is_some()) << 2);
    put_time(micros(now) - head.age.as_micros() as f64, out);
    bound.iter().for_each(|bound| put_time(*bound, out));
    put_time((head.captured.nanos / 1_000) as f64, out);
    out.push(head.kind.code());
    out.extend_from_slice(&head.seq.to_le_bytes());
    let encoding = head.encoding.as_str().as_bytes();
    out.push(u8::try_from(encoding.len()).unwrap_or(u8::MAX));
    out.extend(encoding.iter().take(usize::from(u8::MAX)));
    if let Some(attachment) = attachment {
        out.extend_from_slice(&u16::try_from(attachment.len()).unwrap_or(u16::MAX).to_le_bytes());
        out.extend(attachment.iter().take(usize::from(u16::MAX)));
    }
}

/// Returns the place of a stream, which is below the most streams of a hop.
#[must_use]
pub const fn place(stream: u32) -> u32 {
    stream_place(stream)
}

/// Returns an instant in microseconds, as messages state it.
#[must_use]
pub fn micros(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1_000.0
}

fn put_time(micros: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(&micros.to_le_bytes());
}

fn len(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes()
}

/// Reads a binary message of a browser that arrives at `now`; `None` if it is malformed.
#[must_use]
pub fn read(now: Instant, mut bytes: Bytes) -> Option<InMessage> {
    match *bytes.first()? {
        ACK => {
            bytes.advance(1);
            let count = usize::from(bytes.try_get_u16_le().ok()?);
            if count > ACKS_MAX || bytes.len() != 4 * count {
                return None;
            }
            Some(InMessage::Ack((0..count).map_while(|_| bytes.try_get_u32_le().ok()).collect()))
        }
        SAMPLE if bytes.len() >= SAMPLE_HEAD => {
            bytes.advance(1);
            let publisher = bytes.try_get_u32_le().ok()?;
            let (published, bound) = (bytes.try_get_f64_le().ok()?, bytes.try_get_f64_le().ok()?);
            let captured = bytes.try_get_f64_le().ok()?;
            let kind = Kind::from_code(bytes.try_get_u8().ok()?)?;
            // An age below zero is an error of its clock, within the bound or not.
            let age = whole(micros(now) - published)?;
            let bound = whole(bound)?;
            let captured = whole(captured)?;
            Some(InMessage::Sample(BrowserSample {
                publisher,
                age,
                bound,
                captured,
                kind,
                payload: bytes,
            }))
        }
        _ => None,
    }
}

/// Returns a time in microseconds; zero for negative ones, and `None` for those that are no time.
fn whole(micros: f64) -> Option<Duration> {
    /// A hundred years.
    const MOST: f64 = 3.2e15;
    if !micros.is_finite() || micros > MOST {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the limits above"
    )]
    let nanos = (micros.max(0.0) * 1_000.0) as u64;
    Some(Duration::from_nanos(nanos))
}
