//! The content of elementary streams.

use crate::audio::OpusFormat;
use crate::codec::Codec;
use crate::film::{FilmCodec, FilmKind};

/// The content of an elementary stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    Video(Codec),
    /// Pictures of MPEG-1 and MPEG-2.
    MpegVideo,
    Adts,
    /// Sound of MPEG-1 and MPEG-2, layers 1 to 3.
    MpegAudio,
    Ac3,
    Opus(u8),
    /// A stream whose packets are its units.
    Whole(&'static str, FilmKind),
}

impl StreamKind {
    /// Returns the content of a stream type, with the descriptors of the stream (ISO/IEC 13818-1, table 2-34).
    pub(super) fn of(kind: u8, descriptors: &[u8]) -> Self {
        match kind {
            0x01 | 0x02 => Self::MpegVideo,
            0x03 | 0x04 => Self::MpegAudio,
            0x0f => Self::Adts,
            0x10 => Self::Whole("MPEG-4 part 2", FilmKind::Pictures),
            0x11 => Self::Whole("AAC in LATM", FilmKind::Sound),
            0x1b => Self::Video(Codec::H264),
            0x24 => Self::Video(Codec::H265),
            0x33 => Self::Whole("H.266", FilmKind::Pictures),
            0x81 => Self::Ac3,
            0x84 | 0x87 => Self::Whole("E-AC-3", FilmKind::Sound),
            0x06 => Self::private(descriptors),
            _ => Self::Whole("of an unknown type", FilmKind::Other),
        }
    }

    /// Returns the content of a private stream, by its descriptors.
    fn private(mut descriptors: &[u8]) -> Self {
        let (mut kind, mut channels) = (None, 2);
        while let [tag, length, rest @ ..] = descriptors {
            let Some((body, behind)) = rest.split_at_checked(usize::from(*length)) else { break };
            match (tag, body) {
                (0x05, b"Opus") => kind = Some(Self::Opus(channels)),
                (0x05, b"HEVC") => kind = Some(Self::Video(Codec::H265)),
                (0x05, b"AV01") => kind = Some(Self::Whole("AV1 in MPEG-TS", FilmKind::Pictures)),
                (0x05, b"AC-3") | (0x6a, _) => kind = Some(Self::Ac3),
                (0x7a, _) => kind = Some(Self::Whole("E-AC-3", FilmKind::Sound)),
                (0x7b, _) => kind = Some(Self::Whole("DTS", FilmKind::Sound)),
                (0x7f, [0x80, count, ..]) => channels = *count,
                (0x56 | 0x59, _) => kind = Some(Self::Whole("subtitles", FilmKind::Other)),
                _ => {}
            }
            descriptors = behind;
        }
        match kind {
            Some(Self::Opus(_)) if (1..=2).contains(&channels) => Self::Opus(channels),
            Some(Self::Opus(_)) => Self::Whole("Opus of more than 2 channels", FilmKind::Sound),
            Some(kind) => kind,
            None => Self::Whole("private data", FilmKind::Other),
        }
    }

    pub(super) fn codec(self) -> FilmCodec {
        match self {
            Self::Video(codec) => FilmCodec::Video { codec, lengths: None, sets: Vec::new() },
            Self::MpegVideo => FilmCodec::other("MPEG-2", FilmKind::Pictures),
            Self::Adts => FilmCodec::Aac(None),
            Self::MpegAudio => FilmCodec::other("MPEG audio", FilmKind::Sound),
            Self::Ac3 => FilmCodec::other("AC-3", FilmKind::Sound),
            Self::Opus(channels) => FilmCodec::Opus(OpusFormat::nearest(48_000, channels)),
            Self::Whole(name, kind) => FilmCodec::other(name, kind),
        }
    }
}
