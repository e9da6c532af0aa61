//! Sample descriptions: the codecs of a track.

use super::Boxes;
use crate::audio::{AacFormat, AudioFormat, Coding, OpusFormat};
use crate::codec::Codec;
use crate::film::{FilmCodec, FilmKind};
use mp4_atom::{Any, Avcc, Decode as _, Esds, FourCC, Hvcc, Mp4a};

/// The most frames of uncompressed sound in a unit.
pub(super) const PCM_FRAMES: u32 = 1_024;
/// The most descriptions of a track.
const ENTRIES_MAX: usize = 256;
/// The object types of MPEG-4 systems that are AAC: MPEG-4, and MPEG-2 LC.
const AAC_TYPES: [u8; 2] = [0x40, 0x67];
/// The fields of a description of pictures, before its boxes.
const PICTURES_BYTES: usize = 78;
const START: [u8; 4] = [0, 0, 0, 1];

/// Returns the codecs that an `stsd` box describes, at least one.
pub(super) fn codecs(stsd: &[u8], kind: FilmKind) -> Vec<FilmCodec> {
    // Version, flags and count.
    let entries = Boxes(stsd.get(8..).unwrap_or_default()).take(ENTRIES_MAX);
    let mut codecs: Vec<_> = entries.map(|(name, body)| codec(name, body, kind)).collect();
    if codecs.is_empty() {
        codecs.push(FilmCodec::other("of an unknown type", kind));
    }
    codecs
}

fn codec(name: FourCC, body: &[u8], kind: FilmKind) -> FilmCodec {
    let text = name.to_string();
    let named = |codec: &str| FilmCodec::other(codec, kind);
    match text.trim() {
        "ulaw" | "alaw" => return g711(text.trim(), body).unwrap_or_else(|| named("G.711")),
        "twos" | "sowt" | "s16l" | "ipcm" | "lpcm" | "in24" | "in32" | "fl32" | "fl64" | "fpcm"
        | "raw" => {
            return pcm(text.trim(), body)
                .unwrap_or_else(|| named("uncompressed sound of another kind than 16 bits"));
        }
        "vp08" => return named("VP8"),
        "vp09" => return named("VP9"),
        ".mp3" | "mp3" => return named("MP3"),
        "ac-3" => return named("AC-3"),
        "ec-3" => return named("E-AC-3"),
        "fLaC" => return named("FLAC"),
        "alac" => return named("ALAC"),
        "jpeg" | "mjpa" => return FilmCodec::Jpeg,
        "mp4v" => return mpeg4_pictures(body),
        _ => {}
    }
    known(name, body).unwrap_or_else(|| named(&format!("'{}'", text.escape_default())))
}

/// Returns a codec with headers of its own; `None` for others, or if they cannot be read.
fn known(name: FourCC, body: &[u8]) -> Option<FilmCodec> {
    let mut whole = Vec::with_capacity(body.len() + 8);
    whole.extend_from_slice(&u32::try_from(body.len() + 8).ok()?.to_be_bytes());
    whole.extend_from_slice(name.as_ref());
    whole.extend_from_slice(body);
    entry(Any::decode(&mut &whole[..]).ok()?)
}

fn entry(entry: Any) -> Option<FilmCodec> {
    if let Any::Avc1(entry) = &entry {
        return Some(h264(&entry.avcc));
    }
    if let Any::Avc3(entry) = &entry {
        return Some(h264(&entry.avcc));
    }
    if let Any::Hvc1(entry) = &entry {
        return Some(h265(&entry.hvcc));
    }
    if let Any::Hev1(entry) = &entry {
        return Some(h265(&entry.hvcc));
    }
    if let Any::Mp4a(entry) = &entry {
        return Some(mpeg4(entry));
    }
    if let Any::Opus(entry) = &entry {
        let format =
            OpusFormat::nearest(entry.dops.input_sample_rate, entry.dops.output_channel_count);
        return Some(FilmCodec::Opus(format));
    }
    let Any::Av01(entry) = entry else { return None };
    Some(FilmCodec::Video { codec: Codec::Av1, lengths: None, sets: entry.av1c.config_obus })
}

fn annexb<'a>(sets: impl Iterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    sets.flat_map(|set| START.iter().chain(set)).copied().collect()
}

/// Returns the codec of a configuration of H.264.
pub(in crate::film) fn h264(avcc: &Avcc) -> FilmCodec {
    let sets = annexb(avcc.sequence_parameter_sets.iter().chain(&avcc.picture_parameter_sets));
    FilmCodec::Video { codec: Codec::H264, lengths: Some(avcc.length_size), sets }
}

/// Returns the codec of a configuration of H.265.
pub(in crate::film) fn h265(hvcc: &Hvcc) -> FilmCodec {
    let sets = annexb(hvcc.arrays.iter().flat_map(|array| &array.nalus));
    FilmCodec::Video { codec: Codec::H265, lengths: Some(hvcc.length_size_minus_one + 1), sets }
}

fn mpeg4(entry: &Mp4a) -> FilmCodec {
    let config = &entry.esds.es_desc.dec_config;
    let object = config.object_type_indication;
    if !AAC_TYPES.contains(&object) {
        let name = match object {
            0x66 | 0x68 => "AAC of another profile than LC",
            0x69 | 0x6b => "MP3",
            0xa5 => "AC-3",
            0xa6 => "E-AC-3",
            0xa9 => "DTS",
            0xad => "Opus in MPEG-4 systems",
            0xdd => "Vorbis",
            _ => "of an unknown type",
        };
        return FilmCodec::other(name, FilmKind::Sound);
    }
    let raw = config.dec_specific.as_ref().map(|specific| specific.raw.as_slice());
    match AacFormat::read(raw.unwrap_or_default()) {
        Ok(format) => FilmCodec::Aac(Some(format)),
        Err(other) => FilmCodec::other(other, FilmKind::Sound),
    }
}

fn mpeg4_pictures(body: &[u8]) -> FilmCodec {
    let systems = super::fields::<Esds>(body.get(PICTURES_BYTES..).unwrap_or_default());
    let name = match systems.map(|esds| esds.es_desc.dec_config.object_type_indication) {
        Some(0x6c) => return FilmCodec::Jpeg,
        Some(0x6d) => "PNG in MPEG-4 systems",
        Some(0x60..=0x65) => "MPEG-2",
        Some(0x6a) => "MPEG-1",
        _ => "MPEG-4 part 2",
    };
    FilmCodec::other(name, FilmKind::Pictures)
}

/// Returns the channels, bits and rate of a sound description.
fn sound(body: &[u8]) -> Option<(u8, u16, u32)> {
    let field = |at: usize| body.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
    Some((u8::try_from(field(16)?).ok()?, field(18)?, field(24)?.into()))
}

fn g711(name: &str, body: &[u8]) -> Option<FilmCodec> {
    let (channels, _, rate) = sound(body)?;
    let coding = if name == "ulaw" { Coding::Ulaw } else { Coding::Alaw };
    let format = AudioFormat::new(coding, rate, channels).ok()?;
    Some(FilmCodec::Sound { format, big_endian: false })
}

/// Returns uncompressed sound of 16 bits.
fn pcm(name: &str, body: &[u8]) -> Option<FilmCodec> {
    let (channels, bits, rate) = sound(body)?;
    let (big_endian, bits) = match name {
        "sowt" | "s16l" => (false, bits),
        "twos" => (true, bits),
        // Its configuration states the order and the bits.
        "ipcm" => {
            let config = super::find(body.get(28..)?, b"pcmC")?;
            (config.get(4)? & 1 == 0, u16::from(*config.get(5)?))
        }
        _ => return None,
    };
    let format = AudioFormat::new(Coding::S16le, rate, channels).ok().filter(|_| bits == 16)?;
    Some(FilmCodec::Sound { format, big_endian })
}
