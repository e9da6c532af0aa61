//! H.265 video (ITU-T H.265, Annex B byte streams): access units and their classes.
//!
//! An access unit is one coded picture with everything that belongs to it: delimiter, parameter sets, SEI
//! and all its slices. [`split`] cuts a stream into units. A [`H265Classifier`] returns a unit's class, which
//! states whether other units depend on it. [`info`] reads size and rate from the SPS. [`H265ParameterSets`]
//! makes I units decodable on their own. Nothing here decodes a picture.
//!
//! Two fields of a frame are two units, unlike in [`crate::h264`]: H.265 codes each as a picture. Layers
//! above the base layer (scalable and multiview video) belong to the unit of their base picture.
//!
//! Bounds: a unit has at most [`UNIT_BYTES_MAX`] bytes and [`UNIT_NALS_MAX`] NAL units.

mod classify;
mod nal;
mod order;
mod pps;
mod scan;
mod sets;
mod skip;
mod split;
mod sps;
mod vui;

use crate::annexb::Nals;
use crate::error::MediaError;
use nal::{Header, Kind};
use sps::Sps;

pub use crate::video::{AccessUnit, Class, StreamInfo, UNIT_BYTES_MAX, UNIT_NALS_MAX};
pub use classify::H265Classifier;
pub(crate) use scan::first_unit;
pub use sets::H265ParameterSets;
pub use split::split;

/// The name of the codec in error messages.
pub(crate) const CODEC: &str = "h265";

/// Returns size and rate from the first sequence parameter set (SPS) in `bytes`; `None` if there is
/// none.
///
/// # Errors
/// [`MediaError::VideoStream`] for an SPS that cannot be read, [`MediaError::Side`] or
/// [`MediaError::Pixels`] for a size out of range.
pub fn info(bytes: &[u8]) -> Result<Option<StreamInfo>, MediaError> {
    match Nals::new(bytes).find(|nal| Header::of(nal).kind == Kind::Sps) {
        Some(nal) => Sps::read(&nal).map(|sps| Some(sps.info())),
        None => Ok(None),
    }
}

/// Returns the error for a unit of `bytes` bytes without an SPS.
pub(crate) fn no_size(bytes: usize) -> MediaError {
    let completed_by = "h265::H265ParameterSets";
    MediaError::VideoNoSize { codec: CODEC, bytes, header: "SPS", completed_by }
}

#[cfg(test)]
pub(crate) mod tests;
