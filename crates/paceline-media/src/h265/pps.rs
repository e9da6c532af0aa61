//! The used fields of a picture parameter set (7.3.2.3).

use super::nal::payload;
use crate::annexb::Nal;
use crate::bits::Bits;

/// The ids of a picture parameter set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pps {
    pub(super) id: u32,
    pub(super) sps: u32,
}

impl Pps {
    /// Reads the ids of a PPS NAL unit; `None` if they cannot be read.
    pub(super) fn read(nal: &Nal<'_>) -> Option<Self> {
        let mut bits = Bits::new(payload(nal));
        let id = bits.ue().filter(|&id| id <= 63)?;
        let sps = bits.ue().filter(|&id| id <= 15)?;
        Some(Self { id, sps })
    }
}
