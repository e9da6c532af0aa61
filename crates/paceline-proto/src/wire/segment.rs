//! Segments: samples, and pieces of samples, inside a frame.

mod form;

pub(crate) use form::{read_audio, read_rate, write_audio, write_rate};
pub use form::{read_encoding, read_form, write_encoding, write_form};

use super::codec::{Reader, WireError, Writer, varint_len};
use super::{NUMBER_MAX, SAMPLE_BYTES_MAX};
use crate::form::Form;
use crate::ids::{NodeId, PublisherId};
use crate::link::STREAMS_MAX;
use crate::retransmit::Retransmit;
use crate::sample::{ATTACHMENT_BYTES_MAX, Encoding, Kind, Timestamp};
use bytes::Bytes;
use paceline_sched::Duration;
use std::sync::Arc;

const DATA: u8 = 1;
const CONTROL: u8 = 2;
const OPEN: u8 = 3;
const CLOSE: u8 = 4;
const ABORT: u8 = 5;
const PART: u8 = 6;
const KIND: u8 = 0x0f;
const FIRST: u8 = 0x10;
const LAST: u8 = 0x20;
const ATTACHED: u8 = 0x40;

/// What the first segment of a sample says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleHead {
    /// Bytes of the whole payload.
    pub total: usize,
    /// The publisher's sequence number.
    pub seq: u64,
    /// When it was captured.
    pub captured: Timestamp,
    /// Its kind.
    pub kind: Kind,
    /// Its media type.
    pub encoding: Encoding,
    /// How old it is when this frame has left the link.
    pub age: Duration,
    /// What a program put beside the payload.
    pub attachment: Option<Arc<[u8]>>,
}

/// Where in its sample a segment belongs.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// At the front, with the sample's head.
    First(SampleHead),
    /// This many bytes in.
    At(usize),
}

/// One segment, as parsed.
#[derive(Clone, Debug, PartialEq)]
pub enum Segment {
    /// A piece of a sample.
    Data {
        /// The stream's number on this hop.
        stream: u32,
        /// The sample's number on this stream: one up for each sample whose sending began.
        number: u64,
        /// Where the piece belongs.
        place: Place,
        /// True for the last piece.
        last: bool,
        /// The piece.
        payload: Bytes,
    },
    /// A piece of a control message; they follow each other in order.
    Control {
        /// Bytes of the whole message at its first piece, else `None`.
        total: Option<usize>,
        /// True for the last piece.
        last: bool,
        /// The piece.
        payload: Bytes,
    },
    /// From now on `stream` carries this publisher's samples in this form.
    Open {
        /// The stream's number on this hop.
        stream: u32,
        /// Whose samples.
        publisher: PublisherId,
        /// In which form.
        form: Form,
        /// How it is mended; only where frames may be lost.
        mend: Option<Mend>,
    },
    /// `stream` carries no more samples.
    Close {
        /// The stream's number on this hop.
        stream: u32,
        /// The number that the stream's next sample would have had: any sample below it that the receiver has not
        /// seen was lost.
        end: u64,
    },
    /// The rest of a sample that has begun will not come: it could not arrive in time.
    Abort {
        /// The stream's number on this hop.
        stream: u32,
        /// The sample's number on this stream.
        number: u64,
    },
    /// A piece of a control message where frames may be lost: it says itself where it belongs.
    Part {
        /// The message's number on this hop: one up for each.
        number: u64,
        /// Bytes of the whole message.
        total: usize,
        /// Bytes of the message before this piece.
        offset: usize,
        /// The piece.
        payload: Bytes,
    },
}

/// How a stream is mended where frames may be lost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Mend {
    /// What is done about what was lost.
    pub retransmit: Retransmit,
    /// The number of the stream's first sample since the hop came up: earlier ones are not sent again.
    pub first: u64,
    /// The age at which a sample is delivered although one before it is missing; none if it has time.
    pub hold: Option<Duration>,
}

/// A stream's number on the wire: its place, below [`STREAMS_MAX`], and how many streams had the place
/// before. So what comes for a stream is never taken for its successor's or predecessor's, although
/// the frames that closed the one and opened the other were lost.
#[must_use]
pub const fn stream_id(place: u32, generation: u32) -> u32 {
    place % STREAMS_MAX + (generation % (u32::MAX / STREAMS_MAX)) * STREAMS_MAX
}

/// The place of a stream by its number on the wire.
#[must_use]
pub const fn stream_place(id: u32) -> u32 {
    id % STREAMS_MAX
}

/// The longest control message.
pub const CONTROL_BYTES_MAX: usize = 4 << 20;

impl Segment {
    /// Reads the next segment of a frame.
    ///
    /// # Errors
    /// [`WireError`] for what is wrong; the rest of the frame cannot be read then.
    pub fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let first_byte = reader.u8("segment type")?;
        let flags = first_byte & !KIND;
        let kind = first_byte & KIND;
        let allowed = match kind {
            DATA if flags & FIRST != 0 => FIRST | LAST | ATTACHED,
            DATA | CONTROL => FIRST | LAST,
            OPEN => FIRST,
            _ => 0,
        };
        if flags & !allowed != 0 {
            return Err(WireError::Invalid("segment flags"));
        }
        let (first, last) = (flags & FIRST != 0, flags & LAST != 0);
        match kind {
            DATA => read_data(reader, first, last, flags & ATTACHED != 0),
            CONTROL => {
                let total = if first {
                    Some(reader.len(CONTROL_BYTES_MAX, "message length")?)
                } else {
                    None
                };
                let len = reader.len(CONTROL_BYTES_MAX, "segment length")?;
                Ok(Self::Control { total, last, payload: reader.bytes(len, "message")? })
            }
            OPEN => Ok(Self::Open {
                stream: reader.varint32("stream")?,
                publisher: PublisherId {
                    node: NodeId(reader.u64("node")?),
                    index: reader.varint32("publisher")?,
                },
                form: read_form(reader)?,
                mend: if first { Some(read_mend(reader)?) } else { None },
            }),
            CLOSE => Ok(Self::Close {
                stream: reader.varint32("stream")?,
                end: reader.varint_max(NUMBER_MAX, "end")?,
            }),
            ABORT => Ok(Self::Abort {
                stream: reader.varint32("stream")?,
                number: reader.varint_max(NUMBER_MAX, "sample number")?,
            }),
            PART => read_part(reader),
            _ => Err(WireError::Invalid("segment type")),
        }
    }
}

fn read_part(reader: &mut Reader) -> Result<Segment, WireError> {
    let number = reader.varint_max(NUMBER_MAX, "message number")?;
    let total = reader.len(CONTROL_BYTES_MAX, "message length")?;
    let offset = reader.len(CONTROL_BYTES_MAX, "offset")?;
    let len = reader.len(CONTROL_BYTES_MAX, "segment length")?;
    if offset + len > total {
        return Err(WireError::Invalid("segment length"));
    }
    Ok(Segment::Part { number, total, offset, payload: reader.bytes(len, "message")? })
}

fn read_mend(reader: &mut Reader) -> Result<Mend, WireError> {
    let code = reader.u8("retransmission")?;
    let retransmit = Retransmit::from_code(code).ok_or(WireError::Invalid("retransmission"))?;
    let micros = reader.varint_max(u64::MAX / 1_000, "hold")?;
    let first = reader.varint_max(NUMBER_MAX, "first sample")?;
    Ok(Mend { retransmit, first, hold: (micros > 0).then(|| Duration::from_micros(micros)) })
}

fn read_data(
    reader: &mut Reader,
    first: bool,
    last: bool,
    attached: bool,
) -> Result<Segment, WireError> {
    let stream = reader.varint32("stream")?;
    let number = reader.varint_max(NUMBER_MAX, "sample number")?;
    let head = if first { Some(read_head(reader, last, attached)?) } else { None };
    let offset = if first { 0 } else { reader.len(SAMPLE_BYTES_MAX, "offset")? };
    let len = reader.len(SAMPLE_BYTES_MAX, "segment length")?;
    let payload = reader.bytes(len, "payload")?;
    let place = match head {
        Some(mut head) => {
            head.total = if last { len } else { head.total };
            Place::First(head)
        }
        None => Place::At(offset),
    };
    Ok(Segment::Data { stream, number, place, last, payload })
}

fn read_head(reader: &mut Reader, last: bool, attached: bool) -> Result<SampleHead, WireError> {
    Ok(SampleHead {
        // A sample in one piece says its length once, as that piece's.
        total: if last { 0 } else { reader.len(SAMPLE_BYTES_MAX, "sample length")? },
        seq: reader.varint_max(NUMBER_MAX, "sample seq")?,
        captured: Timestamp { nanos: reader.u64("captured")?, error: reader.u8("clock error")? },
        kind: Kind::from_code(reader.u8("kind")?).ok_or(WireError::Invalid("kind"))?,
        encoding: read_encoding(reader)?,
        age: Duration::from_micros(reader.varint_max(u64::MAX / 1_000, "age")?),
        attachment: if attached { Some(read_attachment(reader)?) } else { None },
    })
}

fn read_attachment(reader: &mut Reader) -> Result<Arc<[u8]>, WireError> {
    let len = reader.len(ATTACHMENT_BYTES_MAX, "attachment length")?;
    // A copy: it would keep the whole frame otherwise, for as long as somebody holds the sample.
    Ok(reader.bytes(len, "attachment")?[..].into())
}

/// The head of a data segment, to be written in front of its payload.
#[derive(Clone, Debug)]
pub struct DataHead<'a> {
    /// The stream's number on this hop.
    pub stream: u32,
    /// The sample's number on this stream.
    pub number: u64,
    /// The sample's head, for its first piece.
    pub first: Option<&'a SampleHead>,
    /// Bytes of the sample before this piece.
    pub offset: usize,
    /// True for the last piece.
    pub last: bool,
    /// Bytes of this piece.
    pub len: usize,
}

impl DataHead<'_> {
    /// Appends the head to `out`; the payload follows.
    pub fn write(&self, out: &mut Vec<u8>) {
        let first = if self.first.is_some() { FIRST } else { 0 };
        let attachment = self.first.and_then(attachment);
        let attached = if attachment.is_some() { ATTACHED } else { 0 };
        out.put_u8(DATA | first | attached | if self.last { LAST } else { 0 });
        out.put_varint(u64::from(self.stream));
        out.put_varint(self.number);
        match self.first {
            Some(head) => {
                if !self.last {
                    out.put_varint(head.total as u64);
                }
                out.put_varint(head.seq);
                out.put_u64(head.captured.nanos);
                out.put_u8(head.captured.error);
                out.put_u8(head.kind.code());
                write_encoding(&head.encoding, out);
                out.put_varint(head.age.as_micros());
                if let Some(bytes) = attachment {
                    out.put_varint(bytes.len() as u64);
                    out.extend_from_slice(bytes);
                }
            }
            None => out.put_varint(self.offset as u64),
        }
        out.put_varint(self.len as u64);
    }

    /// The most bytes that [`Self::write`] appends for a sample of this encoding.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        let ids = 1 + varint_len(u64::from(self.stream)) + varint_len(self.number) + 5;
        match self.first {
            Some(head) => {
                let attached = attachment(head).map_or(0, |bytes| 2 + bytes.len());
                ids + 5 + 10 + 8 + 1 + 1 + 2 + other_len(&head.encoding) + 10 + attached
            }
            None => ids + 5,
        }
    }
}

/// What is beside the payload, as much of it as the wire takes.
fn attachment(head: &SampleHead) -> Option<&[u8]> {
    head.attachment.as_deref().map(|bytes| bytes.get(..ATTACHMENT_BYTES_MAX).unwrap_or(bytes))
}

fn other_len(encoding: &Encoding) -> usize {
    if let Encoding::Other(name) = encoding { Encoding::cut(name).len() + 1 } else { 0 }
}

/// The head of a control segment.
#[derive(Clone, Copy, Debug)]
pub struct ControlHead {
    /// Bytes of the whole message, for its first piece.
    pub total: Option<usize>,
    /// True for the last piece.
    pub last: bool,
    /// Bytes of this piece.
    pub len: usize,
}

impl ControlHead {
    /// The most bytes that [`Self::write`] appends.
    pub const BYTES_MAX: usize = 1 + 4 + 4;

    /// Appends the head to `out`; the piece follows.
    pub fn write(&self, out: &mut Vec<u8>) {
        let first = if self.total.is_some() { FIRST } else { 0 };
        out.put_u8(CONTROL | first | if self.last { LAST } else { 0 });
        if let Some(total) = self.total {
            out.put_varint(total as u64);
        }
        out.put_varint(self.len as u64);
    }
}

/// Appends an [`Segment::Open`].
pub fn write_open(stream: u32, publisher: PublisherId, form: &Form, out: &mut Vec<u8>) {
    out.put_u8(OPEN);
    out.put_varint(u64::from(stream));
    out.put_u64(publisher.node.0);
    out.put_varint(u64::from(publisher.index));
    write_form(form, out);
}

/// Appends an [`Segment::Open`] of a stream that is mended. A hold of less than a microsecond is none.
pub fn write_open_mended(
    stream: u32,
    publisher: PublisherId,
    form: &Form,
    mend: Mend,
    out: &mut Vec<u8>,
) {
    let at = out.len();
    write_open(stream, publisher, form, out);
    if let Some(kind) = out.get_mut(at) {
        *kind |= FIRST;
    }
    out.put_u8(mend.retransmit.code());
    out.put_varint(mend.hold.map_or(0, Duration::as_micros));
    out.put_varint(mend.first);
}

/// The most bytes that [`write_open`] appends.
pub const OPEN_BYTES_MAX: usize = 1 + 5 + 8 + 5 + 6 + (1 + 10 + 6);

/// The most bytes that [`write_open_mended`] appends.
pub const OPEN_MENDED_BYTES_MAX: usize = OPEN_BYTES_MAX + 1 + 10 + 10;

/// The most bytes that the head of a [`Segment::Part`] takes.
pub const PART_BYTES_MAX: usize = 1 + 10 + 4 + 4 + 4;

/// Appends the head of a [`Segment::Part`] of `len` bytes; the piece follows.
pub fn write_part(number: u64, total: usize, offset: usize, len: usize, out: &mut Vec<u8>) {
    out.put_u8(PART);
    out.put_varint(number);
    out.put_varint(total as u64);
    out.put_varint(offset as u64);
    out.put_varint(len as u64);
}

/// Appends a [`Segment::Close`].
pub fn write_close(stream: u32, end: u64, out: &mut Vec<u8>) {
    out.put_u8(CLOSE);
    out.put_varint(u64::from(stream));
    out.put_varint(end);
}

/// Appends a [`Segment::Abort`].
pub fn write_abort(stream: u32, number: u64, out: &mut Vec<u8>) {
    out.put_u8(ABORT);
    out.put_varint(u64::from(stream));
    out.put_varint(number);
}

#[cfg(test)]
#[path = "segment/tests.rs"]
mod tests;
