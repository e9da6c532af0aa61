//! The bounds of units.

use crate::error::MediaError;

/// The largest unit in bytes: 64 MiB.
pub const UNIT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The largest number of NAL units in an access unit, or of OBUs in a temporal unit.
pub const UNIT_NALS_MAX: usize = 8192;

/// Checks the length of the unit that begins at `at`.
pub(crate) fn check_bytes(codec: &'static str, at: usize, bytes: usize) -> Result<(), MediaError> {
    if bytes <= UNIT_BYTES_MAX {
        return Ok(());
    }
    Err(MediaError::VideoStream {
        codec,
        at,
        reason: format!("unit has {bytes} bytes, must be at most {UNIT_BYTES_MAX}"),
        fix: "encode smaller pictures or at a lower rate",
    })
}

/// Checks that the unit that begins at `at` may have another NAL unit or OBU in addition to `count`.
pub(crate) fn check_parts(
    codec: &'static str,
    at: usize,
    count: usize,
    parts: &str,
) -> Result<(), MediaError> {
    if count < UNIT_NALS_MAX {
        return Ok(());
    }
    Err(MediaError::VideoStream {
        codec,
        at,
        reason: format!("unit has more than {UNIT_NALS_MAX} {parts}"),
        fix: "encode with fewer slices or tile groups per picture",
    })
}
