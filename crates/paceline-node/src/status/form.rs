//! The form of samples in a status.

use core::num::{NonZeroU8, NonZeroU32};
use paceline_proto::form::Audio;
use paceline_proto::{Form, NodeId, Rate, Size};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The requested form of samples.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct RequestedForm {
    /// Description for display.
    form: String,
    /// One sample in this many; null for every sample.
    every: Option<u32>,
    /// Largest rate; null if none is requested.
    max_hz: Option<f64>,
    /// Width in pixels; null for the full size.
    width: Option<u32>,
    /// Height in pixels; null for the full size.
    height: Option<u32>,
    /// Sampling rate of sound in samples per second; absent for the publisher's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    audio_hz: Option<u32>,
    /// Channels of sound; absent for the publisher's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channels: Option<u8>,
    /// Largest bit rate that whole samples are left out for; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_bits_per_s: Option<u32>,
    /// Bit rate of the encoder; absent for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bitrate_bits_per_s: Option<u32>,
    /// Quality of JPEG pictures, 1 to 100; absent for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quality: Option<u8>,
    /// Id of the node between the ends that scales the samples; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    via: Option<String>,
}

impl From<&Form> for RequestedForm {
    fn from(form: &Form) -> Self {
        let Form { rate, size, audio, bitrate, quality, via } = *form;
        Self {
            form: form.to_string(),
            every: (rate.every.get() > 1).then_some(rate.every.get()),
            max_hz: rate.max_hz(),
            width: size.map(|size| size.width),
            height: size.map(|size| size.height),
            audio_hz: audio.map(|audio| audio.rate),
            channels: audio.map(|audio| audio.channels),
            max_bits_per_s: rate.bits_per_s.map(NonZeroU32::get),
            bitrate_bits_per_s: bitrate.map(NonZeroU32::get),
            quality: quality.map(NonZeroU8::get),
            via: via.map(|via| via.to_string()),
        }
    }
}

impl RequestedForm {
    /// Returns the form; `None` if a value is out of range.
    fn form(&self) -> Option<Form> {
        let max_millihertz = match self.max_hz {
            Some(hz) => Some(millihertz(hz)?),
            None => None,
        };
        let size = self.width.zip(self.height).map(|(width, height)| Size { width, height });
        let audio =
            self.audio_hz.zip(self.channels).map(|(rate, channels)| Audio { rate, channels });
        Some(Form {
            rate: Rate {
                every: self.every.map_or(Some(NonZeroU32::MIN), NonZeroU32::new)?,
                max_millihertz,
                bits_per_s: self.max_bits_per_s.and_then(NonZeroU32::new),
            },
            size,
            audio,
            bitrate: self.bitrate_bits_per_s.and_then(NonZeroU32::new),
            quality: self.quality.and_then(NonZeroU8::new),
            via: match &self.via {
                Some(via) => Some(via.parse::<NodeId>().ok()?),
                None => None,
            },
        })
    }
}

fn millihertz(hz: f64) -> Option<NonZeroU32> {
    let rounded = (hz * 1_000.0).round();
    let fits = (1.0..=f64::from(u32::MAX)).contains(&rounded);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let millihertz = fits.then_some(rounded as u32)?;
    NonZeroU32::new(millihertz)
}

/// For `#[serde(with = "form")]`.
pub(super) fn serialize<S: Serializer>(form: &Form, to: S) -> Result<S::Ok, S::Error> {
    RequestedForm::from(form).serialize(to)
}

/// For `#[serde(with = "form")]`.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Form, D::Error> {
    let form = RequestedForm::deserialize(from)?;
    form.form().ok_or_else(|| serde::de::Error::custom("form out of range"))
}
