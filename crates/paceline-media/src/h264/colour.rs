//! The meaning of the samples of a picture (E.2.1).

use h264_reader::nal::sps::{SeqParameterSet, VideoSignalType};

/// The range and colour space of a stream's samples. Numbers are those of tables E-3 to E-5; 2 means
/// unspecified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour {
    pub(super) full_range: bool,
    pub(super) primaries: u8,
    pub(super) transfer: u8,
    pub(super) matrix: u8,
}

impl Colour {
    /// Returns the colour that an SPS states, if any.
    pub(super) fn of(sps: &SeqParameterSet) -> Option<Self> {
        let signal: &VideoSignalType = sps.vui_parameters.as_ref()?.video_signal_type.as_ref()?;
        let (primaries, transfer, matrix) =
            signal.colour_description.as_ref().map_or((2, 2, 2), |colour| {
                let transfer = colour.transfer_characteristics;
                (colour.colour_primaries, transfer, colour.matrix_coefficients)
            });
        Some(Self { full_range: signal.video_full_range_flag, primaries, transfer, matrix })
    }
}
