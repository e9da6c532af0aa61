//! Program streams: packs of PES packets.

use super::frames::pictures_of;
use super::kind::StreamKind;
use super::pes::{PREFIX, Pes};
use super::{Stream, Wrapped};
use crate::error::MediaError;
use crate::film::log::{Log, Progress};
use crate::film::window::{Look, Window};
use crate::film::{FilmKind, FilmUnit, refuse};
use std::collections::{BTreeMap, VecDeque};

const PACK: u8 = 0xba;
const END: u8 = 0xb9;
const MAP: u8 = 0xbc;
const PRIVATE: u8 = 0xbd;
/// The bytes of one search for a packet.
const STEP: usize = 4_096;

/// Reads packets.
#[derive(Debug, Default)]
pub(crate) struct Program {
    next: u64,
    /// The stream types of the program map, by stream id.
    types: BTreeMap<u8, u8>,
    streams: BTreeMap<(u8, u8), Stream>,
    clock: Wrapped,
    ready: VecDeque<FilmUnit>,
    ended: bool,
}

impl Program {
    pub(in crate::film) fn step(
        &mut self,
        window: &mut Window,
        log: &mut Log,
    ) -> Result<Progress, MediaError> {
        if let Some(unit) = self.ready.pop_front() {
            return Ok(Progress::Unit(unit));
        }
        if self.ended {
            if self.streams.is_empty() {
                let fix = "pass a program stream with pictures or sound";
                return Err(refuse(
                    "mpeg-ps",
                    self.next,
                    "it has no packets of pictures or sound",
                    fix,
                ));
            }
            return Ok(Progress::Ended);
        }
        let at = self.next;
        let (id, length) = match window.look(at, PREFIX) {
            Look::More | Look::Passed => return Ok(Progress::More),
            Look::Bytes(&[0, 0, 1, id, l0, l1]) => (id, usize::from(u16::from_be_bytes([l0, l1]))),
            Look::Bytes(_) => return Ok(self.resume(window, log)),
            Look::Ended(rest) => {
                let rest = rest.len() as u64;
                // The end code has 4 bytes.
                if rest > 0 && rest != 4 {
                    log.damage.add(at, rest, || "the last packet is cut off".to_owned());
                }
                self.flush(log);
                return Ok(Progress::Again);
            }
        };
        match id {
            END => self.next += 4,
            PACK => return Ok(self.pack(window, log)),
            0xbb..=0xff => return Ok(self.packet(id, PREFIX + length, window, log)),
            _ => return Ok(self.resume(window, log)),
        }
        Ok(Progress::Again)
    }

    /// Skips the header of a pack, of MPEG-2 or MPEG-1.
    fn pack(&mut self, window: &mut Window, log: &mut Log) -> Progress {
        match window.look(self.next, 14) {
            Look::More | Look::Passed => return Progress::More,
            Look::Ended(_) => self.flush(log),
            Look::Bytes(bytes) => {
                let is_second = bytes.get(4).is_some_and(|byte| byte & 0xc0 == 0x40);
                let stuffing = bytes.get(13).map_or(0, |byte| byte & 7);
                self.next += if is_second { 14 + u64::from(stuffing) } else { 12 };
            }
        }
        Progress::Again
    }

    fn packet(&mut self, id: u8, length: usize, window: &mut Window, log: &mut Log) -> Progress {
        let at = self.next;
        let bytes = match window.look(at, length) {
            Look::More | Look::Passed => return Progress::More,
            Look::Bytes(bytes) => bytes,
            Look::Ended(rest) => {
                let rest = rest.len() as u64;
                log.damage.add(at, rest, || "the last packet is cut off".to_owned());
                self.flush(log);
                return Progress::Again;
            }
        };
        self.next += length as u64;
        match id {
            MAP => {
                let map = bytes.get(PREFIX..).unwrap_or_default();
                self.types.extend(types(map));
            }
            PRIVATE | 0xc0..=0xef => match Pes::read(bytes) {
                Some(packet) => self.take(id, packet, log),
                None => log.damage.add(at, length as u64, || "a packet without content".to_owned()),
            },
            _ => {}
        }
        Progress::Again
    }

    fn take(&mut self, id: u8, mut packet: Pes<'_>, log: &mut Log) {
        let mut sub = 0;
        let kind = match (self.types.get(&id), id) {
            (_, PRIVATE) => {
                // A substream of sound has its number, its frames and an offset in front.
                let Some((number, rest)) = packet.payload.split_first() else { return };
                sub = *number;
                let is_ac3 = (0x80..0x88).contains(number);
                packet.payload = rest.get(if is_ac3 { 3 } else { 0 }..).unwrap_or_default();
                if is_ac3 {
                    StreamKind::Ac3
                } else {
                    StreamKind::Whole("private data", FilmKind::Other)
                }
            }
            (Some(kind), _) => StreamKind::of(*kind, &[]),
            (None, 0xc0..=0xdf)
                if packet
                    .payload
                    .first_chunk::<2>()
                    .is_some_and(|[a, b]| *a == 0xff && b & 0xf6 == 0xf0) =>
            {
                StreamKind::Adts
            }
            (None, 0xc0..=0xdf) => StreamKind::MpegAudio,
            (None, _) => pictures_of(packet.payload),
        };
        let (clock, ready) = (&mut self.clock, &mut self.ready);
        let stream = match self.streams.entry((id, sub)) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(free) => {
                let number = if sub == 0 { id } else { sub };
                let Some(stream) = Stream::new(number.into(), kind, log) else { return };
                free.insert(stream)
            }
        };
        if log.wants(stream.track) {
            stream.take(&packet, clock, &mut log.damage, ready);
        }
    }

    fn flush(&mut self, log: &mut Log) {
        self.ended = true;
        for stream in self.streams.values_mut() {
            stream.end(&mut log.damage, &mut self.ready);
        }
    }

    /// Skips to the next packet.
    fn resume(&mut self, window: &mut Window, log: &mut Log) -> Progress {
        let at = self.next;
        let (found, skip) = match window.look(at, STEP) {
            Look::More | Look::Passed => return Progress::More,
            Look::Bytes(bytes) => (position(bytes), bytes.len() - PREFIX),
            Look::Ended(rest) => (position(rest), rest.len()),
        };
        let skip = found.unwrap_or(skip.max(1)) as u64;
        log.damage.add(at, skip, || "no packet of MPEG-PS".to_owned());
        self.next = at + skip;
        Progress::Again
    }
}

/// Returns the position of the next packet behind the first byte.
fn position(bytes: &[u8]) -> Option<usize> {
    let begins = |part: &[u8]| matches!(part, [0, 0, 1, id] if *id >= END);
    bytes.windows(4).skip(1).position(begins).map(|at| at + 1)
}

/// Returns the stream ids and types of a program map, without its start code and length.
fn types(map: &[u8]) -> Vec<(u8, u8)> {
    let length = |at: usize| {
        let length = map.get(at..at + 2).and_then(|length| length.try_into().ok());
        usize::from(length.map_or(0, u16::from_be_bytes))
    };
    let begin = 4 + length(2) + 2;
    let mut rest = map.get(begin..begin + length(begin - 2)).unwrap_or_default();
    let mut types = Vec::new();
    while let [kind, id, l0, l1, behind @ ..] = rest {
        types.push((*id, *kind));
        let skip = usize::from(u16::from_be_bytes([*l0, *l1]));
        rest = behind.get(skip..).unwrap_or_default();
    }
    types
}
