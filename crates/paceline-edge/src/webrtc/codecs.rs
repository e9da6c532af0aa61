//! The formats of tracks that browsers read, as payloads that a peer offers.

use super::offer::OfferError;
use crate::served::ServeError;
use crate::track::{TrackFormat, TrackKind};
use paceline_media::video;
use str0m::RtcConfig;
use str0m::format::{Codec, PayloadParams};

/// Returns the format of the samples of a tag for browsers; `None` if a sample decides.
///
/// ```
/// use paceline_edge::{TrackFormat, browser_format};
///
/// assert_eq!(browser_format("video/h264"), Ok(Some(TrackFormat::H264)));
/// assert!(browser_format("image/jpeg").unwrap_err().to_string().contains("H.264"));
/// ```
///
/// # Errors
/// [`ServeError::Encoding`] with the remedy for samples that browsers do not read over WebRTC.
pub fn browser_format(encoding: &str) -> Result<Option<TrackFormat>, ServeError> {
    let refused = |fix| Err(ServeError::browser(encoding, fix));
    match TrackFormat::served(encoding, None) {
        Ok(Some(format)) => match format {
            TrackFormat::H264 | TrackFormat::H265 | TrackFormat::Opus { .. } => Ok(Some(format)),
            TrackFormat::Pcmu { rate: 8_000, channels: 1 }
            | TrackFormat::Pcma { rate: 8_000, channels: 1 } => Ok(Some(format)),
            // The subscription codes it as Opus.
            TrackFormat::L16 { .. } | TrackFormat::Pcmu { .. } | TrackFormat::Pcma { .. } => {
                Ok(None)
            }
            TrackFormat::Jpeg => refused(
                "publish H.264, such as the output of ffmpeg -c:v libx264 -tune zerolatency, or show /api/v1/pictures",
            ),
            TrackFormat::Aac { .. } => refused("publish Opus or PCM"),
        },
        Ok(None) => refused("publish Opus or PCM"),
        Err(ServeError::Encoding { .. } | ServeError::Browser { .. }) => {
            refused("publish H.264 or H.265, and sound as Opus or PCM")
        }
        Err(error @ ServeError::Sample(..)) => Err(error),
    }
}

/// Returns the configuration with the codec of a track.
pub(super) fn with_codec(config: RtcConfig, format: TrackFormat) -> RtcConfig {
    match format {
        TrackFormat::H264 => config.enable_h264(true),
        TrackFormat::H265 => config.enable_h265(true),
        TrackFormat::Opus { .. } => config.enable_opus(true, false),
        TrackFormat::Pcmu { .. } => config.enable_pcmu(true, false),
        TrackFormat::Pcma { .. } => config.enable_pcma(true, false),
        TrackFormat::Jpeg | TrackFormat::Aac { .. } | TrackFormat::L16 { .. } => config,
    }
}

/// Returns the error for a peer that does not offer the codec of a track.
pub(super) fn missing(format: TrackFormat) -> OfferError {
    let kind = match format.kind() {
        TrackKind::Pictures => "video",
        TrackKind::Sound => "audio",
    };
    let (codec, fix) = match format {
        TrackFormat::H264 => {
            ("H.264 with packetization-mode=1", "use a browser or build with H.264")
        }
        TrackFormat::H265 => ("H.265", "publish H.264, which all browsers read"),
        TrackFormat::Opus { .. } => ("Opus", "offer Opus, which all browsers have"),
        TrackFormat::Pcmu { .. } | TrackFormat::Pcma { .. } => {
            ("G.711", "offer PCMU and PCMA, or request Opus by bitrate=32kbit")
        }
        TrackFormat::Jpeg | TrackFormat::Aac { .. } | TrackFormat::L16 { .. } => {
            ("the codec of the tag", "publish H.264 and Opus")
        }
    };
    OfferError::Codec { kind, codec, fix }
}

/// Returns the profile of H.264 (`profile_idc`) in a key picture.
pub(super) fn profile(key: &[u8]) -> Option<u8> {
    let mut nals = video::nal_units(key).take(64);
    let set = nals.find(|nal| nal.first().is_some_and(|first| first & 0x1f == 7))?;
    set.get(1).copied()
}

/// Returns how well the payload of a peer suits a track, or `None` if it does not. `profile` is the one of the pictures.
pub(super) fn suits(
    params: &PayloadParams,
    format: TrackFormat,
    profile: Option<u8>,
) -> Option<u8> {
    let spec = params.spec();
    match (format, spec.codec) {
        (TrackFormat::H264, Codec::H264) => {
            if spec.format.packetization_mode != Some(1) {
                return None;
            }
            let [_, offered, ..] = spec.format.profile_level_id.unwrap_or_default().to_be_bytes();
            // Decoders read lower profiles; browsers read higher ones as well.
            Some(match profile {
                Some(own) if own == offered => 3,
                Some(own) if own < offered => 2,
                Some(_) | None => 1,
            })
        }
        (TrackFormat::H265, Codec::H265)
        | (TrackFormat::Opus { .. }, Codec::Opus)
        | (TrackFormat::Pcmu { .. }, Codec::PCMU)
        | (TrackFormat::Pcma { .. }, Codec::PCMA) => Some(1),
        _ => None,
    }
}
