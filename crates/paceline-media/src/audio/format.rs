//! The format of a block of sound, and its encoding string.

use std::fmt;
use std::str::FromStr;

use crate::error::{MediaError, excerpt};

/// The lowest sample rate in Hz.
pub const RATE_MIN: u32 = 1_000;

/// The highest sample rate in Hz.
pub const RATE_MAX: u32 = 384_000;

/// The largest number of channels.
pub const CHANNELS_MAX: u8 = 8;

/// The coding of one sample of sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Linear, 16 bits signed, little-endian.
    S16le,
    /// G.711 µ-law, 8 bits.
    Ulaw,
    /// G.711 A-law, 8 bits.
    Alaw,
}

impl Coding {
    /// Returns the bytes of one sample.
    #[must_use]
    pub fn sample_bytes(self) -> usize {
        match self {
            Self::S16le => 2,
            Self::Ulaw | Self::Alaw => 1,
        }
    }
}

/// The format of a message payload that is one block of sound.
///
/// As an encoding string:
/// - `audio/pcm;format=s16le;rate=48000;channels=2`;
/// - `audio/pcmu;rate=8000;channels=1` (µ-law);
/// - `audio/pcma;rate=8000;channels=1` (A-law).
///
/// Parsing accepts the parameters in any order with blanks around the semicolons. Each parameter must
/// occur exactly once, and others are rejected.
///
/// ```
/// use paceline_media::audio::{AudioFormat, Coding};
///
/// let format: AudioFormat = "audio/pcm;rate=48000;channels=2;format=s16le".parse()?;
/// assert_eq!(format, AudioFormat::new(Coding::S16le, 48_000, 2)?);
/// assert_eq!(format.to_string(), "audio/pcm;format=s16le;rate=48000;channels=2");
/// assert_eq!(format.frame_bytes(), 4);
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AudioFormat {
    /// The coding of a sample.
    pub coding: Coding,
    /// The frames per second, [`RATE_MIN`] to [`RATE_MAX`] Hz.
    pub rate: u32,
    /// The samples per frame, 1 to [`CHANNELS_MAX`].
    pub channels: u8,
}

impl AudioFormat {
    /// Returns a checked format.
    ///
    /// # Errors
    /// [`MediaError::AudioRange`] for a rate or a number of channels out of range.
    pub fn new(coding: Coding, rate: u32, channels: u8) -> Result<Self, MediaError> {
        let format = Self { coding, rate, channels };
        format.check()?;
        Ok(format)
    }

    /// Checks a format, for example one from a struct literal.
    ///
    /// # Errors
    /// The same as [`AudioFormat::new`].
    pub fn check(self) -> Result<(), MediaError> {
        check_range("rate", self.rate)?;
        check_range("channels", u32::from(self.channels))
    }

    /// Returns the bytes of one frame: one sample of each channel.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.coding.sample_bytes() * usize::from(self.channels)
    }
}

impl fmt::Display for AudioFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.coding {
            Coding::S16le => "audio/pcm;format=s16le",
            Coding::Ulaw => "audio/pcmu",
            Coding::Alaw => "audio/pcma",
        })?;
        write!(f, ";rate={};channels={}", self.rate, self.channels)
    }
}

impl FromStr for AudioFormat {
    type Err = MediaError;

    fn from_str(text: &str) -> Result<Self, MediaError> {
        let refuse = |reason: String| MediaError::AudioEncoding { text: excerpt(text), reason };
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let linear = kind == "audio/pcm";
        let coding = match kind {
            "audio/pcm" => Coding::S16le,
            "audio/pcmu" => Coding::Ulaw,
            "audio/pcma" => Coding::Alaw,
            _ => {
                let kind = excerpt(kind);
                let reason = format!("type {kind:?} is none of audio/pcm, audio/pcmu, audio/pcma");
                return Err(refuse(reason));
            }
        };
        let (mut format, mut rate, mut channels) = (None, None, None);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let slot = match name {
                "format" if linear => &mut format,
                "rate" => &mut rate,
                "channels" => &mut channels,
                _ => return Err(refuse(format!("parameter {:?} is not known", excerpt(name)))),
            };
            if slot.replace(value).is_some() {
                return Err(refuse(format!("parameter {name} is given twice")));
            }
        }
        let missing = [("format", linear && format.is_none()), ("rate", rate.is_none())]
            .into_iter()
            .chain([("channels", channels.is_none())])
            .filter_map(|(name, missing)| missing.then_some(name))
            .collect::<Vec<_>>();
        let (Some(rate), Some(channels), true) = (rate, channels, missing.is_empty()) else {
            return Err(refuse(format!("{} missing", missing.join(" and "))));
        };
        if let Some(other) = format.filter(|format| *format != "s16le") {
            return Err(refuse(format!("format {:?} is not s16le", excerpt(other))));
        }
        let channels = parse_number("channels", channels)?;
        let channels = u8::try_from(channels).map_err(|_| out_of_range("channels", channels))?;
        Self::new(coding, parse_number("rate", rate)?, channels)
    }
}

/// Parses a number in plain decimal digits, without sign or blanks.
pub(super) fn parse_number(field: &'static str, text: &str) -> Result<u32, MediaError> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if plain => Ok(number),
        Ok(_) | Err(_) => Err(out_of_range(field, format_args!("{:?}", excerpt(text)))),
    }
}

fn check_range(field: &'static str, value: u32) -> Result<(), MediaError> {
    let (min, max) = range(field);
    if (min..=max).contains(&value) { Ok(()) } else { Err(out_of_range(field, value)) }
}

fn out_of_range(field: &'static str, value: impl fmt::Display) -> MediaError {
    let (min, max) = range(field);
    MediaError::AudioRange { field, value: value.to_string(), min, max }
}

fn range(field: &str) -> (u32, u32) {
    if field == "rate" { (RATE_MIN, RATE_MAX) } else { (1, u32::from(CHANNELS_MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip_in_any_order() {
        for text in [
            "audio/pcm;format=s16le;rate=48000;channels=2",
            "audio/pcm;format=s16le;rate=1000;channels=1",
            "audio/pcmu;rate=8000;channels=1",
            "audio/pcma;rate=384000;channels=8",
        ] {
            assert_eq!(text.parse::<AudioFormat>().unwrap().to_string(), text);
        }
        let text = "audio/pcm; channels=2 ;rate=44100; format=s16le";
        let format = AudioFormat { coding: Coding::S16le, rate: 44_100, channels: 2 };
        assert_eq!(text.parse(), Ok(format));
        assert_eq!((format.frame_bytes(), Coding::Alaw.sample_bytes()), (4, 1));
    }

    #[test]
    fn invalid_strings_are_explained() {
        for (text, part) in [
            ("", "type \"\" is none of audio/pcm, audio/pcmu, audio/pcma"),
            ("audio/opus", "type \"audio/opus\" is none"),
            ("audio/pcm", "format and rate and channels missing"),
            ("audio/pcm;rate=8000;channels=1", "format missing"),
            ("audio/pcmu;rate=8000", "channels missing"),
            ("audio/pcmu;format=s16le;rate=8000;channels=1", "parameter \"format\" is not known"),
            ("audio/pcm;format=s24le;rate=8000;channels=1", "format \"s24le\" is not s16le"),
            ("audio/pcma;rate=8000;rate=8000;channels=1", "rate is given twice"),
            ("audio/pcma;rate=999;channels=1", "rate is 999, must be a whole number from 1000"),
            ("audio/pcma;rate=384001;channels=1", "rate is 384001"),
            ("audio/pcma;rate=+8000;channels=1", "rate is \"+8000\""),
            ("audio/pcma;rate=99999999999;channels=1", "rate is \"99999999999\""),
            ("audio/pcma;rate=8000;channels=0", "channels is 0, must be a whole number from 1"),
            ("audio/pcma;rate=8000;channels=9", "channels is 9"),
            ("audio/pcma;rate=8000;channels=257", "channels is 257"),
            ("audio/pcma;rate=8000;channels=1;", "parameter \"\" is not known"),
        ] {
            let message = text.parse::<AudioFormat>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
            assert!(message.len() < 400, "{message}");
        }
    }
}
