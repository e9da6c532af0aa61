//! H.264 video (ITU-T H.264, Annex B byte streams): access units, their classes, and a transcoder.
//!
//! An access unit is one coded frame with everything that belongs to it: delimiter, parameter sets, SEI,
//! all its slices, and both fields if it is coded as fields. [`split`] cuts a stream into units. A
//! [`Classifier`] returns a unit's class, which states whether other units depend on it. [`info`] reads size and rate from the parameter sets.
//! [`ParameterSets`] makes I units decodable on their own. None of them decodes a picture.
//!
//! `Transcoder` (feature `h264`, see [`HAS_TRANSCODER`]) decodes units, scales the wanted pictures and
//! encodes them again.
//!
//! Bounds: a unit has at most [`UNIT_BYTES_MAX`] bytes and [`UNIT_NALS_MAX`] NAL units.

mod classify;
mod colour;
mod nal;
mod params;
mod picture;
mod scan;
mod sei;
mod sets;
mod slice;
mod split;

#[cfg(feature = "h264")]
mod blank;
#[cfg(feature = "h264")]
mod coder;
#[cfg(feature = "h264")]
mod limit;
#[cfg(feature = "h264")]
mod source;
#[cfg(feature = "h264")]
mod transcoder;
#[cfg(feature = "h264")]
mod within;

use crate::error::MediaError;
use nal::{Kind, Nals};
use params::Sps;

pub use crate::video::{AccessUnit, Class, StreamInfo, UNIT_BYTES_MAX, UNIT_NALS_MAX};
pub use classify::Classifier;
#[cfg(feature = "h264")]
pub use limit::{Limit, Want, key_bytes_min};
pub use sets::ParameterSets;
pub(crate) use split::Cutter;
pub use split::{Split, split};
#[cfg(feature = "h264")]
pub use transcoder::{Event, Transcoder};

/// The name of the codec in error messages.
const CODEC: &str = "h264";
/// The name of the parts of a unit in error messages.
const PARTS: &str = "NAL units";

/// Returns the error for a unit of `bytes` bytes without an SPS.
pub(crate) fn no_size(bytes: usize) -> MediaError {
    let completed_by = "h264::ParameterSets";
    MediaError::VideoNoSize { codec: CODEC, bytes, header: "SPS", completed_by }
}

/// True if `Transcoder` exists in this build (feature `h264`).
///
/// Without it H.264 is still split, classified, thinned and forwarded in full size.
pub const HAS_TRANSCODER: bool = cfg!(feature = "h264");

/// Returns size and rate from the first sequence parameter set (SPS) in `bytes`; `None` if there is
/// none.
///
/// # Errors
/// [`MediaError::VideoStream`] for an SPS that cannot be read, [`MediaError::Side`] or
/// [`MediaError::Pixels`] for a size out of range.
pub fn info(bytes: &[u8]) -> Result<Option<StreamInfo>, MediaError> {
    match Nals::new(bytes).find(|nal| nal.kind() == Kind::Sps) {
        Some(nal) => Sps::read(&nal).map(|sps| Some(sps.info())),
        None => Ok(None),
    }
}

/// Returns true if the picture of an access unit is an IDR picture: a decoder needs nothing before it.
/// Other key units ([`Class::I`]) may be a start only for some decoders.
#[must_use]
pub fn is_idr(access_unit: &[u8]) -> bool {
    nal::first_slice(access_unit) == Some(Kind::Slice { idr: true })
}

/// Returns the number of frames after a key unit ([`Class::I`]) until all pictures are correct for a decoder that starts
/// there: 0, except in a gradual refresh.
#[must_use]
pub fn refresh_frames(access_unit: &[u8]) -> u32 {
    let before_slices =
        Nals::new(access_unit).take_while(|nal| !matches!(nal.kind(), Kind::Slice { .. }));
    before_slices
        .filter(|nal| nal.kind() == Kind::Sei)
        .find_map(|nal| sei::recovery_frames(&nal))
        .unwrap_or(0)
}

/// The feature of a stream for which it cannot be decoded here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsupported {
    /// Fields, or frames with field macroblocks.
    Interlaced,
    /// Another chroma format than 4:2:0.
    Chroma,
    /// More than 8 bits per sample.
    Depth,
    /// A profile other than Baseline, Main and High.
    Profile,
    /// This build has no decoder.
    NoDecoder,
}

/// Returns the feature for which the stream cannot be decoded here, and so not be scaled, from the parameter
/// sets in `bytes`; `None` if it can, or if there are none.
#[must_use]
pub fn unsupported(bytes: &[u8]) -> Option<Unsupported> {
    if !HAS_TRANSCODER {
        return Some(Unsupported::NoDecoder);
    }
    let sps = Nals::new(bytes).find(|nal| nal.kind() == Kind::Sps)?;
    Sps::read(&sps).ok()?.unsupported()
}

#[cfg(test)]
pub(crate) mod tests;
