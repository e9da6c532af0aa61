//! The units of a track as message payloads.

use super::{FilmCodec, FilmKind, FilmTrack, FilmTurn, FilmUnit, orientation};
use crate::audio::{AacFormat, Coding};
use crate::codec::{Codec, Units};
use crate::error::MediaError;
use crate::format::Format;
use crate::video::Class;
use std::borrow::Cow;

/// The start code before each NAL unit.
const START: [u8; 4] = [0, 0, 0, 1];
/// The OBU before each temporal unit of AV1.
const DELIMITER: [u8; 2] = [0x12, 0];
const PICTURES: &str = "code its pictures again, with ffmpeg: -c:v libx264";
const SOUND: &str = "code its sound again, with ffmpeg: -c:a aac or -c:a libopus";
const PARTS: &str = "publish its parts one after the other";

/// Turns the units of a track into samples: access units of H.264 and H.265 in Annex B with parameter sets and orientation at key pictures,
/// temporal units of AV1, JPEG pictures, blocks of AAC with ADTS headers, packets of Opus, and blocks of uncompressed sound.
#[derive(Debug)]
pub struct FilmSamples {
    codecs: Vec<FilmCodec>,
    encoding: String,
    entry: Option<usize>,
    video: Option<Pictures>,
}

/// The state of coded pictures.
#[derive(Debug)]
struct Pictures {
    codec: Codec,
    units: Units,
    /// The orientation that the container states.
    turn: FilmTurn,
    /// A key picture has passed.
    begun: bool,
}

/// A unit as a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilmSample {
    /// The sample, and whether decoding can start at it.
    Sample {
        /// Its bytes.
        bytes: Vec<u8>,
        /// True for key pictures, and for all sound.
        key: bool,
    },
    /// It needs pictures before the first key picture.
    Early,
}

impl FilmSamples {
    /// Returns the converter of a track's units.
    ///
    /// # Errors
    /// [`MediaError::FilmCodec`] for a codec that cannot be published.
    pub fn new(track: &FilmTrack) -> Result<Self, MediaError> {
        let first = track.codecs.first();
        let encoding = first.and_then(encoding).ok_or_else(|| {
            let fix = match track.kind() {
                FilmKind::Pictures => PICTURES,
                FilmKind::Sound => SOUND,
                FilmKind::Other => "choose a track of pictures or sound",
            };
            MediaError::FilmCodec { track: track.id, codec: track.codec_name(), fix }
        })?;
        let video = match first {
            Some(FilmCodec::Video { codec, .. }) => Some(Pictures {
                codec: *codec,
                units: Units::new(*codec),
                turn: track.turn,
                begun: false,
            }),
            _ => None,
        };
        Ok(Self { codecs: track.codecs.clone(), encoding, entry: None, video })
    }

    /// Returns the media type of the samples.
    #[must_use]
    pub fn encoding(&self) -> &str {
        &self.encoding
    }

    /// Takes the codecs of a track to which some were added while it was read.
    pub fn extend(&mut self, track: &FilmTrack) {
        if self.codecs.len() < track.codecs.len() {
            self.codecs.clone_from(&track.codecs);
        }
    }

    /// Returns the sample of a unit, in decoding order.
    ///
    /// # Errors
    /// [`MediaError::FilmCodec`] if the type of the samples would change, [`MediaError::VideoStream`] for a unit that is none of its
    /// codec.
    pub fn take(&mut self, unit: &FilmUnit) -> Result<FilmSample, MediaError> {
        let codec = self.codecs.get(unit.entry).or(self.codecs.first());
        let Some(codec) = codec.filter(|codec| encoding(codec).as_ref() == Some(&self.encoding))
        else {
            let name = codec.map_or_else(|| "unknown".to_owned(), ToString::to_string);
            let codec = format!("{name} behind {}", self.encoding);
            return Err(MediaError::FilmCodec { track: unit.track as u64, codec, fix: PARTS });
        };
        let bytes = match codec {
            FilmCodec::Video { codec, lengths, sets } => {
                let begins = self.entry.replace(unit.entry) != Some(unit.entry);
                let Some(video) = &mut self.video else { return Ok(FilmSample::Early) };
                if begins && !sets.is_empty() {
                    video.note(sets);
                }
                let whole = match (codec, lengths) {
                    (Codec::Av1, _) => delimited(&unit.bytes),
                    (_, Some(lengths)) => Cow::Owned(byte_stream(*codec, *lengths, &unit.bytes)?),
                    (_, None) => Cow::Borrowed(&unit.bytes[..]),
                };
                return video.take(&whole);
            }
            FilmCodec::Aac(Some(format)) => block(format, &unit.bytes)?,
            FilmCodec::Sound { format, big_endian: true } if format.coding == Coding::S16le => {
                unit.bytes.chunks_exact(2).flat_map(|pair| pair.iter().rev().copied()).collect()
            }
            FilmCodec::Jpeg
            | FilmCodec::Aac(None)
            | FilmCodec::Opus(_)
            | FilmCodec::Sound { .. } => unit.bytes.clone(),
            FilmCodec::Other { .. } => return Ok(FilmSample::Early),
        };
        Ok(FilmSample::Sample { bytes, key: true })
    }
}

impl Pictures {
    /// Notes the parameter sets of the container.
    fn note(&mut self, sets: &[u8]) {
        let whole = if self.codec == Codec::Av1 { delimited(sets) } else { Cow::Borrowed(sets) };
        // Without a picture they have no class.
        let _ = self.units.classify(&whole);
        let _ = self.units.complete(&whole, Class::P);
    }

    fn take(&mut self, unit: &[u8]) -> Result<FilmSample, MediaError> {
        let class = self.units.classify(unit)?;
        let whole = self.units.complete(unit, class);
        self.begun |= class == Class::I;
        if !self.begun {
            return Ok(FilmSample::Early);
        }
        let (mut bytes, key) = (whole.into_owned(), class == Class::I);
        if key {
            bytes = orientation::stated(self.codec, self.turn, bytes);
        }
        Ok(FilmSample::Sample { bytes, key })
    }
}

/// Returns the media type of a codec's samples; `None` if it cannot be published.
fn encoding(codec: &FilmCodec) -> Option<String> {
    Some(match codec {
        FilmCodec::Video { codec, .. } => Format::from(*codec).to_string(),
        FilmCodec::Jpeg => Format::Jpeg.to_string(),
        // ADTS states rate and channels.
        FilmCodec::Aac(_) => "audio/aac".to_owned(),
        FilmCodec::Opus(format) => format.to_string(),
        FilmCodec::Sound { format, .. } => format.to_string(),
        FilmCodec::Other { .. } => return None,
    })
}

fn delimited(unit: &[u8]) -> Cow<'_, [u8]> {
    if unit.starts_with(&DELIMITER) {
        return Cow::Borrowed(unit);
    }
    Cow::Owned([&DELIMITER, unit].concat())
}

fn block(format: &AacFormat, bytes: &[u8]) -> Result<Vec<u8>, MediaError> {
    format.block(bytes).ok_or_else(|| MediaError::Stream {
        format: "aac",
        at: 0,
        reason: format!("a block has {} bytes, must have 1 to 8184", bytes.len()),
        fix: SOUND,
    })
}

/// Returns a unit with a start code in place of the length before each NAL unit.
fn byte_stream(codec: Codec, lengths: u8, unit: &[u8]) -> Result<Vec<u8>, MediaError> {
    let (mut rest, mut out) = (unit, Vec::with_capacity(unit.len() + 8));
    while !rest.is_empty() {
        let parts = rest.split_at_checked(usize::from(lengths.clamp(1, 4)));
        let read = parts.and_then(|(length, rest)| {
            let length =
                length.iter().fold(0_usize, |length, byte| length << 8 | usize::from(*byte));
            rest.split_at_checked(length)
        });
        let Some((nal, behind)) = read else {
            let codec = if codec == Codec::H264 { "h264" } else { "h265" };
            let at = unit.len() - rest.len();
            let reason = format!(
                "a NAL unit is longer than the {} bytes that are left of its picture",
                rest.len()
            );
            let fix = "have the film written again";
            return Err(MediaError::VideoStream { codec, at, reason, fix });
        };
        if !nal.is_empty() {
            out.extend_from_slice(&START);
            out.extend_from_slice(nal);
        }
        rest = behind;
    }
    Ok(out)
}
