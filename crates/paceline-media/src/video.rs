//! The units of coded video and their classes, the same for [`crate::h264`], [`crate::h265`] and
//! [`crate::av1`].
//!
//! A class states whether other units depend on a unit. A stream is thinned by leaving out units that no
//! other needs, so nothing has to be decoded.

mod bounds;
mod class;
mod info;
mod unit;

pub use bounds::{UNIT_BYTES_MAX, UNIT_NALS_MAX};
pub use class::Class;
pub use info::StreamInfo;
pub use unit::{AccessUnit, nal_units};

pub(crate) use bounds::{check_bytes, check_parts};
pub(crate) use info::plausible_hz;
