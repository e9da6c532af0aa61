//! JPEG in RTP (RFC 2435).

use super::tables::{CHROMA, HUFFMAN, LUMA};
use super::{RtpEvent, RtpPacket, fits};
use crate::fault::UnitFault;

/// The first Q that states quantization tables in the packets.
const Q_OWN: u8 = 128;
/// The Q whose tables may change from picture to picture.
const Q_DYNAMIC: u8 = 255;

/// The fields of a packet's headers (3.1).
struct Header {
    offset: usize,
    kind: u8,
    q: u8,
    width: u16,
    height: u16,
}

/// The picture whose end has not arrived.
#[derive(Clone, Debug)]
struct Open {
    time: i64,
    bytes: Vec<u8>,
    /// The bytes of headers that are not sent.
    front: usize,
}

/// Cuts packets into pictures, and writes the headers that are not sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Jpeg {
    open: Option<Open>,
    damaged: Option<i64>,
    /// The tables of each Q from 128 to 254, which may be sent once.
    tables: std::collections::BTreeMap<u8, Vec<u8>>,
}

impl Jpeg {
    pub(super) fn push(&mut self, packet: &RtpPacket<'_>, events: &mut Vec<RtpEvent>) {
        // Several gaps of one picture are one loss.
        if packet.lost > 0 && self.damaged != Some(packet.time) {
            events.push(RtpEvent::Fault(UnitFault::Lost));
            if self.open.take().is_some_and(|open| open.time == packet.time) {
                self.damaged = Some(packet.time);
            }
        }
        if self.open.as_ref().is_some_and(|open| open.time != packet.time) {
            self.open = None;
            events.push(RtpEvent::Fault(UnitFault::Malformed("a JPEG picture without an end")));
        }
        // A camera without a clock gives the next picture the same time.
        let ends = packet.marker;
        if self.damaged == Some(packet.time) {
            self.damaged = self.damaged.filter(|_| !ends);
            return;
        }
        self.damaged = None;
        match self.add(packet) {
            Ok(Some(unit)) => events.push(unit),
            Ok(None) => {}
            Err(fault) => {
                (self.open, self.damaged) = (None, (!ends).then_some(packet.time));
                // The rest of a picture whose beginning was lost; the loss was counted.
                if packet.lost == 0 || fault != UnitFault::Lost {
                    events.push(RtpEvent::Fault(fault));
                }
            }
        }
    }

    fn add(&mut self, packet: &RtpPacket<'_>) -> Result<Option<RtpEvent>, UnitFault> {
        let cut = UnitFault::Malformed("a JPEG packet that is cut off");
        let (header, rest) = Header::parse(packet.payload).ok_or(cut)?;
        let (interval, rest) = match header.kind {
            64..=127 => {
                let (&[a, b, _, _], rest) = rest.split_first_chunk().ok_or(cut)?;
                (Some(u16::from_be_bytes([a, b])), rest)
            }
            _ => (None, rest),
        };
        let mut data = rest;
        if header.offset == 0 {
            let (tables, rest) = self.read_tables(header.q, rest)?;
            data = rest;
            let bytes = front(&header, &tables, interval)?;
            let front = bytes.len();
            self.open = Some(Open { time: packet.time, bytes, front });
        }
        let open = self.open.as_mut().ok_or(UnitFault::Lost)?;
        if open.bytes.len() - open.front != header.offset {
            return Err(UnitFault::Malformed(
                "a JPEG packet at another offset than the end of the one before",
            ));
        }
        if !fits(open.bytes.len(), data.len()) {
            return Err(UnitFault::TooLarge);
        }
        open.bytes.extend_from_slice(data);
        Ok(if packet.marker { self.open.take().map(Open::finish) } else { None })
    }

    /// Returns the quantization tables of the picture: two of 64 bytes.
    fn read_tables<'a>(&mut self, q: u8, rest: &'a [u8]) -> Result<(Vec<u8>, &'a [u8]), UnitFault> {
        if q < Q_OWN {
            return match q {
                1..=99 => Ok((scaled(q), rest)),
                _ => Err(UnitFault::Malformed("a JPEG picture with a Q of 0, or 100 to 127")),
            };
        }
        let cut = UnitFault::Malformed("a JPEG table that is cut off");
        let (&[_, precision, a, b], rest) = rest.split_first_chunk().ok_or(cut)?;
        let length = usize::from(u16::from_be_bytes([a, b]));
        let (tables, rest) = rest.split_at_checked(length).ok_or(cut)?;
        match length {
            0 if q != Q_DYNAMIC => {
                let known = self.tables.get(&q).cloned();
                Ok((
                    known.ok_or(UnitFault::Malformed(
                        "a JPEG picture whose tables did not arrive",
                    ))?,
                    rest,
                ))
            }
            64 | 128 if precision == 0 => {
                let (first, second) = tables.split_at(64);
                let both = [first, if second.is_empty() { first } else { second }].concat();
                if q != Q_DYNAMIC {
                    self.tables.insert(q, both.clone());
                }
                Ok((both, rest))
            }
            _ => Err(UnitFault::Malformed(
                "JPEG tables of another size than 64 or 128 bytes of 8 bits",
            )),
        }
    }
}

impl Header {
    fn parse(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (&[_, a, b, c, kind, q, width, height], rest) = payload.split_first_chunk()?;
        let offset = usize::try_from(u32::from_be_bytes([0, a, b, c])).ok()?;
        let (width, height) = (u16::from(width) * 8, u16::from(height) * 8);
        Some((Self { offset, kind, q, width, height }, rest))
    }
}

impl Open {
    fn finish(mut self) -> RtpEvent {
        // The end may be sent or not.
        if !self.bytes.ends_with(&[0xff, 0xd9]) {
            self.bytes.extend_from_slice(&[0xff, 0xd9]);
        }
        RtpEvent::Unit { time: self.time, bytes: self.bytes }
    }
}

/// Returns the standard tables scaled by `q`, 1 to 99 (4.2).
fn scaled(q: u8) -> Vec<u8> {
    let q = u32::from(q);
    let factor = if q < 50 { 5_000 / q } else { 200 - q * 2 };
    let scale = |value: &u8| (u32::from(*value) * factor + 50) / 100;
    let value = |value| u8::try_from(scale(value).clamp(1, 255)).unwrap_or(u8::MAX);
    LUMA.iter().chain(&CHROMA).map(value).collect()
}

/// Returns the headers of a picture up to its coded data.
fn front(header: &Header, tables: &[u8], interval: Option<u16>) -> Result<Vec<u8>, UnitFault> {
    if header.width == 0 || header.height == 0 {
        return Err(UnitFault::Malformed(
            "a JPEG picture of more than 2040 pixels a side, which RTP cannot carry",
        ));
    }
    // The chroma is halved horizontally (type 0), or both ways (type 1).
    let sampling = match header.kind & 0x3f {
        0 => 0x21,
        1 => 0x22,
        _ => {
            return Err(UnitFault::Malformed(
                "a JPEG picture of another type than 4:2:2 and 4:2:0",
            ));
        }
    };
    let (luma, chroma) = tables.split_at_checked(64).unwrap_or_default();
    let mut bytes = vec![0xff, 0xd8];
    for (id, table) in [(0, luma), (1, chroma)] {
        bytes.extend_from_slice(&[0xff, 0xdb, 0, 67, id]);
        bytes.extend_from_slice(table);
    }
    if let Some(interval) = interval.filter(|interval| *interval > 0) {
        let [a, b] = interval.to_be_bytes();
        bytes.extend_from_slice(&[0xff, 0xdd, 0, 4, a, b]);
    }
    let ([h0, h1], [w0, w1]) = (header.height.to_be_bytes(), header.width.to_be_bytes());
    bytes.extend_from_slice(&[0xff, 0xc0, 0, 17, 8, h0, h1, w0, w1, 3]);
    bytes.extend_from_slice(&[1, sampling, 0, 2, 0x11, 1, 3, 0x11, 1]);
    for table in HUFFMAN {
        bytes.extend_from_slice(table);
    }
    bytes.extend_from_slice(&[0xff, 0xda, 0, 12, 3, 1, 0, 2, 0x11, 3, 0x11, 0, 63, 0]);
    Ok(bytes)
}
