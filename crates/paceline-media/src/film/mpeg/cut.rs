//! The ends of frames in elementary streams.

use super::kind::StreamKind;
use crate::annexb::find_start_code;
use crate::audio::AacFormat;
use crate::stream::{End, Step, UnitCutter};

/// The result of a look at the next bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// A frame behind `head` bytes of header; `samples` are its samples and their rate.
    Frame { head: usize, length: usize, samples: Option<(u32, u32)> },
    /// Bytes without content.
    Nothing(usize),
    /// Bytes that are no frame.
    Skip(usize, String),
    /// The end of the frame has not arrived.
    More,
}

/// Finds the ends of frames.
#[derive(Debug)]
pub(super) enum Cutter {
    Video(Box<UnitCutter>),
    Sound(StreamKind),
    /// The bytes of a picture of MPEG-1 or MPEG-2 that were searched, and whether they have a picture's header.
    Pictures {
        searched: usize,
        begun: bool,
    },
    /// The length of the last packet, if it was not cut.
    Whole(Option<usize>),
}

/// A frame of sound: its bytes, samples and rate.
type Sound = (usize, u32, u32);

impl Cutter {
    pub(super) fn new(kind: StreamKind) -> Self {
        match kind {
            StreamKind::Video(codec) => Self::Video(Box::new(UnitCutter::new(codec))),
            StreamKind::MpegVideo => Self::Pictures { searched: 0, begun: false },
            StreamKind::Adts | StreamKind::MpegAudio | StreamKind::Ac3 | StreamKind::Opus(_) => {
                Self::Sound(kind)
            }
            StreamKind::Whole(..) => Self::Whole(None),
        }
    }

    /// Notes the bytes that are buffered at the end of a packet.
    pub(super) fn note(&mut self, bytes: usize) {
        if let Self::Whole(length) = self {
            *length = Some(bytes);
        }
    }

    /// Forgets the bytes that were searched.
    pub(super) fn reset(&mut self) {
        match self {
            Self::Video(units) => units.reset(),
            Self::Pictures { searched, begun } => (*searched, *begun) = (0, false),
            Self::Whole(length) => *length = None,
            Self::Sound(_) => {}
        }
    }

    pub(super) fn cut(&mut self, bytes: &[u8], ended: bool) -> Cut {
        if bytes.is_empty() {
            return Cut::More;
        }
        match self {
            Self::Video(units) => {
                match units.step(bytes, if ended { End::Ended } else { End::Open }) {
                    Step::Sample(length, _) => Cut::Frame { head: 0, length, samples: None },
                    Step::Used(count) => Cut::Nothing(count),
                    Step::Damaged(count, error) => Cut::Skip(count, error.to_string()),
                    Step::More => Cut::More,
                }
            }
            Self::Pictures { searched, begun } => pictures(bytes, ended, searched, begun),
            Self::Whole(length) => match length.take() {
                Some(length) => {
                    Cut::Frame { head: 0, length: length.min(bytes.len()), samples: None }
                }
                None => Cut::More,
            },
            Self::Sound(StreamKind::Opus(_)) => opus(bytes, ended),
            Self::Sound(kind) => sound(bytes, ended, *kind),
        }
    }
}

/// A picture ends before the header of the next one, or of a sequence or group.
fn pictures(bytes: &[u8], ended: bool, searched: &mut usize, begun: &mut bool) -> Cut {
    let whole = Cut::Frame { head: 0, length: bytes.len(), samples: None };
    loop {
        let Some(code) = find_start_code(bytes, *searched) else {
            *searched = bytes.len().saturating_sub(2).max(*searched);
            return if ended { whole } else { Cut::More };
        };
        let Some(kind) = bytes.get(code + 3) else {
            *searched = code;
            return if ended { whole } else { Cut::More };
        };
        if matches!(kind, 0x00 | 0xb3 | 0xb8) && *begun {
            (*searched, *begun) = (0, false);
            return Cut::Frame { head: 0, length: code, samples: None };
        }
        *begun |= *kind == 0;
        *searched = code + 3;
    }
}

fn sound(bytes: &[u8], ended: bool, kind: StreamKind) -> Cut {
    let read = |bytes: &[u8]| match kind {
        StreamKind::Adts => adts(bytes),
        StreamKind::Ac3 => ac3(bytes),
        StreamKind::MpegAudio => mpeg_audio(bytes),
        StreamKind::Video(_)
        | StreamKind::MpegVideo
        | StreamKind::Opus(_)
        | StreamKind::Whole(..) => None,
    };
    match read(bytes) {
        Some((length, samples, rate)) if length <= bytes.len() => {
            Cut::Frame { head: 0, length, samples: Some((samples, rate)) }
        }
        Some(_) if ended => Cut::Skip(bytes.len(), "the last block of sound is cut off".to_owned()),
        Some(_) => Cut::More,
        None if bytes.len() < 7 && !ended => Cut::More,
        None => {
            let next = (1..bytes.len())
                .find(|at| bytes.get(*at..).is_some_and(|rest| read(rest).is_some()));
            // A header may begin in the last bytes.
            let keep = if ended { 0 } else { 6 };
            let skip = next.unwrap_or(bytes.len().saturating_sub(keep)).max(1);
            Cut::Skip(skip, "no block of sound".to_owned())
        }
    }
}

fn adts(bytes: &[u8]) -> Option<Sound> {
    let (format, _, length) = AacFormat::of_block(bytes)?;
    let blocks = u32::from(bytes.get(6)? & 3) + 1;
    Some((length, AacFormat::BLOCK * blocks, format.rate()))
}

/// Reads a header of MPEG-1 or MPEG-2 (ISO/IEC 11172-3, 2.4.2.3).
fn mpeg_audio(bytes: &[u8]) -> Option<Sound> {
    const RATES: [[u32; 15]; 5] = [
        [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
        [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
        [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
        [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
        [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    ];
    let [first, second, third, _] = *bytes.first_chunk::<4>()?;
    let (version, layer) = (second >> 3 & 3, 4 - (second >> 1 & 3));
    if first != 0xff || second & 0xe0 != 0xe0 || version == 1 || layer == 4 {
        return None;
    }
    let is_first = version == 3;
    let table = match (is_first, layer) {
        (true, layer) => usize::from(layer) - 1,
        (false, 1) => 3,
        (false, _) => 4,
    };
    let bits = RATES.get(table)?.get(usize::from(third >> 4)).filter(|bits| **bits > 0)? * 1_000;
    let rate = [44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))?;
    let rate = match version {
        3 => *rate,
        2 => rate / 2,
        _ => rate / 4,
    };
    let padding = u32::from(third >> 1 & 1);
    let (samples, length) = match layer {
        1 => (384, (12 * bits / rate + padding) * 4),
        3 if !is_first => (576, 72 * bits / rate + padding),
        _ => (1_152, 144 * bits / rate + padding),
    };
    Some((usize::try_from(length).ok()?.max(4), samples, rate))
}

/// Reads a header of AC-3 (ETSI TS 102 366, 4.3.1).
fn ac3(bytes: &[u8]) -> Option<Sound> {
    const BITS: [u32; 19] =
        [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640];
    let [0x0b, 0x77, _, _, code, _] = *bytes.first_chunk::<6>()? else { return None };
    let bits = BITS.get(usize::from(code & 0x3f) >> 1)?;
    let rate = *[48_000, 44_100, 32_000].get(usize::from(code >> 6))?;
    // In words of 16 bits. At 44.1 kHz, every other frame has one more.
    let words = bits * 1_000 * 1_536 / 16 / rate + u32::from(rate == 44_100 && code & 1 == 1);
    Some((usize::try_from(words).ok()? * 2, 1_536, rate))
}

/// Reads the header of an access unit of Opus in MPEG-TS, and returns the packet behind it.
fn opus(bytes: &[u8], ended: bool) -> Cut {
    let short = || {
        if ended {
            Cut::Skip(bytes.len(), "the last packet of Opus is cut off".to_owned())
        } else {
            Cut::More
        }
    };
    let [0x7f, flags, ..] = *bytes else {
        return if bytes.len() < 2 {
            short()
        } else {
            Cut::Skip(bytes.len(), "no packet of Opus".to_owned())
        };
    };
    if flags & 0xe0 != 0xe0 {
        return Cut::Skip(bytes.len(), "no packet of Opus".to_owned());
    }
    let (mut at, mut length) = (2, 0);
    loop {
        let Some(byte) = bytes.get(at) else { return short() };
        length += usize::from(*byte);
        at += 1;
        if *byte < 255 {
            break;
        }
    }
    // The samples that are cut at the begin and at the end, and an extension.
    at += 2 * usize::from(flags >> 4 & 1) + 2 * usize::from(flags >> 3 & 1);
    if flags & 4 != 0 {
        let Some(extension) = bytes.get(at) else { return short() };
        at += 1 + usize::from(*extension);
    }
    let Some(packet) = bytes.get(at..at + length) else { return short() };
    let micros = crate::audio::opus_micros(packet).unwrap_or(20_000);
    let samples = micros.saturating_mul(48) / 1_000;
    Cut::Frame { head: at, length, samples: Some((samples, 48_000)) }
}
