//! The used fields of the video usability information (E.2.1).

use crate::bits::Bits;
use crate::video::plausible_hz;

/// The timing of the pictures.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Vui {
    /// The pictures per second.
    pub(super) hz: Option<f64>,
    /// Each picture is one field (`field_seq_flag`).
    pub(super) fields: bool,
}

impl Vui {
    pub(super) fn read(bits: &mut Bits<'_>) -> Option<Self> {
        const EXTENDED_ASPECT: u32 = 255;
        if bits.flag()? && bits.bits(8)? == EXTENDED_ASPECT {
            bits.skip(32)?;
        }
        if bits.flag()? {
            // overscan_appropriate_flag.
            bits.skip(1)?;
        }
        if bits.flag()? {
            // video_format and video_full_range_flag, then the colours.
            bits.skip(4)?;
            if bits.flag()? {
                bits.skip(24)?;
            }
        }
        if bits.flag()? {
            // The position of the chroma samples, for each field.
            bits.ue()?;
            bits.ue()?;
        }
        // neutral_chroma_indication_flag.
        bits.skip(1)?;
        let fields = bits.flag()?;
        // frame_field_info_present_flag.
        bits.skip(1)?;
        let hz = read_hz(bits);
        Some(Self { hz, fields })
    }
}

/// Reads the default display window and the rate.
fn read_hz(bits: &mut Bits<'_>) -> Option<f64> {
    if bits.flag()? {
        for _ in 0..4 {
            bits.ue()?;
        }
    }
    if !bits.flag()? {
        return None;
    }
    let (units, scale) = (bits.bits(32)?, bits.bits(32)?);
    plausible_hz(f64::from(scale) / f64::from(units))
}
