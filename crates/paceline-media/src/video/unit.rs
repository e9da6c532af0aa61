//! A unit of a stream.

use super::Class;

/// One access unit of an H.264 or H.265 stream, or one temporal unit of an AV1 stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessUnit<'a> {
    /// The NAL units in Annex B, from the unit's first start code to the next unit's; or the OBUs.
    pub bytes: &'a [u8],
    /// The class of the unit.
    pub class: Class,
}
