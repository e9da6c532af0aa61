//! H.264 (RFC 6184) and H.265 (RFC 7798) in RTP: single NAL units, aggregates and fragments.

use super::{RtpEvent, RtpPacket, fits};
use crate::fault::UnitFault;
use paceline_media::video::UNIT_NALS_MAX;

/// The start code before each NAL unit.
const START: [u8; 4] = [0, 0, 0, 1];

/// The fault of a fragment whose first one did not arrive.
const WITHOUT_START: UnitFault = UnitFault::Malformed("a fragment without a start");

/// The codec of NAL units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NalCodec {
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
    pub(crate) const fn header_bytes(self) -> usize {
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
            (Self::H264, 24) | (Self::H265, 48) if rest.is_empty() => {
                Err("an aggregate that is cut off")
            }
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
    pub(crate) const fn kind(self, first: u8) -> u8 {
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
    doubt: Doubt,
}

/// Whether a unit may lack its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doubt {
    /// It begins with the packet after the unit before it.
    #[default]
    None,
    /// Packets before it are missing.
    Missing,
    /// As `Missing`, and the loss was counted.
    Counted,
    /// A unit of this time was left out up to a marker, which may lie within it.
    Rest(i64),
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
    /// Of the unit that begins with the next packet.
    doubt: Doubt,
}

impl NalUnits {
    pub(super) const fn new(codec: NalCodec) -> Self {
        Self {
            codec,
            open: None,
            ended: None,
            damaged: None,
            by_time: false,
            doubt: Doubt::Missing,
        }
    }

    pub(super) fn push(&mut self, packet: &RtpPacket<'_>, events: &mut Vec<RtpEvent>) {
        if packet.lost > 0 {
            self.lose(packet.time, events);
        }
        let other = self.open.as_ref().is_some_and(|open| open.time != packet.time);
        if other {
            self.change_time(packet.time, events);
        }
        let ends = packet.marker && !self.by_time;
        if self.damaged == Some(packet.time) {
            if ends {
                self.forget_damage();
            }
            return;
        }
        self.damaged = None;
        let time = packet.time;
        let doubt = match std::mem::take(&mut self.doubt) {
            Doubt::Rest(left) if left == time => Doubt::Counted,
            Doubt::Rest(_) => Doubt::None,
            doubt @ (Doubt::None | Doubt::Missing | Doubt::Counted) => doubt,
        };
        let open = self.open.get_or_insert_with(|| Open { time, doubt, ..Open::default() });
        if let Err(fault) = open.add(self.codec, packet.payload) {
            // The beginning of its first unit may precede the first packet.
            let torn = open.nals == 0 && fault == WITHOUT_START;
            let doubt = if torn { open.doubt } else { Doubt::None };
            (self.open, self.damaged) = (None, Some(time));
            match doubt {
                Doubt::None | Doubt::Rest(_) => events.push(RtpEvent::Fault(fault)),
                Doubt::Missing => events.push(RtpEvent::Fault(UnitFault::Lost)),
                Doubt::Counted => {}
            }
            if ends {
                self.forget_damage();
            }
        } else if ends && open.begins.is_some() {
            self.finish(events);
            self.ended = Some(time);
        }
    }

    /// Notes that packets are missing before one of `time`.
    fn lose(&mut self, time: i64, events: &mut Vec<RtpEvent>) {
        // Several gaps of one picture are one loss.
        if self.damaged == Some(time) {
            return;
        }
        events.push(RtpEvent::Fault(UnitFault::Lost));
        let before = self.open.take().map(|open| open.time);
        match before {
            Some(before) if before == time => self.damaged = Some(time),
            // The loss was counted for the picture before.
            Some(_) => self.doubt = Doubt::Missing,
            None => self.doubt = Doubt::Counted,
        }
    }

    /// Ends a picture that is left out at its marker: a camera without a clock gives the next one the same time.
    fn forget_damage(&mut self) {
        self.doubt = self.damaged.take().map_or(Doubt::None, Doubt::Rest);
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
        let whole = open.doubt == Doubt::None;
        self.by_time |= goes_on && whole;
        events.push(match (open.begins, whole) {
            _ if open.fragment => {
                RtpEvent::Fault(UnitFault::Malformed("a fragment without an end"))
            }
            (None | Some(false), false) if open.doubt == Doubt::Counted => return,
            (None, _) | (Some(false), false) => RtpEvent::Fault(UnitFault::Lost),
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
                match (starts, self.fragment) {
                    (true, true) => return Err(UnitFault::Malformed("two fragments at once")),
                    (false, false) => return Err(WITHOUT_START),
                    (true, false) | (false, true) => {}
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
