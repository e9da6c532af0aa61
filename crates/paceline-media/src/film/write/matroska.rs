//! Matroska: a segment without a size, then clusters.

use super::payload::Payload;
use super::{Lane, Written, entry};
use crate::audio::Coding;
use crate::codec::Codec;
use crate::film::FilmKind;
use mp4_atom::Atom as _;

/// Nanoseconds per tick.
const SCALE_NS: i64 = 1_000_000;
/// The size of an element that extends to the end of the file.
const UNKNOWN: [u8; 8] = [1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
/// The longest cluster in ticks: the time of a block has 16 bits.
const CLUSTER_MAX: i64 = 30_000;
const NAME: &[u8] = b"paceline";

/// Writes the header.
pub(super) fn begin(lanes: &[Lane], out: &mut Vec<u8>) {
    let head = [
        unsigned(0x4286, 1),
        unsigned(0x42f7, 1),
        unsigned(0x42f2, 4),
        unsigned(0x42f3, 8),
        element(0x4282, b"matroska"),
        unsigned(0x4287, 4),
        unsigned(0x4285, 2),
    ];
    out.extend(element(0x1a45_dfa3, &head.concat()));
    out.extend_from_slice(&0x1853_8067_u32.to_be_bytes());
    out.extend_from_slice(&UNKNOWN);
    let info = [unsigned(0x2a_d7b1, 1_000_000), element(0x4d80, NAME), element(0x5741, NAME)];
    out.extend(element(0x1549_a966, &info.concat()));
    let tracks = lanes.iter().enumerate().filter_map(|(lane, it)| Some(track(lane, it.payload()?)));
    out.extend(element(0x1654_ae6b, &tracks.collect::<Vec<_>>().concat()));
}

/// Writes these units in clusters.
pub(super) fn part(units: &[Written], out: &mut Vec<u8>) {
    let mut rest = units;
    while let Some(first) = rest.first() {
        let begin = tick(first.shown_ns).max(0);
        let near = |unit: &Written| (tick(unit.shown_ns) - begin).abs() < CLUSTER_MAX;
        let count = rest.iter().take_while(|unit| near(unit)).count().max(1);
        let (own, behind) = rest.split_at(count.min(rest.len()));
        let mut cluster = unsigned(0xe7, u64::try_from(begin).unwrap_or(0));
        for unit in own {
            let time = i16::try_from(tick(unit.shown_ns) - begin).unwrap_or(i16::MIN);
            // Tracks have numbers below 127.
            let track = u8::try_from(unit.lane + 1).unwrap_or(1) | 0x80;
            let [t0, t1] = time.to_be_bytes();
            let flags = if unit.key { 0x80 } else { 0 };
            let block = [&[track, t0, t1, flags][..], &unit.bytes].concat();
            cluster.extend(element(0xa3, &block));
        }
        out.extend(element(0x1f43_b675, &cluster));
        rest = behind;
    }
}

fn tick(time_ns: i64) -> i64 {
    (time_ns + SCALE_NS / 2).div_euclid(SCALE_NS)
}

/// Returns an element.
fn element(id: u32, content: &[u8]) -> Vec<u8> {
    let id = id.to_be_bytes();
    let zeros = id.iter().take_while(|byte| **byte == 0).count();
    let mut out = id.get(zeros..).unwrap_or_default().to_vec();
    let mut size = (content.len() as u64).to_be_bytes();
    if let Some(first) = size.first_mut() {
        *first |= 1;
    }
    out.extend_from_slice(&size);
    out.extend_from_slice(content);
    out
}

fn unsigned(id: u32, value: u64) -> Vec<u8> {
    element(id, &value.to_be_bytes())
}

fn track(lane: usize, payload: &Payload) -> Vec<u8> {
    let number = lane as u64 + 1;
    let pictures = payload.kind() == FilmKind::Pictures;
    let (codec, private) = codec(payload);
    let mut entry = [
        unsigned(0xd7, number),
        unsigned(0x73c5, number),
        unsigned(0x83, if pictures { 1 } else { 2 }),
        // Blocks have one frame each.
        unsigned(0x9c, 0),
        element(0x86, codec.as_bytes()),
    ]
    .concat();
    if !private.is_empty() {
        entry.extend(element(0x63a2, &private));
    }
    match (payload.size(), payload) {
        (Some(size), _) => {
            let video = [unsigned(0xb0, size.width.into()), unsigned(0xba, size.height.into())];
            let video = [video.concat(), projection(payload)].concat();
            entry.extend(element(0xe0, &video));
        }
        (None, payload) => entry.extend(element(0xe1, &audio(payload))),
    }
    element(0xae, &entry)
}

/// Returns the rotation of pictures, which Matroska states counter-clockwise; nothing for those that are shown as they are.
fn projection(payload: &Payload) -> Vec<u8> {
    let turn = payload.turn();
    if turn.is_none() || turn.other {
        return Vec::new();
    }
    let roll = 180.0 - f64::from((turn.degrees + 180) % 360);
    let content = [unsigned(0x7671, 0), element(0x7675, &roll.to_be_bytes())];
    element(0x7670, &content.concat())
}

fn audio(payload: &Payload) -> Vec<u8> {
    let channels = match payload {
        Payload::Aac(format) => format.channels(),
        Payload::Opus(format) => format.channels,
        Payload::Sound(format) => format.channels,
        Payload::Video { .. } | Payload::Jpeg { .. } => 0,
    };
    let mut audio = element(0xb5, &f64::from(payload.scale()).to_be_bytes());
    audio.extend(unsigned(0x9f, channels.into()));
    if let Payload::Sound(format) = payload {
        audio.extend(unsigned(0x6264, 8 * format.coding.sample_bytes() as u64));
    }
    audio
}

/// Returns the name of a codec and its headers.
fn codec(payload: &Payload) -> (&'static str, Vec<u8>) {
    let mut private = Vec::new();
    let name = match payload {
        Payload::Video { codec: Codec::H264, first, .. } => {
            let _ = entry::avcc(first).map(|avcc| avcc.encode_body(&mut private));
            "V_MPEG4/ISO/AVC"
        }
        Payload::Video { first, .. } => {
            let _ = entry::hvcc(first).map(|hvcc| hvcc.encode_body(&mut private));
            "V_MPEGH/ISO/HEVC"
        }
        Payload::Jpeg { .. } => "V_MJPEG",
        Payload::Aac(format) => {
            private.extend(format.config());
            "A_AAC"
        }
        Payload::Opus(format) => {
            private.extend_from_slice(b"OpusHead");
            private.extend_from_slice(&[1, format.channels, 0, 0]);
            private.extend_from_slice(&format.rate.to_le_bytes());
            private.extend_from_slice(&[0, 0, 0]);
            "A_OPUS"
        }
        Payload::Sound(format) => match format.coding {
            Coding::S16le => "A_PCM/INT/LIT",
            Coding::Ulaw | Coding::Alaw => {
                private = wave(format);
                "A_MS/ACM"
            }
        },
    };
    (name, private)
}

/// Returns the format of sound as WAV files have it.
fn wave(format: &crate::audio::AudioFormat) -> Vec<u8> {
    let code: u16 = if format.coding == Coding::Ulaw { 7 } else { 6 };
    let frame = u16::from(format.channels);
    let mut wave = [code.to_le_bytes(), frame.to_le_bytes()].concat();
    wave.extend_from_slice(&format.rate.to_le_bytes());
    wave.extend_from_slice(&(format.rate * u32::from(frame)).to_le_bytes());
    wave.extend([frame.to_le_bytes(), 8_u16.to_le_bytes(), 0_u16.to_le_bytes()].concat());
    wave
}
