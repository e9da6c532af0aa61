//! Transport streams: packets of 188 bytes, also with a time of 4 bytes in front.

use super::pes::{PREFIX, Pes};
use super::psi::{self, Section};
use super::{Stream, Wrapped};
use crate::error::MediaError;
use crate::film::log::{Log, Progress};
use crate::film::window::{Look, Window};
use crate::film::{FilmUnit, UNIT_MAX, refuse};
use std::collections::{BTreeMap, VecDeque};

/// The bytes of a packet, and its first byte.
const PACKET: usize = 188;
const SYNC: u8 = 0x47;
/// The bytes of a time in front of each packet.
const TIME: usize = 4;
/// The most programs.
const PROGRAMS_MAX: usize = 64;
const FIX: &str = "pass a transport stream with its program tables";

/// Reads packets.
#[derive(Debug, Default)]
pub(crate) struct Transport {
    /// The offset of the next packet.
    next: u64,
    /// The bytes between two packets, once they are known.
    gap: Option<usize>,
    programs: Section,
    tables: BTreeMap<u16, Section>,
    streams: BTreeMap<u16, Elementary>,
    clock: Wrapped,
    ready: VecDeque<FilmUnit>,
    ended: bool,
}

/// The packets of an elementary stream.
#[derive(Debug)]
struct Elementary {
    stream: Stream,
    packet: Vec<u8>,
    counter: Option<u8>,
}

/// A packet of the transport stream.
struct Packet<'a> {
    pid: u16,
    begins: bool,
    damaged: bool,
    counter: u8,
    /// The counter may jump.
    jumps: bool,
    payload: &'a [u8],
}

impl<'a> Packet<'a> {
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let [SYNC, b1, b2, b3, ..] = *bytes else { return None };
        let mut payload = bytes.get(TIME..)?;
        let mut jumps = false;
        if b3 & 0x20 != 0 {
            let (length, rest) = payload.split_first()?;
            jumps = *length > 0 && rest.first()? & 0x80 != 0;
            payload = rest.get(usize::from(*length)..)?;
        }
        Some(Self {
            pid: u16::from_be_bytes([b1 & 0x1f, b2]),
            begins: b1 & 0x40 != 0,
            // Marked as damaged, or scrambled.
            damaged: b1 & 0x80 != 0 || b3 & 0xc0 != 0,
            counter: b3 & 0xf,
            jumps,
            payload: if b3 & 0x10 != 0 { payload } else { &[] },
        })
    }
}

impl Transport {
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
                return Err(refuse("mpeg-ts", self.next, "it ends before its program tables", FIX));
            }
            return Ok(Progress::Ended);
        }
        let gap = match self.gap {
            Some(gap) => gap,
            None => match window.look(self.next, PACKET + TIME + 1) {
                Look::More | Look::Passed => return Ok(Progress::More),
                Look::Bytes(bytes) | Look::Ended(bytes) => {
                    let timed = bytes.first() != Some(&SYNC) && bytes.get(TIME) == Some(&SYNC);
                    let gap = if timed { TIME } else { 0 };
                    self.next += gap as u64;
                    *self.gap.insert(gap)
                }
            },
        };
        let bytes = match window.look(self.next, PACKET) {
            Look::More => return Ok(Progress::More),
            Look::Bytes(bytes) => bytes,
            Look::Ended(rest) => {
                let rest = rest.len() as u64;
                if rest > 0 {
                    log.damage.add(self.next, rest, || "the last packet is cut off".to_owned());
                }
                self.flush(log);
                return Ok(Progress::Again);
            }
            Look::Passed => return Ok(Progress::Ended),
        };
        let Some(packet) = Packet::read(bytes) else {
            if bytes.first() == Some(&SYNC) {
                // Its adaptation field is longer than it.
                log.damage.add(self.next, PACKET as u64, || "a packet without content".to_owned());
                self.next += (PACKET + gap) as u64;
                return Ok(Progress::Again);
            }
            return Ok(self.resume(gap, window, log));
        };
        let at = self.next;
        self.next += (PACKET + gap) as u64;
        self.packet(&packet, at, log);
        Ok(Progress::Again)
    }

    fn packet(&mut self, packet: &Packet<'_>, at: u64, log: &mut Log) {
        if packet.pid == 0 {
            if let Some(section) = self.programs.push(packet.payload, packet.begins) {
                for pid in psi::programs(&section) {
                    if self.tables.len() < PROGRAMS_MAX {
                        self.tables.entry(pid).or_default();
                    }
                }
            }
        } else if let Some(table) = self.tables.get_mut(&packet.pid) {
            if let Some(section) = table.push(packet.payload, packet.begins) {
                self.program(&section, log);
            }
        } else if let Some(elementary) = self.streams.get_mut(&packet.pid)
            && log.wants(elementary.stream.track)
        {
            elementary.take(packet, at, &mut self.clock, log, &mut self.ready);
        }
    }

    /// Notes the streams of a program.
    fn program(&mut self, section: &[u8], log: &mut Log) {
        for (pid, kind) in psi::streams(section) {
            if let Some(known) = self.streams.get_mut(&pid) {
                known.stream.change(kind, log, &mut self.ready);
            } else if let Some(stream) = Stream::new(pid.into(), kind, log) {
                self.streams.insert(pid, Elementary { stream, packet: Vec::new(), counter: None });
            }
        }
    }

    fn flush(&mut self, log: &mut Log) {
        self.ended = true;
        for elementary in self.streams.values_mut() {
            elementary.finish(self.next, &mut self.clock, log, &mut self.ready);
            elementary.stream.end(&mut log.damage, &mut self.ready);
        }
    }

    /// Skips to the next place where two packets begin.
    fn resume(&mut self, gap: usize, window: &mut Window, log: &mut Log) -> Progress {
        let step = PACKET + gap;
        let at = self.next;
        let (bytes, ended) = match window.look(at, 2 * step) {
            Look::More | Look::Passed => return Progress::More,
            Look::Bytes(bytes) => (bytes, false),
            Look::Ended(rest) => (rest, true),
        };
        let synced = |place: usize| {
            bytes.get(place) == Some(&SYNC)
                && bytes.get(place + step).is_none_or(|byte| *byte == SYNC)
        };
        let limit = if ended { bytes.len() } else { step };
        let skip = (1..limit).find(|place| synced(*place)).unwrap_or(limit).max(1) as u64;
        log.damage.add(at, skip, || "no packet of MPEG-TS".to_owned());
        self.next = at + skip;
        Progress::Again
    }
}

impl Elementary {
    fn take(
        &mut self,
        packet: &Packet<'_>,
        at: u64,
        clock: &mut Wrapped,
        log: &mut Log,
        to: &mut VecDeque<FilmUnit>,
    ) {
        if packet.payload.is_empty() {
            return;
        }
        let before = self.counter.replace(packet.counter);
        if before == Some(packet.counter) && !packet.jumps {
            // A packet may be sent twice.
            return;
        }
        let expected = before.map(|before| (before + 1) & 0xf);
        let lost = expected.is_some_and(|expected| expected != packet.counter) && !packet.jumps;
        if lost || packet.damaged {
            let why = if lost { "packets are missing" } else { "a packet is damaged or scrambled" };
            log.damage.add(at, PACKET as u64, || why.to_owned());
            self.packet.clear();
            self.stream.lose();
            if packet.damaged {
                return;
            }
        }
        if packet.begins {
            self.finish(at, clock, log, to);
        } else if self.packet.is_empty() {
            return;
        }
        self.packet.extend_from_slice(packet.payload);
        if self.packet.len() > UNIT_MAX {
            log.damage.add(at, PACKET as u64, || "a packet of PES above the limit".to_owned());
            self.packet.clear();
            return;
        }
        // Packets of video may have no length: they end where the next one begins.
        let length = self
            .packet
            .get(4..PREFIX)
            .and_then(|length| length.try_into().ok())
            .map(u16::from_be_bytes);
        let length = length.map(usize::from).filter(|length| *length > 0);
        if length.is_some_and(|length| self.packet.len() >= PREFIX + length) {
            self.finish(at, clock, log, to);
        }
    }

    /// Ends the current packet of PES.
    fn finish(&mut self, at: u64, clock: &mut Wrapped, log: &mut Log, to: &mut VecDeque<FilmUnit>) {
        if self.packet.is_empty() {
            return;
        }
        match Pes::read(&self.packet) {
            Some(packet) => self.stream.take(&packet, clock, &mut log.damage, to),
            None => log.damage.add(at, 0, || "no packet of PES".to_owned()),
        }
        self.packet.clear();
    }
}
