//! The description of a track.

use super::element::{Children, float, id, unsigned};
use crate::audio::{AacFormat, AudioFormat, Coding, OpusFormat};
use crate::codec::Codec;
use crate::film::mp4::entry as mp4;
use crate::film::{FilmCodec, FilmKind, FilmTrack, FilmTurn, TimeBase};
use crate::size::Size;
use mp4_atom::{Atom as _, Av1c, Avcc, Hvcc};

/// A track, in the same position as in the demuxer's list.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) number: u64,
    /// The ticks by which its times precede its blocks' times.
    pub(super) delay: i64,
    /// The time of a frame, 0 if it is not stated.
    pub(super) duration_ns: u64,
    /// The bytes that were removed from the front of each frame.
    pub(super) stripped: Vec<u8>,
}

/// Reads a description; `scale` are nanoseconds per tick.
pub(super) fn read(entry: &[u8], scale: u32) -> (Entry, FilmTrack) {
    let child = |wanted: u32| child(entry, wanted);
    let value = |wanted: u32| child(wanted).map(unsigned);
    let kind = match value(id::TYPE) {
        Some(1) => FilmKind::Pictures,
        Some(2) => FilmKind::Sound,
        _ => FilmKind::Other,
    };
    let (stripped, codec) = match packed(child(id::ENCODINGS).unwrap_or_default()) {
        Ok(stripped) => (stripped, codec(entry, kind)),
        Err(other) => (Vec::new(), FilmCodec::other(other, kind)),
    };
    let video = child(id::VIDEO).unwrap_or_default();
    let side =
        |wanted: u32| u32::try_from(unsigned(self::child(video, wanted).unwrap_or_default())).ok();
    let size = side(id::WIDTH).zip(side(id::HEIGHT));
    let delay = value(id::CODEC_DELAY).unwrap_or(0);
    let scale_ns = u64::from(scale);
    let number = value(id::NUMBER).unwrap_or(0);
    let track = FilmTrack {
        id: number,
        codecs: vec![codec],
        tick: TimeBase { num: scale, den: 1_000_000_000 },
        size: size.and_then(|(width, height)| Size::new(width, height).ok()),
        turn: turn(video),
    };
    let delay = i64::try_from((delay.saturating_add(scale_ns / 2)) / scale_ns).unwrap_or(0);
    let duration_ns = value(id::DEFAULT_DURATION).unwrap_or(0);
    (Entry { number, delay, duration_ns, stripped }, track)
}

fn child(bytes: &[u8], wanted: u32) -> Option<&[u8]> {
    Children(bytes).find(|(id, _)| *id == wanted).map(|(_, content)| content)
}

/// Returns the bytes that were stripped from the front of frames, or the kind of packing that is not supported.
fn packed(encodings: &[u8]) -> Result<Vec<u8>, &'static str> {
    let Some(encoding) = child(encodings, id::ENCODING) else { return Ok(Vec::new()) };
    if child(encoding, id::ENCRYPTION).is_some() {
        return Err("encrypted");
    }
    let compression = child(encoding, id::COMPRESSION).unwrap_or_default();
    match child(compression, id::ALGORITHM).map(unsigned) {
        Some(3) => Ok(child(compression, id::SETTINGS).unwrap_or_default().to_vec()),
        _ => Err("compressed a second time"),
    }
}

/// Returns the orientation of pictures. Matroska states it counter-clockwise.
fn turn(video: &[u8]) -> FilmTurn {
    let roll = child(video, id::PROJECTION).and_then(|it| child(it, id::ROLL)).map_or(0.0, float);
    let quarters = (roll / 90.0).round();
    if (roll - quarters * 90.0).abs() > 0.01 {
        return FilmTurn { degrees: 0, other: true };
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 3")]
    let degrees = ((-quarters).rem_euclid(4.0) as u16).min(3) * 90;
    FilmTurn { degrees, other: false }
}

fn codec(entry: &[u8], kind: FilmKind) -> FilmCodec {
    let name = String::from_utf8_lossy(child(entry, id::CODEC).unwrap_or_default()).into_owned();
    let private = child(entry, id::PRIVATE).unwrap_or_default();
    let known = match name.trim_end_matches('\0') {
        "V_MPEG4/ISO/AVC" => Avcc::decode_body(&mut &private[..]).ok().map(|avcc| mp4::h264(&avcc)),
        "V_MPEGH/ISO/HEVC" => {
            Hvcc::decode_body(&mut &private[..]).ok().map(|hvcc| mp4::h265(&hvcc))
        }
        "V_AV1" => {
            let sets = Av1c::decode_body(&mut &private[..])
                .map(|av1c| av1c.config_obus)
                .unwrap_or_default();
            Some(FilmCodec::Video { codec: Codec::Av1, lengths: None, sets })
        }
        "V_MJPEG" => Some(FilmCodec::Jpeg),
        aac if aac.starts_with("A_AAC") => Some(match AacFormat::read(private) {
            Ok(format) => FilmCodec::Aac(Some(format)),
            Err(other) => FilmCodec::other(other, kind),
        }),
        "A_OPUS" => {
            // OpusHead (RFC 7845, 5.1).
            let channels = private.get(9).copied().unwrap_or(2);
            let rate = private
                .get(12..16)
                .and_then(|rate| rate.try_into().ok())
                .map_or(48_000, u32::from_le_bytes);
            Some(FilmCodec::Opus(OpusFormat::nearest(rate, channels)))
        }
        "A_PCM/INT/LIT" => sound(entry, Coding::S16le, false),
        "A_PCM/INT/BIG" => sound(entry, Coding::S16le, true),
        "A_MS/ACM" => match private.get(..2) {
            Some([6, 0]) => sound(entry, Coding::Alaw, false),
            Some([7, 0]) => sound(entry, Coding::Ulaw, false),
            _ => None,
        },
        _ => None,
    };
    let named = match name.trim_end_matches('\0') {
        "V_VP8" => "VP8",
        "V_VP9" => "VP9",
        "V_MPEG1" => "MPEG-1",
        "V_MPEG2" => "MPEG-2",
        "A_MPEG/L3" => "MP3",
        "A_VORBIS" => "Vorbis",
        "A_AC3" => "AC-3",
        "A_FLAC" => "FLAC",
        "" => "of an unknown type",
        other => other,
    };
    known.unwrap_or_else(|| FilmCodec::other(named.chars().take(60).collect::<String>(), kind))
}

fn sound(entry: &[u8], coding: Coding, big_endian: bool) -> Option<FilmCodec> {
    let audio = child(entry, id::AUDIO).unwrap_or_default();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the format checks the rate"
    )]
    let rate = child(audio, id::RATE).map_or(8_000.0, float).round() as u32;
    let channels = child(audio, id::CHANNELS).map_or(1, unsigned);
    let bits = child(audio, id::BITS).map_or(16, unsigned);
    let format = AudioFormat::new(coding, rate, u8::try_from(channels).ok()?).ok()?;
    let supported = coding != Coding::S16le || bits == 16;
    supported.then_some(FilmCodec::Sound { format, big_endian })
}
