//! Segments: samples, pieces of samples and control in a frame.

mod form;

pub(crate) use form::{read_audio, read_bitrate, read_quality, read_rate, write_audio, write_rate};
pub use form::{read_encoding, read_form, write_encoding, write_form};

use super::codec::{Reader, WireError, Writer, varint_len};
use super::{NUMBER_MAX, SAMPLE_BYTES_MAX, STREAMS_MAX};
use crate::form::Form;
use crate::ids::{NodeId, PublisherId};
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
const PADDING: u8 = 7;
const KIND: u8 = 0x0f;
const FIRST: u8 = 0x10;
const LAST: u8 = 0x20;
const ATTACHED: u8 = 0x40;
const DOUBTED: u8 = 0x80;
/// The flag of a shift in the byte of the kind.
const SHIFTED: u8 = 0x08;

/// The description of a sample in its first segment.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleHead {
    /// The length of the complete payload, in bytes.
    pub total: usize,
    /// The publisher's sequence number.
    pub seq: u64,
    /// The capture time.
    pub captured: Timestamp,
    /// The place of the capture on the publisher's grid, from the nearest instant.
    pub shift: i32,
    /// The kind of the sample.
    pub kind: Kind,
    /// The media type.
    pub encoding: Encoding,
    /// The age when this frame has left the link.
    pub age: Duration,
    /// The true age exceeds `age` by at most this, in whole microseconds; `None` if no bound is known.
    pub doubt: Option<Duration>,
    /// The attachment that the publisher sent with the payload.
    pub attachment: Option<Arc<[u8]>>,
}

/// The position of a segment in its sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// The first segment, with the sample's head.
    First(SampleHead),
    /// A later segment, at this byte offset.
    At(usize),
}

/// A parsed segment.
#[derive(Clone, Debug, PartialEq)]
pub enum Segment {
    /// A piece of a sample.
    Data {
        /// The stream's number on this hop.
        stream: u32,
        /// The sample's number on this stream, incremented for each sample whose sending began.
        number: u64,
        /// The position of the piece.
        place: Place,
        /// `true` for the last piece.
        last: bool,
        /// The bytes of the piece.
        payload: Bytes,
    },
    /// A piece of a control message. Pieces arrive in order.
    Control {
        /// The length of the complete message in bytes, at its first piece; otherwise `None`.
        total: Option<usize>,
        /// `true` for the last piece.
        last: bool,
        /// The bytes of the piece.
        payload: Bytes,
    },
    /// Opens a stream for a publisher's samples in a form.
    Open {
        /// The stream's number on this hop.
        stream: u32,
        /// The publisher of the samples.
        publisher: PublisherId,
        /// The form of the samples.
        form: Form,
        /// The retransmission parameters; only on carriers that may lose frames.
        retransmission: Option<Retransmission>,
    },
    /// Closes a stream: no more samples follow.
    Close {
        /// The stream's number on this hop.
        stream: u32,
        /// The number that the stream's next sample would have had. Samples below it that the receiver has
        /// not seen were lost.
        end: u64,
    },
    /// Aborts a sample that has begun, because the rest of it could not arrive in time.
    Abort {
        /// The stream's number on this hop.
        stream: u32,
        /// The sample's number on this stream.
        number: u64,
    },
    /// A piece of a control message on a carrier that may lose frames, with its offset.
    Part {
        /// The message's number on this hop, incremented for each message.
        number: u64,
        /// The length of the complete message, in bytes.
        total: usize,
        /// The offset of this piece in the message, in bytes.
        offset: usize,
        /// The bytes of the piece.
        payload: Bytes,
    },
    /// Bytes without a meaning, which measure the capacity of the link.
    Padding {
        /// Their number.
        bytes: usize,
    },
}

/// The retransmission parameters of a stream on a carrier that may lose frames.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Retransmission {
    /// The retransmission mode.
    pub retransmit: Retransmit,
    /// The number of the stream's first sample since the hop came up; earlier ones are not retransmitted.
    pub first: u64,
    /// The age at which a sample is delivered even if an earlier one is missing; `None` for no limit.
    pub hold: Option<Duration>,
}

/// Returns a stream's number on the wire, from its slot below [`STREAMS_MAX`] and the number of earlier
/// streams in that slot. So segments of one stream are never attributed to its successor or predecessor, even
/// if the frames that closed the one and opened the other were lost.
#[must_use]
pub const fn stream_id(place: u32, generation: u32) -> u32 {
    place % STREAMS_MAX + (generation % (u32::MAX / STREAMS_MAX)) * STREAMS_MAX
}

/// Returns the slot of a stream from its number on the wire.
#[must_use]
pub const fn stream_place(id: u32) -> u32 {
    id % STREAMS_MAX
}

/// The maximum length of a control message, in bytes.
pub const CONTROL_BYTES_MAX: usize = 4 << 20;

impl Segment {
    /// Reads the next segment of a frame.
    ///
    /// # Errors
    /// Returns a [`WireError`] for a malformed segment; the rest of the frame is then unreadable.
    pub fn read(reader: &mut Reader) -> Result<Self, WireError> {
        let first_byte = reader.u8("segment type")?;
        let flags = first_byte & !KIND;
        let kind = first_byte & KIND;
        let allowed = match kind {
            DATA if flags & FIRST != 0 => FIRST | LAST | ATTACHED | DOUBTED,
            DATA | CONTROL => FIRST | LAST,
            OPEN => FIRST,
            _ => 0,
        };
        if flags & !allowed != 0 {
            return Err(WireError::Invalid("segment flags"));
        }
        let (first, last) = (flags & FIRST != 0, flags & LAST != 0);
        match kind {
            DATA => read_data(reader, flags),
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
                retransmission: if first { Some(read_retransmission(reader)?) } else { None },
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
            PADDING => {
                let bytes = reader.len(CONTROL_BYTES_MAX, "segment length")?;
                reader.bytes(bytes, "padding")?;
                Ok(Self::Padding { bytes })
            }
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

fn read_retransmission(reader: &mut Reader) -> Result<Retransmission, WireError> {
    let code = reader.u8("retransmission")?;
    let retransmit = Retransmit::from_code(code).ok_or(WireError::Invalid("retransmission"))?;
    let micros = reader.varint_max(u64::MAX / 1_000, "hold")?;
    let first = reader.varint_max(NUMBER_MAX, "first sample")?;
    Ok(Retransmission {
        retransmit,
        first,
        hold: (micros > 0).then(|| Duration::from_micros(micros)),
    })
}

fn read_data(reader: &mut Reader, flags: u8) -> Result<Segment, WireError> {
    let (first, last) = (flags & FIRST != 0, flags & LAST != 0);
    let stream = reader.varint32("stream")?;
    let number = reader.varint_max(NUMBER_MAX, "sample number")?;
    let head = if first { Some(read_head(reader, flags)?) } else { None };
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

fn read_head(reader: &mut Reader, flags: u8) -> Result<SampleHead, WireError> {
    let last = flags & LAST != 0;
    // A sample in one piece states its length once, as the length of the piece.
    let total = if last { 0 } else { reader.len(SAMPLE_BYTES_MAX, "sample length")? };
    let seq = reader.varint_max(NUMBER_MAX, "sample seq")?;
    let captured = Timestamp { nanos: reader.u64("captured")?, error: reader.u8("clock error")? };
    let kind = reader.u8("kind")?;
    Ok(SampleHead {
        total,
        seq,
        captured,
        shift: if kind & SHIFTED != 0 { read_shift(reader)? } else { 0 },
        kind: Kind::from_code(kind & !SHIFTED).ok_or(WireError::Invalid("kind"))?,
        encoding: read_encoding(reader)?,
        age: Duration::from_micros(reader.varint_max(u64::MAX / 1_000, "age")?),
        doubt: if flags & DOUBTED != 0 { Some(read_doubt(reader)?) } else { None },
        attachment: if flags & ATTACHED != 0 { Some(read_attachment(reader)?) } else { None },
    })
}

/// Reads a shift: zigzag, never 0.
fn read_shift(reader: &mut Reader) -> Result<i32, WireError> {
    let coded = reader.varint32("shift")?;
    if coded == 0 {
        return Err(WireError::Invalid("shift"));
    }
    Ok((coded >> 1).cast_signed() ^ -(coded & 1).cast_signed())
}

/// Returns a shift as it is written: 1 for -1, 2 for 1, 3 for -2.
const fn zigzag(shift: i32) -> u32 {
    (shift << 1 ^ shift >> 31).cast_unsigned()
}

fn read_doubt(reader: &mut Reader) -> Result<Duration, WireError> {
    Ok(Duration::from_micros(reader.varint_max(u64::MAX / 1_000 - 1, "doubt")?))
}

fn read_attachment(reader: &mut Reader) -> Result<Arc<[u8]>, WireError> {
    let len = reader.len(ATTACHMENT_BYTES_MAX, "attachment length")?;
    // Copy the attachment; a slice would keep the whole frame in memory for the lifetime of the sample.
    Ok(reader.bytes(len, "attachment")?[..].into())
}

/// The header of a data segment, written before its payload.
#[derive(Clone, Debug)]
pub struct DataHead<'a> {
    /// The stream's number on this hop.
    pub stream: u32,
    /// The sample's number on this stream.
    pub number: u64,
    /// The sample's head, in its first piece.
    pub first: Option<&'a SampleHead>,
    /// The offset of this piece in the sample, in bytes.
    pub offset: usize,
    /// `true` for the last piece.
    pub last: bool,
    /// The length of this piece, in bytes.
    pub len: usize,
}

impl DataHead<'_> {
    /// Appends the header to `out`. The payload follows.
    pub fn write(&self, out: &mut Vec<u8>) {
        let first = if self.first.is_some() { FIRST } else { 0 };
        let attachment = self.first.and_then(attachment);
        let attached = if attachment.is_some() { ATTACHED } else { 0 };
        let doubt = self.first.and_then(|head| head.doubt);
        let doubted = if doubt.is_some() { DOUBTED } else { 0 };
        out.put_u8(DATA | first | attached | doubted | if self.last { LAST } else { 0 });
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
                let shifted = if head.shift == 0 { 0 } else { SHIFTED };
                out.put_u8(head.kind.code() | shifted);
                if head.shift != 0 {
                    out.put_varint(u64::from(zigzag(head.shift)));
                }
                write_encoding(&head.encoding, out);
                out.put_varint(head.age.as_micros());
                if let Some(doubt) = doubt {
                    // Age and doubt are rounded down: one microsecond more covers both.
                    out.put_varint(doubt.as_micros().min(u64::MAX / 1_000 - 1));
                }
                if let Some(bytes) = attachment {
                    out.put_varint(bytes.len() as u64);
                    out.extend_from_slice(bytes);
                }
            }
            None => out.put_varint(self.offset as u64),
        }
        out.put_varint(self.len as u64);
    }

    /// Returns the maximum number of bytes that [`Self::write`] appends for a sample of this encoding.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        let ids = 1 + varint_len(u64::from(self.stream)) + varint_len(self.number) + 5;
        match self.first {
            Some(head) => {
                let attached = attachment(head).map_or(0, |bytes| 2 + bytes.len());
                let doubt = head.doubt.map_or(0, |_| 10);
                let shift = if head.shift == 0 { 0 } else { 5 };
                ids + 5
                    + 10
                    + 8
                    + 1
                    + 1
                    + shift
                    + 2
                    + other_len(&head.encoding)
                    + 10
                    + doubt
                    + attached
            }
            None => ids + 5,
        }
    }
}

/// Returns the attachment, truncated to the maximum of the wire format.
fn attachment(head: &SampleHead) -> Option<&[u8]> {
    head.attachment.as_deref().map(|bytes| bytes.get(..ATTACHMENT_BYTES_MAX).unwrap_or(bytes))
}

fn other_len(encoding: &Encoding) -> usize {
    if let Encoding::Other(name) = encoding { Encoding::cut(name).len() + 1 } else { 0 }
}

/// The header of a control segment.
#[derive(Clone, Copy, Debug)]
pub struct ControlHead {
    /// The length of the complete message in bytes, in its first piece.
    pub total: Option<usize>,
    /// `true` for the last piece.
    pub last: bool,
    /// The length of this piece, in bytes.
    pub len: usize,
}

impl ControlHead {
    /// The maximum number of bytes that [`Self::write`] appends.
    pub const BYTES_MAX: usize = 1 + 4 + 4;

    /// Appends the header to `out`. The piece follows.
    pub fn write(&self, out: &mut Vec<u8>) {
        let first = if self.total.is_some() { FIRST } else { 0 };
        out.put_u8(CONTROL | first | if self.last { LAST } else { 0 });
        if let Some(total) = self.total {
            out.put_varint(total as u64);
        }
        out.put_varint(self.len as u64);
    }
}

/// Appends a [`Segment::Open`].
pub fn write_open(stream: u32, publisher: PublisherId, form: &Form, out: &mut Vec<u8>) {
    out.put_u8(OPEN);
    out.put_varint(u64::from(stream));
    out.put_u64(publisher.node.0);
    out.put_varint(u64::from(publisher.index));
    write_form(form, out);
}

/// Appends a [`Segment::Open`] with retransmission parameters. A `hold` below one microsecond counts as
/// `None`.
pub fn write_open_retransmitted(
    stream: u32,
    publisher: PublisherId,
    form: &Form,
    retransmission: Retransmission,
    out: &mut Vec<u8>,
) {
    let at = out.len();
    write_open(stream, publisher, form, out);
    if let Some(kind) = out.get_mut(at) {
        *kind |= FIRST;
    }
    out.put_u8(retransmission.retransmit.code());
    out.put_varint(retransmission.hold.map_or(0, Duration::as_micros));
    out.put_varint(retransmission.first);
}

/// The maximum number of bytes that [`write_open`] appends.
pub const OPEN_BYTES_MAX: usize = 1 + 5 + 8 + 5 + (1 + 3 * 5) + (1 + 10 + 6 + 5 + 1 + 8);

/// The maximum number of bytes that [`write_open_retransmitted`] appends.
pub const OPEN_MENDED_BYTES_MAX: usize = OPEN_BYTES_MAX + 1 + 10 + 10;

/// The maximum size of the header of a [`Segment::Part`], in bytes.
pub const PART_BYTES_MAX: usize = 1 + 10 + 4 + 4 + 4;

/// Appends the header of a [`Segment::Part`] of `len` bytes. The piece follows.
pub fn write_part(number: u64, total: usize, offset: usize, len: usize, out: &mut Vec<u8>) {
    out.put_u8(PART);
    out.put_varint(number);
    out.put_varint(total as u64);
    out.put_varint(offset as u64);
    out.put_varint(len as u64);
}

/// The maximum size of the header of a [`Segment::Padding`], in bytes.
pub const PADDING_BYTES_MAX: usize = 1 + 4;

/// Appends a [`Segment::Padding`] of `bytes` zeros.
pub fn write_padding(bytes: usize, out: &mut Vec<u8>) {
    out.put_u8(PADDING);
    out.put_varint(bytes as u64);
    out.resize(out.len() + bytes, 0);
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
