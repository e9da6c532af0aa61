//! The used fields of a picture parameter set (7.3.2.3).

use super::nal::payload;
use crate::annexb::Nal;
use crate::bits::Bits;

/// The first fields of a picture parameter set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pps {
    pub(super) id: u32,
    pub(super) sps: u32,
    /// The bits between the id of the PPS and the type in a slice header (`num_extra_slice_header_bits`).
    pub(super) extra_bits: u32,
    /// `output_flag_present_flag`.
    pub(super) output_flag: bool,
}

impl Pps {
    /// Reads the first fields of a PPS NAL unit; `None` if they cannot be read.
    pub(super) fn read(nal: &Nal<'_>) -> Option<Self> {
        let mut bits = Bits::new(payload(nal));
        let id = bits.ue().filter(|&id| id <= 63)?;
        let sps = bits.ue().filter(|&id| id <= 15)?;
        // dependent_slice_segments_enabled_flag.
        bits.skip(1)?;
        let (output_flag, extra_bits) = (bits.flag()?, bits.bits(3)?);
        Some(Self { id, sps, extra_bits, output_flag })
    }
}
