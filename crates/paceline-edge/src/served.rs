//! The samples that players read, and their names in RTP.

use crate::packetize::{AdtsBlock, aac_samples};
use crate::track::TrackFormat;
use paceline_media::audio::AacFormat;
use paceline_media::audio::{AudioFormat, Coding, OpusFormat, opus_micros};
use paceline_media::{Format, video};
use std::fmt::Write as _;
use thiserror::Error;

/// The clock rate of pictures in Hz (RFC 3551, 5).
const PICTURE_CLOCK: u32 = 90_000;
/// The clock rate of Opus in Hz (RFC 7587, 4.1).
const OPUS_CLOCK: u32 = 48_000;
/// The payload type of the first track without a fixed one.
const DYNAMIC: u8 = 96;
/// The formats that browsers read over WebRTC, in words.
const BROWSER_FORMATS: &str = "H.264, H.265, Opus, and G.711 at 8 kHz";
/// Longest encoding in an error.
const ENCODING_MAX: usize = 96;

/// The reason why players do not read the samples of a tag.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ServeError {
    /// RTP has no format for them.
    #[error(
        "its samples are {encoding}, players read H.264, H.265, JPEG, AAC, Opus, PCM and G.711: {fix}"
    )]
    Encoding {
        /// The media type.
        encoding: String,
        /// The remedy.
        fix: &'static str,
    },
    /// Browsers do not read them over WebRTC.
    #[error("its samples are {encoding}, browsers read {formats} over WebRTC: {fix}", formats = BROWSER_FORMATS)]
    Browser {
        /// The media type.
        encoding: String,
        /// The remedy.
        fix: &'static str,
    },
    /// The sample is not of its media type.
    #[error("a sample of {0} cannot be read: {1}")]
    Sample(&'static str, String),
}

impl ServeError {
    /// Returns the error for samples that browsers do not read.
    pub(crate) fn browser(encoding: &str, fix: &'static str) -> Self {
        Self::Browser { encoding: plain(encoding), fix }
    }
}

/// Returns the readable beginning of an encoding.
fn plain(encoding: &str) -> String {
    let plain = encoding.chars().filter(|c| c.is_ascii_graphic() || *c == ' ');
    plain.take(ENCODING_MAX).collect()
}

impl TrackFormat {
    /// Returns the format of the samples of a tag. For AAC, it is the one of a sample, and `None` without a sample.
    ///
    /// ```
    /// use paceline_edge::TrackFormat;
    ///
    /// let format = TrackFormat::served("audio/pcmu;rate=8000;channels=1", None)?;
    /// assert_eq!(format, Some(TrackFormat::Pcmu { rate: 8_000, channels: 1 }));
    /// assert!(TrackFormat::served("image/png", None).is_err());
    /// # Ok::<(), paceline_edge::ServeError>(())
    /// ```
    ///
    /// # Errors
    /// [`ServeError`] for samples that players do not read.
    pub fn served(encoding: &str, sample: Option<&[u8]>) -> Result<Option<Self>, ServeError> {
        match encoding {
            "video/h264" => return Ok(Some(Self::H264)),
            "video/h265" => return Ok(Some(Self::H265)),
            "image/jpeg" => return Ok(Some(Self::Jpeg)),
            "audio/aac" => {
                let block = sample.map(AdtsBlock::read).transpose();
                let block = block.map_err(|error| ServeError::Sample("AAC", error.to_string()))?;
                return Ok(block.map(|block| block.format));
            }
            _ => {}
        }
        if let Ok(OpusFormat { channels, .. }) = encoding.parse() {
            return Ok(Some(Self::Opus { channels }));
        }
        if let Ok(AudioFormat { coding, rate, channels }) = encoding.parse() {
            return Ok(Some(match coding {
                Coding::S16le => Self::L16 { rate, channels },
                Coding::Ulaw => Self::Pcmu { rate, channels },
                Coding::Alaw => Self::Pcma { rate, channels },
            }));
        }
        let fix = match encoding.parse() {
            Ok(Format::Png | Format::I420(..) | Format::Rgb8(_) | Format::Ros(_)) => {
                "publish JPEG pictures or a video, such as the output of ffmpeg -c:v mjpeg or -c:v libx264"
            }
            Ok(Format::Av1) => "publish H.264 or H.265",
            Ok(Format::Jpeg | Format::H264 | Format::H265) | Err(_) => {
                "name a tag with pictures or sound"
            }
        };
        Err(ServeError::Encoding { encoding: plain(encoding), fix })
    }

    /// Returns the clock rate of its RTP times in Hz.
    #[must_use]
    pub const fn clock_rate(self) -> u32 {
        match self {
            Self::H264 | Self::H265 | Self::Jpeg => PICTURE_CLOCK,
            Self::Opus { .. } => OPUS_CLOCK,
            Self::Aac { rate, .. }
            | Self::Pcmu { rate, .. }
            | Self::Pcma { rate, .. }
            | Self::L16 { rate, .. } => rate,
        }
    }

    /// Returns the duration of a block of sound in units of the clock rate; 0 for pictures, and for a block that cannot be read.
    #[must_use]
    pub fn duration(self, unit: &[u8]) -> u32 {
        let frames = |bytes: usize| u32::try_from(unit.len() / bytes.max(1)).unwrap_or(u32::MAX);
        match self {
            Self::H264 | Self::H265 | Self::Jpeg => 0,
            Self::Opus { .. } => opus_micros(unit).map_or(0, |micros| micros / 1_000 * 48),
            Self::Aac { .. } => aac_samples(unit),
            Self::Pcmu { channels, .. } | Self::Pcma { channels, .. } => frames(channels.into()),
            Self::L16 { channels, .. } => frames(usize::from(channels) * 2),
        }
    }

    /// Returns the payload type of the packets of a track: a fixed one (RFC 3551, table 4 and 5), or a dynamic one by its number.
    #[must_use]
    pub const fn payload_type(self, track: u8) -> u8 {
        match self {
            Self::Pcmu { rate: 8_000, channels: 1 } => 0,
            Self::Pcma { rate: 8_000, channels: 1 } => 8,
            Self::Jpeg => 26,
            Self::H264
            | Self::H265
            | Self::Aac { .. }
            | Self::Opus { .. }
            | Self::Pcmu { .. }
            | Self::Pcma { .. }
            | Self::L16 { .. } => DYNAMIC + track % 32,
        }
    }

    /// Returns the name of the encoding with its rate and channels, such as `H264/90000` (`a=rtpmap`).
    #[must_use]
    pub fn rtpmap(self) -> String {
        let (name, channels) = match self {
            Self::H264 => ("H264", 1),
            Self::H265 => ("H265", 1),
            Self::Jpeg => ("JPEG", 1),
            Self::Aac { channels, .. } => ("MPEG4-GENERIC", channels),
            // Always 2 (RFC 7587, 7).
            Self::Opus { .. } => ("opus", 2),
            Self::Pcmu { channels, .. } => ("PCMU", channels),
            Self::Pcma { channels, .. } => ("PCMA", channels),
            Self::L16 { channels, .. } => ("L16", channels),
        };
        let rate = self.clock_rate();
        match channels {
            1 => format!("{name}/{rate}"),
            channels => format!("{name}/{rate}/{channels}"),
        }
    }

    /// Returns the parameters of the format (`a=fmtp`), with the parameter sets of a key picture if one is known.
    #[must_use]
    pub fn fmtp(self, key: Option<&[u8]>) -> Option<String> {
        match self {
            Self::H264 => Some(h264_parameters(key.unwrap_or_default())),
            Self::H265 => h265_parameters(key.unwrap_or_default()),
            Self::Aac { rate, channels } => Some(aac_parameters(rate, channels)),
            Self::Opus { channels: 2 } => Some("sprop-stereo=1".to_owned()),
            Self::Opus { .. }
            | Self::Jpeg
            | Self::Pcmu { .. }
            | Self::Pcma { .. }
            | Self::L16 { .. } => None,
        }
    }
}

/// Returns sets of a key picture in base64.
fn sets(key: &[u8], is_set: impl Fn(u8) -> bool) -> Vec<String> {
    use base64::Engine as _;
    let encode = |nal: &[u8]| base64::engine::general_purpose::STANDARD.encode(nal);
    let nals = video::nal_units(key).take(64);
    let nals = nals.filter(|nal| nal.first().is_some_and(|first| is_set(*first)));
    nals.map(encode).collect()
}

fn h264_parameters(key: &[u8]) -> String {
    let mut text = "packetization-mode=1".to_owned();
    let mut nals = video::nal_units(key).take(64);
    if let Some(&[_, profile, constraints, level, ..]) =
        nals.find(|nal| nal.first().is_some_and(|first| first & 0x1f == 7))
    {
        let _ = write!(text, ";profile-level-id={profile:02X}{constraints:02X}{level:02X}");
    }
    let sets = sets(key, |first| matches!(first & 0x1f, 7 | 8));
    if !sets.is_empty() {
        let _ = write!(text, ";sprop-parameter-sets={}", sets.join(","));
    }
    text
}

fn h265_parameters(key: &[u8]) -> Option<String> {
    let named = [("sprop-vps", 32), ("sprop-sps", 33), ("sprop-pps", 34)];
    let parts = named.iter().filter_map(|(name, kind)| {
        let sets = sets(key, |first| first >> 1 & 0x3f == *kind);
        (!sets.is_empty()).then(|| format!("{name}={}", sets.join(",")))
    });
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(";"))
}

/// Returns the parameters of AAC-LC, with its AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1).
fn aac_parameters(rate: u32, channels: u8) -> String {
    // Only tracks of a known format are served.
    let format = AacFormat::new(rate, channels).or_else(|| AacFormat::new(44_100, 2));
    let config = u16::from_be_bytes(format.map_or([0; 2], |format| format.config()));
    format!(
        "streamtype=5;profile-level-id=1;mode=AAC-hbr;sizelength=13;indexlength=3;indexdeltalength=3;config={config:04X}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fmtp::Parameters;

    #[test]
    fn each_format_has_a_name_that_this_crate_reads() {
        let formats = [
            TrackFormat::H264,
            TrackFormat::H265,
            TrackFormat::Jpeg,
            TrackFormat::Aac { rate: 44_100, channels: 2 },
            TrackFormat::Aac { rate: 48_000, channels: 8 },
            TrackFormat::Opus { channels: 2 },
            TrackFormat::Pcmu { rate: 8_000, channels: 1 },
            TrackFormat::Pcma { rate: 16_000, channels: 2 },
            TrackFormat::L16 { rate: 44_100, channels: 2 },
        ];
        for format in formats {
            let map = format.rtpmap();
            let mut parts = map.split('/');
            let medium = match format.kind() {
                crate::TrackKind::Pictures => "video",
                crate::TrackKind::Sound => "audio",
            };
            let described = crate::DescribedTrack {
                medium,
                encoding: parts.next().unwrap(),
                rate: parts.next().unwrap().parse().unwrap(),
                channels: parts.next().map(|text| text.parse().unwrap()),
            };
            assert_eq!(TrackFormat::of(&described), Some(format), "{map}");
            let parameters = format.fmtp(None).unwrap_or_default();
            let checked = Parameters::parse(&parameters).check(described.encoding).unwrap();
            if let TrackFormat::Aac { rate, channels } = format {
                let config = checked.unwrap();
                assert_eq!((config.rate, config.channels), (rate, Some(u16::from(channels))));
            }
        }
    }

    #[test]
    fn formats_of_encodings_are_found_and_others_name_the_fix() {
        let served = |text: &str| TrackFormat::served(text, None);
        for format in [
            TrackFormat::H264,
            TrackFormat::H265,
            TrackFormat::Jpeg,
            TrackFormat::Opus { channels: 1 },
            TrackFormat::Pcma { rate: 8_000, channels: 1 },
            TrackFormat::L16 { rate: 48_000, channels: 2 },
        ] {
            assert_eq!(served(&format.encoding()), Ok(Some(format)));
        }
        assert_eq!(served("audio/aac"), Ok(None));
        // AAC-LC, 44,100 Hz, stereo, of 9 bytes.
        let block = [0xff, 0xf1, 0x50, 0x80, 0x01, 0x3f, 0xfc, 1, 2];
        let aac = TrackFormat::Aac { rate: 44_100, channels: 2 };
        assert_eq!(TrackFormat::served("audio/aac", Some(&block)), Ok(Some(aac)));
        assert_eq!(aac.duration(&[block, block].concat()), 2_048);
        assert!(TrackFormat::served("audio/aac", Some(b"no block")).is_err());
        let error = served("video/raw;format=rgb;width=2;height=2").unwrap_err().to_string();
        assert!(error.contains("publish JPEG"), "{error}");
        assert!(served("application/json").unwrap_err().to_string().contains("name a tag"));
    }

    #[test]
    fn parameter_sets_of_a_key_picture_are_stated() {
        let key = [0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0, 0, 1, 0x68, 0xce, 0, 0, 1, 0x65, 0x88];
        let text = TrackFormat::H264.fmtp(Some(&key)).unwrap();
        assert_eq!(
            text,
            "packetization-mode=1;profile-level-id=42C01E;sprop-parameter-sets=Z0LAHg==,aM4="
        );
        assert_eq!(
            Parameters::parse(&text).sets(),
            [vec![0x67, 0x42, 0xc0, 0x1e], vec![0x68, 0xce]]
        );
        let key =
            [0, 0, 1, 0x40, 1, 9, 0, 0, 1, 0x42, 1, 8, 0, 0, 1, 0x44, 1, 7, 0, 0, 1, 0x26, 1, 5];
        let text = TrackFormat::H265.fmtp(Some(&key)).unwrap();
        assert_eq!(text, "sprop-vps=QAEJ;sprop-sps=QgEI;sprop-pps=RAEH");
    }
}
