//! H.264 video (ITU-T H.264, Annex B byte streams): access units, their classes, and a transcoder.
//!
//! An access unit is one coded picture with everything that belongs to it: delimiter, parameter sets,
//! SEI, all its slices. [`split`] cuts a stream into units. [`classify`] returns a unit's class, which
//! states whether other units depend on it. [`info`] reads size and rate from the parameter sets.
//! [`ParameterSets`] makes I units decodable on their own. None of them decodes a picture.
//!
//! `Transcoder` (feature `h264`, see [`HAS_TRANSCODER`]) decodes units, scales the wanted pictures and
//! encodes them again.
//!
//! Bounds: a unit has at most [`UNIT_BYTES_MAX`] bytes and [`UNIT_NALS_MAX`] NAL units.

mod bits;
mod nal;
mod params;
mod scan;
mod sets;
mod slice;
mod split;

#[cfg(feature = "h264")]
mod coder;
#[cfg(feature = "h264")]
mod source;
#[cfg(feature = "h264")]
mod transcoder;

use crate::error::MediaError;
use crate::size::Size;
use nal::{Kind, Nals};
use params::Sps;

pub use sets::ParameterSets;
pub use split::{Split, split};
#[cfg(feature = "h264")]
pub use transcoder::{Event, Transcoder};

/// True if `Transcoder` exists in this build (feature `h264`).
///
/// Without it H.264 is still split, classified, thinned and forwarded in full size.
pub const HAS_TRANSCODER: bool = cfg!(feature = "h264");

/// The largest access unit in bytes: 64 MiB.
pub const UNIT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The largest number of NAL units in an access unit.
pub const UNIT_NALS_MAX: usize = 8192;

/// The class of an access unit: whether other units depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// An IDR picture: it needs no earlier picture, and no later picture needs one from before it.
    ///
    /// Other I pictures are [`Class::P`], because later pictures may refer to pictures before them.
    I,
    /// A reference picture: later pictures may need it.
    P,
    /// `nal_ref_idc` is 0: no other picture needs it, whatever its slice type.
    B,
}

impl Class {
    /// Returns the class of a slice: `idr` for an IDR slice, `reference` if its `nal_ref_idc` is not 0.
    fn of(idr: bool, reference: bool) -> Self {
        match (idr, reference) {
            (true, _) => Self::I,
            (false, true) => Self::P,
            (false, false) => Self::B,
        }
    }
}

/// One access unit of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessUnit<'a> {
    /// The NAL units in Annex B, from the unit's first start code to the next unit's.
    pub bytes: &'a [u8],
    /// The class of the unit.
    pub class: Class,
}

/// The properties of a stream from its parameter sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamInfo {
    /// The size of the displayed pictures, after cropping.
    pub size: Size,
    /// The pictures per second from the timing in the VUI; `None` if it has none.
    ///
    /// The encoder declares this rate; it is not measured.
    pub hz: Option<f64>,
}

/// Returns size and rate from the first sequence parameter set (SPS) in `bytes`; `None` if there is
/// none.
///
/// # Errors
/// [`MediaError::H264Stream`] for an SPS that cannot be read, [`MediaError::Side`] or
/// [`MediaError::Pixels`] for a size out of range.
pub fn info(bytes: &[u8]) -> Result<Option<StreamInfo>, MediaError> {
    match Nals::new(bytes).find(|nal| nal.kind() == Kind::Sps) {
        Some(nal) => Sps::read(&nal).map(|sps| Some(sps.info())),
        None => Ok(None),
    }
}

/// Returns the class of an access unit from its NAL headers.
///
/// # Errors
/// [`MediaError::H264Stream`] if `access_unit` has no slice or is above a bound.
pub fn classify(access_unit: &[u8]) -> Result<Class, MediaError> {
    scan::check_bytes(0, access_unit.len())?;
    let mut class = None;
    for (count, nal) in Nals::new(access_unit).enumerate() {
        scan::check_nals(0, count)?;
        if let Kind::Slice { idr } = nal.kind() {
            class = Some(Class::of(idr, nal.reference()));
        }
        if matches!(class, Some(Class::I | Class::P)) {
            break;
        }
    }
    class.ok_or_else(|| scan::no_slice(access_unit, 0))
}

#[cfg(test)]
mod tests;
