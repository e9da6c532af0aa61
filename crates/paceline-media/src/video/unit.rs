//! A unit of a stream.

use super::Class;
use crate::annexb::Nals;

/// One access unit of an H.264 or H.265 stream, or one temporal unit of an AV1 stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessUnit<'a> {
    /// The NAL units in Annex B, from the unit's first start code to the next unit's; or the OBUs.
    pub bytes: &'a [u8],
    /// The class of the unit.
    pub class: Class,
}

/// Returns the NAL units of an access unit in Annex B, without start codes and without the zeros after them.
///
/// ```
/// let unit = [0, 0, 0, 1, 0x67, 0x42, 0, 0, 1, 0x65, 0x88, 0];
/// let nals: Vec<&[u8]> = paceline_media::video::nal_units(&unit).collect();
/// assert_eq!(nals, [&[0x67, 0x42][..], &[0x65, 0x88]]);
/// ```
pub fn nal_units(unit: &[u8]) -> impl Iterator<Item = &[u8]> {
    Nals::new(unit).map(|nal| nal.bytes)
}
