//! The samples of a track as a container has them.

use crate::audio::{AacFormat, AudioFormat, OpusFormat, opus_micros};
use crate::codec::{Codec, Units};
use crate::error::MediaError;
use crate::film::{FilmFormat, FilmKind, FilmTurn, orientation};
use crate::format::Format;
use crate::size::Size;
use crate::video::Class;

const FIX: &str = "choose a file of another type, such as .mkv, or record with paceline record";

/// The type of a track's samples.
#[derive(Debug)]
pub(super) enum Payload {
    /// Coded pictures, with the headers of the first one.
    Video {
        codec: Codec,
        size: Size,
        turn: FilmTurn,
        first: Vec<u8>,
        units: Box<Units>,
    },
    Jpeg {
        size: Size,
    },
    Aac(AacFormat),
    Opus(OpusFormat),
    Sound(AudioFormat),
}

/// A sample in the form of the container.
pub(super) struct Contained {
    pub(super) bytes: Vec<u8>,
    pub(super) key: bool,
    /// The length in time; `None` for pictures.
    pub(super) duration_ns: Option<i64>,
}

impl Payload {
    /// Returns the type of a track that begins with this sample; `None` for a picture that is no begin.
    pub(super) fn new(
        (format, track): (FilmFormat, usize),
        encoding: &str,
        sample: &[u8],
    ) -> Result<Option<Self>, MediaError> {
        let refuse = || {
            let codec = format!("{encoding} in {}", format.name());
            MediaError::FilmCodec { track: track as u64 + 1, codec, fix: FIX }
        };
        let is_ts = format == FilmFormat::MpegTs;
        if let Some(codec) = Format::codec_of(encoding) {
            if codec == Codec::Av1 {
                return Err(refuse());
            }
            return Self::video(codec, sample);
        }
        let payload = match encoding {
            "image/jpeg" if !is_ts => {
                let size = Format::Jpeg.picture_size(sample)?;
                Self::Jpeg { size }
            }
            "audio/aac" => match AacFormat::of_block(sample) {
                Some((aac, ..)) => Self::Aac(aac),
                None => return Ok(None),
            },
            other => match (other.parse::<OpusFormat>(), other.parse::<AudioFormat>()) {
                (Ok(opus), _) => Self::Opus(opus),
                (_, Ok(sound)) if !is_ts => Self::Sound(sound),
                _ => return Err(refuse()),
            },
        };
        Ok(Some(payload))
    }

    fn video(codec: Codec, sample: &[u8]) -> Result<Option<Self>, MediaError> {
        let mut units = Box::new(Units::new(codec));
        let class = units.classify(sample)?;
        let whole = units.complete(sample, class);
        let info = if class == Class::I { codec.info(&whole)? } else { None };
        let first = whole.into_owned();
        // The state of the units begins with the first sample again.
        let units = Box::new(Units::new(codec));
        let turn = orientation::found(codec, &first).unwrap_or_default();
        Ok(info.map(|info| Self::Video { codec, size: info.size, turn, first, units }))
    }

    pub(super) const fn kind(&self) -> FilmKind {
        match self {
            Self::Video { .. } | Self::Jpeg { .. } => FilmKind::Pictures,
            Self::Aac(_) | Self::Opus(_) | Self::Sound(_) => FilmKind::Sound,
        }
    }

    /// Returns the size of pictures.
    pub(super) const fn size(&self) -> Option<Size> {
        match self {
            Self::Video { size, .. } | Self::Jpeg { size } => Some(*size),
            Self::Aac(_) | Self::Opus(_) | Self::Sound(_) => None,
        }
    }

    /// Returns the orientation in which pictures are to be shown.
    pub(super) const fn turn(&self) -> FilmTurn {
        match self {
            Self::Video { turn, .. } => *turn,
            Self::Jpeg { .. } | Self::Aac(_) | Self::Opus(_) | Self::Sound(_) => {
                FilmTurn { degrees: 0, other: false }
            }
        }
    }

    /// Returns true for samples of this encoding.
    pub(super) fn is(&self, encoding: &str) -> bool {
        match self {
            Self::Video { codec, .. } => Format::codec_of(encoding) == Some(*codec),
            Self::Jpeg { .. } => encoding == "image/jpeg",
            Self::Aac(_) => encoding == "audio/aac",
            Self::Opus(format) => encoding.parse() == Ok(*format),
            Self::Sound(format) => encoding.parse() == Ok(*format),
        }
    }

    /// Returns a sample in the form of the container: with lengths for MP4 and Matroska, as a byte stream for MPEG-TS.
    pub(super) fn contain(
        &mut self,
        format: FilmFormat,
        sample: &[u8],
    ) -> Result<Option<Contained>, MediaError> {
        let is_ts = format == FilmFormat::MpegTs;
        Ok(match self {
            Self::Video { codec, units, .. } => {
                let class = units.classify(sample)?;
                let whole = units.complete(sample, class);
                let bytes = match (codec, is_ts) {
                    (Codec::Av1, _) | (_, true) => whole.into_owned(),
                    (Codec::H264 | Codec::H265, false) => crate::annexb::lengths(&whole),
                };
                Some(Contained { bytes, key: class == Class::I, duration_ns: None })
            }
            Self::Jpeg { .. } => {
                Some(Contained { bytes: sample.to_vec(), key: true, duration_ns: None })
            }
            Self::Aac(first) => AacFormat::of_block(sample).filter(|(aac, ..)| aac == first).map(
                |(aac, header, _)| {
                    let bytes =
                        if is_ts { sample } else { sample.get(header..).unwrap_or_default() };
                    let duration =
                        i64::from(AacFormat::BLOCK) * 1_000_000_000 / i64::from(aac.rate());
                    Contained { bytes: bytes.to_vec(), key: true, duration_ns: Some(duration) }
                },
            ),
            Self::Opus(_) => opus_micros(sample).map(|micros| {
                let duration_ns = Some(i64::from(micros) * 1_000);
                Contained { bytes: sample.to_vec(), key: true, duration_ns }
            }),
            Self::Sound(format) => {
                let frames = i64::try_from(sample.len() / format.frame_bytes().max(1)).unwrap_or(0);
                let duration_ns = Some(frames * 1_000_000_000 / i64::from(format.rate.max(1)));
                (frames > 0).then(|| Contained { bytes: sample.to_vec(), key: true, duration_ns })
            }
        })
    }

    /// Returns the ticks per second of the track.
    pub(super) fn scale(&self) -> u32 {
        match self {
            Self::Video { .. } | Self::Jpeg { .. } => 90_000,
            Self::Aac(format) => format.rate(),
            Self::Opus(_) => 48_000,
            Self::Sound(format) => format.rate,
        }
    }

    /// Returns the bytes of one frame of uncompressed sound.
    pub(super) fn frame_bytes(&self) -> Option<usize> {
        match self {
            Self::Sound(format) => Some(format.frame_bytes()),
            Self::Video { .. } | Self::Jpeg { .. } | Self::Aac(_) | Self::Opus(_) => None,
        }
    }
}
