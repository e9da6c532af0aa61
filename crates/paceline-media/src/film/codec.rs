//! The codec of a track, with the headers that the container keeps for it.

use crate::audio::{AacFormat, AudioFormat, OpusFormat};
use crate::codec::Codec;
use std::fmt;

/// The medium of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilmKind {
    /// Pictures.
    Pictures,
    /// Sound.
    Sound,
    /// Subtitles, data and tracks of unknown content.
    Other,
}

/// The codec of a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilmCodec {
    /// Coded video.
    Video {
        /// The codec.
        codec: Codec,
        /// The bytes of the length before each NAL unit, 1 to 4; `None` for byte streams (Annex B) and OBUs.
        lengths: Option<u8>,
        /// The parameter sets of the container, in the form of the samples: Annex B or OBUs.
        sets: Vec<u8>,
    },
    /// JPEG pictures.
    Jpeg,
    /// AAC. `None` if the blocks have ADTS headers.
    Aac(Option<AacFormat>),
    /// Opus.
    Opus(OpusFormat),
    /// Uncompressed sound or G.711.
    Sound {
        /// The format, as samples have it.
        format: AudioFormat,
        /// True if 16-bit samples have the most significant byte first.
        big_endian: bool,
    },
    /// A codec that is not published.
    Other {
        /// Its name.
        name: String,
        /// Its medium.
        kind: FilmKind,
    },
}

impl FilmCodec {
    /// Returns another codec by its name.
    pub(super) fn other(name: impl Into<String>, kind: FilmKind) -> Self {
        Self::Other { name: name.into(), kind }
    }

    /// Returns the medium.
    #[must_use]
    pub const fn kind(&self) -> FilmKind {
        match self {
            Self::Video { .. } | Self::Jpeg => FilmKind::Pictures,
            Self::Aac(_) | Self::Opus(_) | Self::Sound { .. } => FilmKind::Sound,
            Self::Other { kind, .. } => *kind,
        }
    }
}

impl fmt::Display for FilmCodec {
    /// Writes the name of the codec.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Video { codec, .. } => f.write_str(codec.name()),
            Self::Jpeg => f.write_str("JPEG"),
            Self::Aac(_) => f.write_str("AAC"),
            Self::Opus(_) => f.write_str("Opus"),
            Self::Sound { format, .. } => write!(f, "{format}"),
            Self::Other { name, .. } => f.write_str(name),
        }
    }
}
