//! Fuzz bodies for frames and segments as received from a link.

use bytes::Bytes;
use paceline_proto::wire::codec::{Reader, WireError};
use paceline_proto::wire::frame::FrameHeader;
use paceline_proto::wire::segment::{
    CONTROL_BYTES_MAX, ControlHead, DataHead, OPEN_BYTES_MAX, OPEN_MENDED_BYTES_MAX,
    PART_BYTES_MAX, Place, Segment, write_abort, write_close, write_open, write_open_retransmitted,
    write_padding, write_part,
};

/// Parses a frame: a header, then segments to its end.
pub fn frame(data: &[u8]) {
    let mut reader = Reader::new(Bytes::copy_from_slice(data));
    let Ok(header) = FrameHeader::read(&mut reader) else { return };
    let mut written = Vec::new();
    header.write(&mut written);
    assert!(written.len() <= FrameHeader::BYTES_MAX, "{header:?}");
    assert_eq!(written, data[..written.len()], "the header's bytes have one form");
    assert_eq!(reader.remaining(), data.len() - written.len());
    if let Some(ack) = header.ack {
        assert!(ack.end() >= ack.next() && !ack.covers(ack.next()) && !ack.covers(ack.end()));
        assert!(ack.end() == 0 || ack.covers(ack.end() - 1) && !ack.lacks(ack.end() - 1));
    }
    segments(&data[written.len()..]);
}

/// Parses segments without a frame header.
pub fn segments(data: &[u8]) {
    let mut reader = Reader::new(Bytes::copy_from_slice(data));
    let mut payloads = 0;
    while !reader.is_empty() {
        let before = reader.remaining();
        let segment = match Segment::read(&mut reader) {
            Ok(segment) => segment,
            Err(error) => return check_error(error, data.len()),
        };
        assert!(reader.remaining() < before, "a segment takes at least a byte");
        payloads += payload(&segment);
        check_again(&segment);
    }
    assert!(payloads <= data.len(), "payloads are pieces of the frame");
}

fn payload(segment: &Segment) -> usize {
    match segment {
        Segment::Data { payload, .. }
        | Segment::Control { payload, .. }
        | Segment::Part { payload, .. } => payload.len(),
        Segment::Open { .. }
        | Segment::Close { .. }
        | Segment::Abort { .. }
        | Segment::Padding { .. } => 0,
    }
}

fn check_error(error: WireError, len: usize) {
    assert!(!error.to_string().is_empty());
    if let WireError::TooLarge { value, max, .. } = error {
        assert!(value > max);
    }
    if let WireError::Trailing(left) = error {
        assert!(left <= len);
    }
}

/// Checks that a segment survives a write and a second read unchanged.
fn check_again(segment: &Segment) {
    let mut out = Vec::new();
    match segment {
        Segment::Data { stream, number, place, last, payload } => {
            let (first, offset) = match place {
                Place::First(head) => (Some(head), 0),
                Place::At(offset) => (None, *offset),
            };
            let (stream, number, last, len) = (*stream, *number, *last, payload.len());
            let head = DataHead { stream, number, first, offset, last, len };
            head.write(&mut out);
            assert!(out.len() <= head.bytes_max(), "{head:?} takes {} bytes", out.len());
            out.extend_from_slice(payload);
        }
        Segment::Control { total, last, payload } => {
            ControlHead { total: *total, last: *last, len: payload.len() }.write(&mut out);
            assert!(out.len() <= ControlHead::BYTES_MAX && payload.len() <= CONTROL_BYTES_MAX);
            out.extend_from_slice(payload);
        }
        Segment::Open { stream, publisher, form, retransmission: None } => {
            write_open(*stream, *publisher, form, &mut out);
            assert!(out.len() <= OPEN_BYTES_MAX, "{segment:?} takes {} bytes", out.len());
        }
        Segment::Open { stream, publisher, form, retransmission: Some(retransmission) } => {
            write_open_retransmitted(*stream, *publisher, form, *retransmission, &mut out);
            assert!(out.len() <= OPEN_MENDED_BYTES_MAX, "{segment:?} takes {} bytes", out.len());
        }
        Segment::Part { number, total, offset, payload } => {
            write_part(*number, *total, *offset, payload.len(), &mut out);
            assert!(out.len() <= PART_BYTES_MAX && payload.len() <= CONTROL_BYTES_MAX);
            out.extend_from_slice(payload);
        }
        Segment::Close { stream, end } => write_close(*stream, *end, &mut out),
        Segment::Abort { stream, number } => write_abort(*stream, *number, &mut out),
        Segment::Padding { bytes } => write_padding(*bytes, &mut out),
    }
    let mut reader = Reader::new(out.into());
    assert_eq!(Segment::read(&mut reader).as_ref(), Ok(segment));
    assert!(reader.is_empty());
}
