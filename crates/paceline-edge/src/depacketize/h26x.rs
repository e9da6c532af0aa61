//! H.264 (RFC 6184) and H.265 (RFC 7798) in RTP: single NAL units, aggregates and fragments.

use super::{RtpEvent, RtpPacket, fits};
use crate::fault::UnitFault;
use paceline_media::video::UNIT_NALS_MAX;

/// The start code before each NAL unit.
const START: [u8; 4] = [0, 0, 0, 1];

/// The codec of NAL units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NalCodec {
    H264,
    H265,
}

/// The parts of a payload.
enum Payload<'a> {
    Single(&'a [u8]),
    /// NAL units, each after its length in two bytes.
    Aggregate(&'a [u8]),
    Fragment {
        /// The header of the NAL unit, in the first `length` bytes.
        header: [u8; 2],
        length: usize,
        starts: bool,
        ends: bool,
        part: &'a [u8],
    },
}

impl NalCodec {
    /// Returns the length of the header of a NAL unit.
    const fn header_bytes(self) -> usize {
        match self {
            Self::H264 => 1,
            Self::H265 => 2,
        }
    }

    fn parse(self, payload: &[u8]) -> Result<Payload<'_>, &'static str> {
        let (header, rest) =
            payload.split_at_checked(self.header_bytes()).ok_or("an empty packet")?;
        let first = header.first().copied().unwrap_or_default();
        if first & 0x80 != 0 {
            return Err("a NAL unit with the forbidden bit");
        }
        let short = "a fragment without its header";
        match (self, self.kind(first)) {
            (Self::H264, 1..=23) | (Self::H265, 0..=47) => Ok(Payload::Single(payload)),
            (Self::H264, 24) | (Self::H265, 48) => Ok(Payload::Aggregate(rest)),
            (Self::H264, 28) => {
                let (&[fu], part) = rest.split_first_chunk().ok_or(short)?;
                let header = [first & 0xe0 | fu & 0x1f, 0];
                let (starts, ends) = (fu & 0x80 != 0, fu & 0x40 != 0);
                Ok(Payload::Fragment { header, length: 1, starts, ends, part })
            }
            (Self::H265, 49) => {
                let (&[fu], part) = rest.split_first_chunk().ok_or(short)?;
                let second = header.get(1).copied().unwrap_or_default();
                let header = [first & 0x81 | (fu & 0x3f) << 1, second];
                let (starts, ends) = (fu & 0x80 != 0, fu & 0x40 != 0);
                Ok(Payload::Fragment { header, length: 2, starts, ends, part })
            }
            (Self::H264, 25..=27 | 29) => Err("a packet of the interleaved mode of H.264"),
            (Self::H264 | Self::H265, _) => Err("a packet of an unknown type"),
        }
    }

    /// Returns the type of a NAL unit by the first byte of its header.
    const fn kind(self, first: u8) -> u8 {
        match self {
            Self::H264 => first & 0x1f,
            Self::H265 => (first >> 1) & 0x3f,
        }
    }

    /// Returns whether the slice begins a picture; `None` for a NAL unit that is no slice.
    fn begins(self, nal: &[u8]) -> Option<bool> {
        let first = *nal.first()?;
        let slice = match self {
            Self::H264 => matches!(self.kind(first), 1 | 2 | 5),
            Self::H265 => self.kind(first) < 32,
        };
        // The first macroblock is 0, written as a one; or first_slice_segment_in_pic_flag.
        let begins = nal.get(self.header_bytes()).is_some_and(|byte| byte & 0x80 != 0);
        slice.then_some(begins)
    }
}

/// The access unit whose end has not arrived.
#[derive(Clone, Debug, Default)]
struct Open {
    time: i64,
    bytes: Vec<u8>,
    nals: usize,
    /// A NAL unit whose last fragment has not arrived.
    fragment: bool,
    /// Whether its first slice begins a picture, if it has one.
    begins: Option<bool>,
    /// Packets before it are missing, so it may lack its beginning.
    doubtful: bool,
}

/// Cuts packets into access units.
#[derive(Clone, Debug)]
pub(super) struct NalUnits {
    codec: NalCodec,
    open: Option<Open>,
    /// The time of the last unit that ended at its marker.
    ended: Option<i64>,
    /// The time of a unit whose other packets are left out.
    damaged: Option<i64>,
    /// Units do not end at markers: the camera sets them within pictures.
    by_time: bool,
    /// Nothing arrived before.
    fresh: bool,
}

impl NalUnits {
    pub(super) const fn new(codec: NalCodec) -> Self {
        Self { codec, open: None, ended: None, damaged: None, by_time: false, fresh: true }
    }

    pub(super) fn push(&mut self, packet: &RtpPacket<'_>, events: &mut Vec<RtpEvent>) {
        let lost = packet.lost > 0;
        if lost {
            self.lose(packet.time, events);
        }
        let other = self.open.as_ref().is_some_and(|open| open.time != packet.time);
        if other {
            self.change_time(packet.time, events);
        }
        if self.damaged == Some(packet.time) {
            return;
        }
        self.damaged = None;
        let doubtful = lost || std::mem::take(&mut self.fresh);
        let time = packet.time;
        let open = self.open.get_or_insert_with(|| Open { time, doubtful, ..Open::default() });
        if let Err(fault) = open.add(self.codec, packet.payload) {
            // The beginning of its first unit may precede the first packet.
            let fault = if open.doubtful && open.nals == 0 { UnitFault::Lost } else { fault };
            self.open = None;
            self.fail(time, fault, events);
        } else if packet.marker && !self.by_time && open.begins.is_some() {
            self.finish(events);
            self.ended = Some(time);
        }
    }

    /// Notes that packets are missing before one of `time`.
    fn lose(&mut self, time: i64, events: &mut Vec<RtpEvent>) {
        events.push(RtpEvent::Fault(UnitFault::Lost));
        if self.open.take().is_some_and(|open| open.time == time) {
            self.damaged = Some(time);
        }
    }

    fn fail(&mut self, time: i64, fault: UnitFault, events: &mut Vec<RtpEvent>) {
        self.damaged = Some(time);
        events.push(RtpEvent::Fault(fault));
    }

    /// Ends the open unit before a packet of another time. Parameter sets and SEI without a slice belong to the next picture.
    fn change_time(&mut self, time: i64, events: &mut Vec<RtpEvent>) {
        match &mut self.open {
            Some(open) if open.begins.is_none() && !open.fragment => open.time = time,
            Some(_) | None => self.finish(events),
        }
    }

    fn finish(&mut self, events: &mut Vec<RtpEvent>) {
        let Some(open) = self.open.take() else { return };
        // Pictures of cameras without a clock may have the same time.
        let goes_on = open.begins == Some(false) && self.ended == Some(open.time);
        self.by_time |= goes_on && !open.doubtful;
        events.push(match (open.begins, open.doubtful) {
            _ if open.fragment => {
                RtpEvent::Fault(UnitFault::Malformed("a fragment without an end"))
            }
            (None, _) | (Some(false), true) => RtpEvent::Fault(UnitFault::Lost),
            _ if goes_on => RtpEvent::Fault(UnitFault::Malformed("a marker within a picture")),
            (Some(_), _) => RtpEvent::Unit { time: open.time, bytes: open.bytes },
        });
    }
}

impl Open {
    fn add(&mut self, codec: NalCodec, payload: &[u8]) -> Result<(), UnitFault> {
        match codec.parse(payload).map_err(UnitFault::Malformed)? {
            Payload::Single(nal) => self.nal(codec, nal),
            Payload::Aggregate(mut rest) => {
                while let Some((length, more)) = rest.split_first_chunk() {
                    let length = usize::from(u16::from_be_bytes(*length));
                    let cut = more.split_at_checked(length).filter(|_| length > 0);
                    let (nal, more) =
                        cut.ok_or(UnitFault::Malformed("an aggregate that is cut off"))?;
                    self.nal(codec, nal)?;
                    rest = more;
                }
                if rest.is_empty() {
                    Ok(())
                } else {
                    Err(UnitFault::Malformed("an aggregate that is cut off"))
                }
            }
            Payload::Fragment { header, length, starts, ends, part } => {
                if starts == self.fragment {
                    let reason =
                        if starts { "two fragments at once" } else { "a fragment without a start" };
                    return Err(UnitFault::Malformed(reason));
                }
                let header = header.get(..length).filter(|_| starts).unwrap_or_default();
                if starts {
                    let first = part.first().copied();
                    let begin: Vec<u8> = header.iter().copied().chain(first).collect();
                    self.start(codec, &begin)?;
                }
                self.append(header)?;
                self.append(part)?;
                self.fragment = !ends;
                Ok(())
            }
        }
    }

    fn nal(&mut self, codec: NalCodec, nal: &[u8]) -> Result<(), UnitFault> {
        if self.fragment {
            return Err(UnitFault::Malformed("a NAL unit within a fragment"));
        }
        self.start(codec, nal)?;
        self.append(nal)
    }

    /// Begins a NAL unit that begins with `nal`.
    fn start(&mut self, codec: NalCodec, nal: &[u8]) -> Result<(), UnitFault> {
        self.nals += 1;
        if self.nals > UNIT_NALS_MAX {
            return Err(UnitFault::TooLarge);
        }
        if self.begins.is_none() {
            self.begins = codec.begins(nal);
        }
        self.append(&START)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), UnitFault> {
        if !fits(self.bytes.len(), bytes.len()) {
            return Err(UnitFault::TooLarge);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}
