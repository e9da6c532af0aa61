//! MPEG-TS: packets of 188 bytes, with the program tables in front of each part.

use super::payload::Payload;
use super::{Lane, Written};
use crate::codec::Codec;
use crate::film::FilmKind;

const PACKET: usize = 188;
const PROGRAM_PID: u16 = 0x1000;
const FIRST_PID: u16 = 0x100;
/// The time of the film's begin, so that no time is negative, and the time by which the clock precedes decoding.
const BEGIN_NS: i64 = 1_400_000_000;
const AHEAD_NS: i64 = 700_000_000;
/// The most bytes of a packet of sound with its length stated.
const STATED_MAX: usize = 0xffff - 8;

/// The state of the file.
#[derive(Debug, Default)]
pub(super) struct Packets {
    tables: [u8; 2],
    counters: [u8; 2],
    /// The most time by which presentation preceded the decoding times that samples have here.
    lead_ns: i64,
    last_decode: [Option<u64>; 2],
}

/// A packet of PES to be cut.
struct Cut<'a> {
    pid: u16,
    bytes: &'a [u8],
    clock: Option<u64>,
    key: bool,
}

impl Packets {
    /// Writes these units.
    pub(super) fn part(&mut self, lanes: &[Lane], units: &[Written], out: &mut Vec<u8>) {
        let kinds: Vec<Option<&Payload>> = lanes.iter().map(Lane::payload).collect();
        self.tables(&kinds, out);
        let ahead = units.iter().map(|unit| unit.decode_ns - unit.shown_ns).max().unwrap_or(0);
        self.lead_ns = self.lead_ns.max(ahead);
        let clocked = kinds
            .iter()
            .position(|kind| kind.is_some_and(|kind| kind.kind() == FilmKind::Pictures));
        let clocked = clocked.or_else(|| kinds.iter().position(Option::is_some));
        for unit in units {
            let Some(Some(payload)) = kinds.get(unit.lane) else { continue };
            let pictures = payload.kind() == FilmKind::Pictures;
            let shown = time(unit.shown_ns + BEGIN_NS);
            let lead = if pictures { self.lead_ns } else { 0 };
            let decode = time(unit.decode_ns - lead + BEGIN_NS).min(shown);
            let last = self.last_decode.get_mut(unit.lane);
            let decode = last.map_or(decode, |last| {
                let decode = last.map_or(decode, |last| decode.max(last + 1)).min(shown);
                *last = Some(decode);
                decode
            });
            let pes = pes(payload, unit, shown, (pictures && decode < shown).then_some(decode));
            let clock = (clocked == Some(unit.lane))
                .then(|| time(unit.decode_ns - lead + BEGIN_NS - AHEAD_NS));
            let pid = FIRST_PID + u16::try_from(unit.lane).unwrap_or(0);
            self.cut(&Cut { pid, bytes: &pes, clock, key: unit.key }, unit.lane, out);
        }
    }

    fn tables(&mut self, kinds: &[Option<&Payload>], out: &mut Vec<u8>) {
        let [p0, p1] = (0xe000 | PROGRAM_PID).to_be_bytes();
        let programs = section(0, &[0, 1, p0, p1]);
        let clock = kinds
            .iter()
            .position(|kind| kind.is_some_and(|kind| kind.kind() == FilmKind::Pictures));
        let clock = clock.or_else(|| kinds.iter().position(Option::is_some)).unwrap_or(0);
        let pid =
            |lane: usize| (0xe000 | (FIRST_PID + u16::try_from(lane).unwrap_or(0))).to_be_bytes();
        let [c0, c1] = pid(clock);
        let mut streams = vec![c0, c1, 0xf0, 0];
        for (lane, payload) in
            kinds.iter().enumerate().filter_map(|(lane, it)| Some((lane, (*it)?)))
        {
            let [s0, s1] = pid(lane);
            let (kind, descriptors) = stream(payload);
            // Descriptors have a few bytes.
            let length = u8::try_from(descriptors.len()).unwrap_or(0);
            streams.extend_from_slice(&[kind, s0, s1, 0xf0, length]);
            streams.extend(descriptors);
        }
        let program = section(2, &streams);
        let [first, second] = &mut self.tables;
        for (pid, section, counter) in [(0, programs, first), (PROGRAM_PID, program, second)] {
            let [high, low] = pid.to_be_bytes();
            let mut packet = vec![0x47, 0x40 | high, low, 0x10 | *counter];
            *counter = (*counter + 1) & 0xf;
            packet.push(0);
            packet.extend(section);
            packet.resize(PACKET, 0xff);
            out.extend(packet);
        }
    }

    fn cut(&mut self, cut: &Cut<'_>, lane: usize, out: &mut Vec<u8>) {
        let mut rest = cut.bytes;
        let mut first = true;
        while !rest.is_empty() {
            let Some(counter) = self.counters.get_mut(lane) else { return };
            let [high, low] = cut.pid.to_be_bytes();
            let mut fields = Vec::new();
            if first && (cut.clock.is_some() || cut.key) {
                let clock = cut.clock.map(reference);
                fields
                    .push(if cut.key { 0x40 } else { 0 } | if clock.is_some() { 0x10 } else { 0 });
                fields.extend(clock.into_iter().flatten());
            }
            // An adaptation field has its length in front.
            let mut taken = if fields.is_empty() { 0 } else { fields.len() + 1 };
            let room = PACKET - 4 - taken;
            let (part, behind) = rest.split_at(room.min(rest.len()));
            let fill = room - part.len();
            let mut adaptation = Vec::new();
            if taken > 0 || fill > 0 {
                if fields.is_empty() && fill > 1 {
                    fields.push(0);
                }
                taken += fill;
                adaptation.push(u8::try_from(taken.max(1) - 1).unwrap_or(0));
                adaptation.extend(fields);
                adaptation.resize(taken.max(1), 0xff);
            }
            let control = if adaptation.is_empty() { 0x10 } else { 0x30 };
            out.extend_from_slice(&[
                0x47,
                if first { 0x40 } else { 0 } | high,
                low,
                control | *counter,
            ]);
            *counter = (*counter + 1) & 0xf;
            out.extend(adaptation);
            out.extend_from_slice(part);
            (rest, first) = (behind, false);
        }
    }
}

/// Returns a time in ticks of 90 kHz, without its 34th bit and those above.
fn time(time_ns: i64) -> u64 {
    u64::try_from(time_ns.max(0) / 100 * 9 / 1_000).unwrap_or(0)
}

/// Returns a program clock reference.
fn reference(time: u64) -> [u8; 6] {
    let [.., b3, b4, b5, b6, b7] = ((time & 0x1_ffff_ffff) << 7).to_be_bytes();
    [b3, b4, b5, b6, b7 | 0x7e, 0]
}

/// Returns the type and the descriptors of a stream.
fn stream(payload: &Payload) -> (u8, Vec<u8>) {
    match payload {
        Payload::Video { codec: Codec::H264, .. } => (0x1b, Vec::new()),
        Payload::Video { .. } => (0x24, Vec::new()),
        Payload::Aac(_) => (0x0f, Vec::new()),
        Payload::Opus(format) => {
            let mut descriptors = vec![0x05, 4];
            descriptors.extend_from_slice(b"Opus");
            descriptors.extend_from_slice(&[0x7f, 2, 0x80, format.channels]);
            (0x06, descriptors)
        }
        Payload::Jpeg { .. } | Payload::Sound(_) => (0x06, Vec::new()),
    }
}

/// Returns a packet of PES with its times.
fn pes(payload: &Payload, unit: &Written, shown: u64, decode: Option<u64>) -> Vec<u8> {
    let (id, header): (u8, Vec<u8>) = match payload {
        Payload::Video { .. } | Payload::Jpeg { .. } => (0xe0, delimiter(payload, &unit.bytes)),
        Payload::Opus(_) => {
            let mut header = vec![0x7f, 0xe0];
            header.extend(std::iter::repeat_n(255, unit.bytes.len() / 255));
            header.push(u8::try_from(unit.bytes.len() % 255).unwrap_or(0));
            (0xbd, header)
        }
        Payload::Aac(_) | Payload::Sound(_) => (0xc0, Vec::new()),
    };
    let times = if decode.is_some() { 10 } else { 5 };
    let length = 3 + usize::from(times) + header.len() + unit.bytes.len();
    let stated =
        if id == 0xe0 || length > STATED_MAX { 0 } else { u16::try_from(length).unwrap_or(0) };
    let [l0, l1] = stated.to_be_bytes();
    let flags = if decode.is_some() { 0xc0 } else { 0x80 };
    // The payload begins a frame.
    let mut pes = vec![0, 0, 1, id, l0, l1, 0x84, flags, times];
    pes.extend(stamp(if decode.is_some() { 3 } else { 2 }, shown));
    pes.extend(decode.map(|decode| stamp(1, decode)).into_iter().flatten());
    pes.extend(header);
    pes.extend_from_slice(&unit.bytes);
    pes
}

/// Returns the delimiter in front of a picture, unless it has one.
fn delimiter(payload: &Payload, bytes: &[u8]) -> Vec<u8> {
    let first = crate::annexb::Nals::new(bytes)
        .next()
        .and_then(|nal| nal.bytes.first().copied())
        .unwrap_or(0);
    match payload {
        Payload::Video { codec: Codec::H264, .. } if first & 0x1f != 9 => vec![0, 0, 0, 1, 9, 0xf0],
        Payload::Video { codec: Codec::H265, .. } if first >> 1 & 0x3f != 35 => {
            vec![0, 0, 0, 1, 0x46, 1, 0x50]
        }
        Payload::Video { .. }
        | Payload::Jpeg { .. }
        | Payload::Aac(_)
        | Payload::Opus(_)
        | Payload::Sound(_) => Vec::new(),
    }
}

/// Returns a time stamp of 33 bits with its marker bits.
fn stamp(kind: u8, time: u64) -> [u8; 5] {
    let byte = |shift: u32| u8::try_from(time >> shift & 0xff).unwrap_or(0);
    let marked = |shift: u32| u8::try_from(time >> shift & 0x7f).unwrap_or(0) << 1 | 1;
    let first = u8::try_from(time >> 30 & 7).unwrap_or(0);
    [kind << 4 | first << 1 | 1, byte(22), marked(15), byte(7), marked(0)]
}

/// Returns a section with its checksum.
fn section(table: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len() + 9;
    let [l0, l1] = u16::try_from(length).unwrap_or(0).to_be_bytes();
    let mut section = vec![table, 0xb0 | l0, l1, 0, 1, 0xc1, 0, 0];
    section.extend_from_slice(content);
    let crc = crate::film::mpeg::crc(&section);
    section.extend_from_slice(&crc.to_be_bytes());
    section
}
