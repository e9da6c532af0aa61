//! The tracks of a camera that can be published.

use paceline_media::audio::AacFormat;
use paceline_media::codec::Codec;
use thiserror::Error;

/// The formats that are published, for error messages.
const PICTURES: &str = "H.264, H.265 or JPEG";
/// The formats of sound that are published.
const SOUND: &str = "AAC, Opus, PCMU, PCMA or L16";
/// Most characters of an encoding and its parameters in an error.
const ENCODING_MAX: usize = 96;
/// Most tracks that an error names.
const NAMED_MAX: usize = 8;

/// What a track contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrackKind {
    /// Pictures, the default.
    #[default]
    Pictures,
    /// Sound.
    Sound,
}

/// A track as the camera describes it (RFC 8866, `m=` and `a=rtpmap`).
#[derive(Clone, Copy, Debug)]
pub struct DescribedTrack<'a> {
    /// `video`, `audio` or another medium.
    pub medium: &'a str,
    /// The encoding, such as `H264`, in any case.
    pub encoding: &'a str,
    /// The RTP clock rate in Hz.
    pub rate: u32,
    /// The channels of sound; `None` for one.
    pub channels: Option<u16>,
}

/// The format of a track that can be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackFormat {
    /// H.264 (RFC 6184).
    H264,
    /// H.265 (RFC 7798).
    H265,
    /// JPEG (RFC 2435).
    Jpeg,
    /// AAC-LC (RFC 3640), at a sample rate in Hz.
    Aac {
        /// The sample rate.
        rate: u32,
        /// The channels.
        channels: u8,
    },
    /// Opus (RFC 7587).
    Opus {
        /// The channels.
        channels: u8,
    },
    /// G.711 µ-law.
    Pcmu {
        /// The sample rate in Hz.
        rate: u32,
        /// The channels.
        channels: u8,
    },
    /// G.711 A-law.
    Pcma {
        /// The sample rate in Hz.
        rate: u32,
        /// The channels.
        channels: u8,
    },
    /// Linear samples of 16 bits (RFC 3551).
    L16 {
        /// The sample rate in Hz.
        rate: u32,
        /// The channels.
        channels: u8,
    },
}

/// The reason why no track of a camera can be published.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TrackError {
    /// The tracks of the kind have other formats.
    #[error(
        "its {noun} {verb} {found}, must be {supported}; choose one of these in the settings of the camera"
    )]
    Format {
        /// The kind: pictures, or sound.
        noun: &'static str,
        /// Is or are.
        verb: &'static str,
        /// The formats of the camera.
        found: String,
        /// The formats that are published.
        supported: &'static str,
    },
    /// It has no track of the kind.
    #[error("it has no {0}; {1}")]
    None(&'static str, &'static str),
}

impl TrackFormat {
    /// Returns the format of a described track, if it can be published.
    #[must_use]
    pub fn of(track: &DescribedTrack<'_>) -> Option<Self> {
        let medium = track.medium.to_ascii_lowercase();
        let channels = u8::try_from(track.channels.unwrap_or(1))
            .ok()
            .filter(|count| (1..=8).contains(count))?;
        let rate = track.rate;
        match (medium.as_str(), track.encoding.to_ascii_lowercase().as_str()) {
            ("video", "h264") => Some(Self::H264),
            ("video", "h265") => Some(Self::H265),
            ("video" | "image", "jpeg") => Some(Self::Jpeg),
            ("audio", "mpeg4-generic") => {
                AacFormat::new(rate, channels).map(|_| Self::Aac { rate, channels })
            }
            // The description always has 48,000 Hz and 2 channels (RFC 7587, 7).
            ("audio", "opus") => Some(Self::Opus { channels: channels.min(2) }),
            ("audio", "pcmu") => Some(Self::Pcmu { rate, channels }),
            ("audio", "pcma") => Some(Self::Pcma { rate, channels }),
            ("audio", "l16") => Some(Self::L16 { rate, channels }),
            _ => None,
        }
    }

    /// Returns the kind of track.
    #[must_use]
    pub const fn kind(self) -> TrackKind {
        match self {
            Self::H264 | Self::H265 | Self::Jpeg => TrackKind::Pictures,
            Self::Aac { .. }
            | Self::Opus { .. }
            | Self::Pcmu { .. }
            | Self::Pcma { .. }
            | Self::L16 { .. } => TrackKind::Sound,
        }
    }

    /// Returns the codec of pictures that depend on others.
    #[must_use]
    pub const fn codec(self) -> Option<Codec> {
        match self {
            Self::H264 => Some(Codec::H264),
            Self::H265 => Some(Codec::H265),
            Self::Jpeg
            | Self::Aac { .. }
            | Self::Opus { .. }
            | Self::Pcmu { .. }
            | Self::Pcma { .. }
            | Self::L16 { .. } => None,
        }
    }

    /// Returns the media type of the samples.
    #[must_use]
    pub fn encoding(self) -> String {
        match self {
            Self::H264 => "video/h264".to_owned(),
            Self::H265 => "video/h265".to_owned(),
            Self::Jpeg => "image/jpeg".to_owned(),
            // ADTS states rate and channels.
            Self::Aac { .. } => "audio/aac".to_owned(),
            Self::Opus { channels } => format!("audio/opus;rate=48000;channels={channels}"),
            Self::Pcmu { rate, channels } => format!("audio/pcmu;rate={rate};channels={channels}"),
            Self::Pcma { rate, channels } => format!("audio/pcma;rate={rate};channels={channels}"),
            Self::L16 { rate, channels } => {
                format!("audio/pcm;format=s16le;rate={rate};channels={channels}")
            }
        }
    }
}

/// Returns an encoding for an error: its name in upper case, and parameters that are not supported as they are.
fn named_encoding(encoding: &str) -> String {
    let plain = encoding.chars().filter(|c| c.is_ascii_graphic() || *c == ' ');
    let plain: String = plain.take(ENCODING_MAX).collect();
    match plain.split_once(' ') {
        Some((name, parameters)) => format!("{} {parameters}", name.to_uppercase()),
        None => plain.to_uppercase(),
    }
}

/// Returns the position and format of the first track of a kind that can be published.
///
/// ```
/// use paceline_edge::{DescribedTrack, TrackKind, TrackFormat, choose};
///
/// let track = DescribedTrack { medium: "video", encoding: "H264", rate: 90_000, channels: None };
/// assert_eq!(choose(&[track], TrackKind::Pictures), Ok((0, TrackFormat::H264)));
/// ```
///
/// # Errors
/// [`TrackError`], which names the formats of the camera and the supported ones.
pub fn choose(
    tracks: &[DescribedTrack<'_>],
    kind: TrackKind,
) -> Result<(usize, TrackFormat), TrackError> {
    let found = tracks.iter().enumerate().find_map(|(at, track)| {
        let format = TrackFormat::of(track).filter(|format| format.kind() == kind)?;
        Some((at, format))
    });
    if let Some(found) = found {
        return Ok(found);
    }
    let (noun, verb, supported, named, fix) = match kind {
        TrackKind::Pictures => (
            "pictures",
            "are",
            PICTURES,
            ["video", "image"],
            "give the address of a stream with video",
        ),
        TrackKind::Sound => ("sound", "is", SOUND, ["audio", "audio"], "leave --sound out"),
    };
    let others: Vec<String> = tracks
        .iter()
        .filter(|track| named.iter().any(|name| track.medium.eq_ignore_ascii_case(name)))
        .map(|track| named_encoding(track.encoding))
        .take(NAMED_MAX)
        .collect();
    Err(match others.is_empty() {
        true => {
            TrackError::None(if kind == TrackKind::Pictures { "pictures" } else { "sound" }, fix)
        }
        false => TrackError::Format { noun, verb, found: others.join(" and "), supported },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track<'a>(
        medium: &'a str,
        encoding: &'a str,
        rate: u32,
        channels: Option<u16>,
    ) -> DescribedTrack<'a> {
        DescribedTrack { medium, encoding, rate, channels }
    }

    #[test]
    fn the_first_supported_track_is_chosen() {
        let tracks = [
            track("application", "vnd.onvif.metadata", 90_000, None),
            track("video", "vp8", 90_000, None),
            track("video", "h264", 90_000, None),
            track("audio", "MPEG4-GENERIC", 44_100, Some(2)),
        ];
        assert_eq!(choose(&tracks, TrackKind::Pictures), Ok((2, TrackFormat::H264)));
        let aac = TrackFormat::Aac { rate: 44_100, channels: 2 };
        assert_eq!(choose(&tracks, TrackKind::Sound), Ok((3, aac)));
    }

    #[test]
    fn errors_name_what_is_there_and_what_is_supported() {
        let vp8 = [track("video", "vp8", 90_000, None), track("audio", "g726-32", 8_000, None)];
        let error = |kind| choose(&vp8, kind).unwrap_err().to_string();
        assert!(
            error(TrackKind::Pictures)
                .starts_with("its pictures are VP8, must be H.264, H.265 or JPEG")
        );
        assert!(error(TrackKind::Sound).starts_with("its sound is G726-32, must be AAC, Opus"));
        let none = choose(&[], TrackKind::Sound).unwrap_err().to_string();
        assert_eq!(none, "it has no sound; leave --sound out");
        assert_eq!(TrackFormat::of(&track("audio", "pcmu", 8_000, Some(9))), None);
    }
}
