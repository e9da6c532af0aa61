//! AV1 video (low-overhead OBUs, section 5 of the AV1 specification): temporal units and their classes.
//!
//! A temporal unit contains all OBUs of one time: the delimiter, the sequence header, and the frames up to
//! the shown one, with hidden frames that later ones need. Each OBU states its size. [`split`] cuts a
//! stream into units. A [`Av1Classifier`] returns a unit's class, which states whether other units depend on
//! it. [`info`] reads size and rate from the sequence header. [`SequenceHeader`] makes I units decodable on
//! their own. Nothing here decodes a picture.
//!
//! Bounds: a unit has at most [`UNIT_BYTES_MAX`] bytes and [`UNIT_OBUS_MAX`] OBUs.

mod classify;
mod frame;
mod keep;
mod obu;
mod sequence;
mod split;

use crate::error::MediaError;
use crate::video;
use obu::{Kind, Obus};
use sequence::Sequence;

pub use crate::video::{AccessUnit, Class, StreamInfo, UNIT_BYTES_MAX};
pub use classify::Av1Classifier;
pub use keep::SequenceHeader;
pub(crate) use split::first_unit;
pub use split::split;

/// The largest number of OBUs in a temporal unit.
pub const UNIT_OBUS_MAX: usize = video::UNIT_NALS_MAX;

/// The name of the codec in error messages.
pub(crate) const CODEC: &str = "av1";

/// Returns size and rate from the first sequence header in `bytes`; `None` if there is none.
///
/// The size is the largest of the sequence; a frame may be smaller.
///
/// # Errors
/// [`MediaError::VideoStream`] for OBUs or a sequence header that cannot be read, [`MediaError::Side`] or
/// [`MediaError::Pixels`] for a size out of range.
pub fn info(bytes: &[u8]) -> Result<Option<StreamInfo>, MediaError> {
    for obu in Obus::starting(bytes, 0) {
        let obu = obu?;
        if obu.kind == Kind::Sequence {
            return Sequence::read(&obu)?.info().map(Some);
        }
    }
    Ok(None)
}

/// Returns the error for a unit of `bytes` bytes without a sequence header.
pub(crate) fn no_size(bytes: usize) -> MediaError {
    let completed_by = "av1::SequenceHeader";
    MediaError::VideoNoSize { codec: CODEC, bytes, header: "sequence header", completed_by }
}

#[cfg(test)]
pub(crate) mod tests;
