//! The format of a packet of Opus, and its encoding string.

use std::fmt;
use std::str::FromStr;

use crate::audio::format::parse_number;
use crate::error::{MediaError, excerpt};

/// The sample rates of Opus in Hz.
pub const OPUS_RATES: [u32; 5] = [8_000, 12_000, 16_000, 24_000, 48_000];

/// The lowest bit rate of Opus in bits per second.
pub const OPUS_BITS_MIN: u32 = 6_000;

/// The highest bit rate of Opus in bits per second.
pub const OPUS_BITS_MAX: u32 = 510_000;

/// The format of a message payload that is one packet of Opus (RFC 6716), of 2.5 to 120 ms.
///
/// As an encoding string: `audio/opus;rate=48000;channels=2`. The rate is that of the encoder's input. Decoders
/// support all of [`OPUS_RATES`] for any packet.
///
/// ```
/// use paceline_media::audio::OpusFormat;
///
/// let format: OpusFormat = "audio/opus;rate=16000;channels=1".parse()?;
/// assert_eq!(format, OpusFormat::new(16_000, 1)?);
/// assert_eq!(OpusFormat::nearest(44_100, 6).to_string(), "audio/opus;rate=48000;channels=2");
/// # Ok::<(), paceline_media::MediaError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpusFormat {
    /// The frames per second, one of [`OPUS_RATES`].
    pub rate: u32,
    /// The samples per frame, 1 or 2.
    pub channels: u8,
}

impl OpusFormat {
    /// Returns a checked format.
    ///
    /// # Errors
    /// [`MediaError::OpusRange`] for a rate or a number of channels that Opus does not have.
    pub fn new(rate: u32, channels: u8) -> Result<Self, MediaError> {
        let format = Self { rate, channels };
        format.check()?;
        Ok(format)
    }

    /// Returns the format for sound of any rate and number of channels: the lowest rate that is not below `rate`,
    /// at most 48 kHz, and at most 2 channels.
    #[must_use]
    pub fn nearest(rate: u32, channels: u8) -> Self {
        let at_least = OPUS_RATES.into_iter().find(|known| *known >= rate);
        Self { rate: at_least.unwrap_or(48_000), channels: channels.clamp(1, 2) }
    }

    /// Checks a format, for example one from a struct literal.
    ///
    /// # Errors
    /// The same as [`OpusFormat::new`].
    pub fn check(self) -> Result<(), MediaError> {
        if !OPUS_RATES.contains(&self.rate) {
            return Err(MediaError::OpusRange {
                field: "rate",
                value: self.rate,
                must: "8000, 12000, 16000, 24000 or 48000 (Hz)",
                fix: "choose one of these",
            });
        }
        if !(1..=2).contains(&self.channels) {
            return Err(MediaError::OpusRange {
                field: "channels",
                value: u32::from(self.channels),
                must: "1 or 2",
                fix: "choose 2 for sound with more channels",
            });
        }
        Ok(())
    }

    /// Checks a bit rate.
    ///
    /// # Errors
    /// [`MediaError::OpusRange`] for a bit rate out of range.
    pub fn check_bits(bits_per_s: u32) -> Result<(), MediaError> {
        if (OPUS_BITS_MIN..=OPUS_BITS_MAX).contains(&bits_per_s) {
            return Ok(());
        }
        Err(MediaError::OpusRange {
            field: "bit rate",
            value: bits_per_s,
            must: "from 6000 to 510000 (bit/s)",
            fix: "choose 24000 for speech, or 96000 for music",
        })
    }
}

impl fmt::Display for OpusFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "audio/opus;rate={};channels={}", self.rate, self.channels)
    }
}

impl FromStr for OpusFormat {
    type Err = MediaError;

    fn from_str(text: &str) -> Result<Self, MediaError> {
        let refuse = |reason: String| MediaError::OpusEncoding { text: excerpt(text), reason };
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        if kind != "audio/opus" {
            return Err(refuse(format!("type {:?} is not audio/opus", excerpt(kind))));
        }
        let (mut rate, mut channels) = (None, None);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let slot = match name {
                "rate" => &mut rate,
                "channels" => &mut channels,
                _ => return Err(refuse(format!("parameter {:?} is not known", excerpt(name)))),
            };
            if slot.replace(value).is_some() {
                return Err(refuse(format!("parameter {name} is given twice")));
            }
        }
        let rate = rate.ok_or_else(|| refuse("rate missing".to_owned()))?;
        let channels = channels.ok_or_else(|| refuse("channels missing".to_owned()))?;
        let channels = parse_number("channels", channels)?;
        Self::new(parse_number("rate", rate)?, u8::try_from(channels).unwrap_or(u8::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_round_trip_and_invalid_ones_are_explained() {
        for rate in OPUS_RATES {
            let format = OpusFormat::new(rate, 2).unwrap();
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let format = OpusFormat { rate: 48_000, channels: 1 };
        assert_eq!("audio/opus; channels=1 ;rate=48000".parse(), Ok(format));
        for (text, part) in [
            ("audio/pcm;rate=8000;channels=1", "type \"audio/pcm\" is not audio/opus"),
            ("audio/opus", "rate missing; write audio/opus;rate=48000;channels=1"),
            ("audio/opus;rate=8000", "channels missing"),
            ("audio/opus;rate=8000;rate=8000;channels=1", "rate is given twice"),
            ("audio/opus;bits=1;rate=8000;channels=1", "parameter \"bits\" is not known"),
            (
                "audio/opus;rate=44100;channels=1",
                "rate of Opus is 44100, must be 8000, 12000, 16000, 24000 or 48000 (Hz); choose",
            ),
            ("audio/opus;rate=8000;channels=3", "channels of Opus is 3, must be 1 or 2; choose 2"),
            ("audio/opus;rate=8000;channels=257", "channels of Opus is 255"),
            ("audio/opus;rate=x;channels=1", "rate is \"x\""),
        ] {
            let message = text.parse::<OpusFormat>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
        let low = OpusFormat::check_bits(5_999).unwrap_err().to_string();
        assert!(
            low.contains("bit rate of Opus is 5999, must be from 6000 to 510000 (bit/s); choose"),
            "{low}"
        );
        assert!(OpusFormat::check_bits(510_001).is_err());
    }

    #[test]
    fn the_nearest_format_keeps_the_sound() {
        for (rate, channels, to) in [
            (1_000, 1, (8_000, 1)),
            (8_000, 2, (8_000, 2)),
            (11_025, 1, (12_000, 1)),
            (22_050, 1, (24_000, 1)),
            (44_100, 8, (48_000, 2)),
            (384_000, 1, (48_000, 1)),
        ] {
            let near = OpusFormat::nearest(rate, channels);
            assert_eq!((near.rate, near.channels), to);
            near.check().unwrap();
        }
    }
}
