//! The used fields of a sequence header (5.5).

use super::obu::Obu;
use super::{CODEC, StreamInfo};
use crate::bits::Bits;
use crate::error::MediaError;
use crate::size::Size;
use crate::video::plausible_hz;

/// A sequence header: its size, and the fields that frame headers need.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sequence {
    /// `max_frame_width_minus_1` and `max_frame_height_minus_1`.
    side: (u32, u32),
    hz: Option<f64>,
    /// `reduced_still_picture_header`: a single key frame.
    pub(super) still: bool,
    /// The decoder model, if there is one.
    pub(super) model: Option<Model>,
    pub(super) points: Vec<Point>,
    /// The number of bits of a frame id; 0 if frames have none.
    pub(super) id_bits: u8,
    /// `seq_force_screen_content_tools` and `seq_force_integer_mv`; 2 if each frame states it.
    pub(super) force: (u32, u32),
    /// The number of bits of `order_hint`.
    pub(super) order_bits: u8,
}

/// The lengths of the decoder model's fields in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Model {
    delay_bits: u8,
    pub(super) removal_bits: u8,
    /// The length of `frame_presentation_time`; 0 if frames do not state it.
    pub(super) presentation_bits: u8,
}

/// An operating point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    /// `operating_point_idc`.
    pub(super) layers: u32,
    /// `decoder_model_present_for_this_op`.
    pub(super) model: bool,
}

impl Sequence {
    /// Reads a sequence header OBU.
    pub(super) fn read(obu: &Obu<'_>) -> Result<Self, MediaError> {
        let cut = || MediaError::VideoStream {
            codec: CODEC,
            at: obu.begin,
            reason: format!("sequence header of {} bytes ends too early", obu.payload.len()),
            fix: "have the sender encode the stream again",
        };
        Self::parse(&mut Bits::plain(obu.payload)).ok_or_else(cut)
    }

    /// Returns size and rate.
    pub(super) fn info(&self) -> Result<StreamInfo, MediaError> {
        let (width, height) = self.side;
        Ok(StreamInfo { size: Size::new(width + 1, height + 1)?, hz: self.hz })
    }

    fn parse(bits: &mut Bits<'_>) -> Option<Self> {
        // seq_profile and still_picture.
        bits.skip(4)?;
        let still = bits.flag()?;
        let (mut hz, mut model, mut points) = (None, None, Vec::new());
        if still {
            // seq_level_idx.
            bits.skip(5)?;
            points.push(Point { layers: 0, model: false });
        } else {
            if bits.flag()? {
                let timing = Timing::read(bits)?;
                hz = timing.hz;
                model = if bits.flag()? { Some(Model::read(bits, timing.even)?) } else { None };
            }
            let delay = bits.flag()?;
            let last = bits.bits(5)?;
            for _ in 0..=last {
                points.push(Point::read(bits, model, delay)?);
            }
        }
        let (width_bits, height_bits) = (bits.bits(4)?, bits.bits(4)?);
        let mut side = |minus_1: u32| bits.bits(u8::try_from(minus_1 + 1).ok()?);
        let side = (side(width_bits)?, side(height_bits)?);
        let mut id_bits = 0;
        if !still && bits.flag()? {
            let (delta, more) = (bits.bits(4)?, bits.bits(3)?);
            id_bits = u8::try_from(delta + 2 + more + 1).ok()?;
        }
        // use_128x128_superblock, enable_filter_intra, enable_intra_edge_filter.
        bits.skip(3)?;
        let (mut force, mut order_bits) = ((2, 2), 0);
        if !still {
            // enable_interintra_compound to enable_dual_filter.
            bits.skip(4)?;
            let ordered = bits.flag()?;
            if ordered {
                // enable_jnt_comp and enable_ref_frame_mvs.
                bits.skip(2)?;
            }
            force.0 = if bits.flag()? { 2 } else { bits.bits(1)? };
            if force.0 > 0 {
                force.1 = if bits.flag()? { 2 } else { bits.bits(1)? };
            }
            if ordered {
                order_bits = u8::try_from(bits.bits(3)? + 1).ok()?;
            }
        }
        Some(Self { side, hz, still, model, points, id_bits, force, order_bits })
    }
}

/// `timing_info` (5.5.3).
struct Timing {
    hz: Option<f64>,
    /// `equal_picture_interval`.
    even: bool,
}

impl Timing {
    fn read(bits: &mut Bits<'_>) -> Option<Self> {
        let (units, scale) = (bits.bits(32)?, bits.bits(32)?);
        let even = bits.flag()?;
        if !even {
            return Some(Self { hz: None, even });
        }
        // uvlc() has the form of ue(v).
        let ticks = f64::from(bits.ue()?) + 1.0;
        let hz = plausible_hz(f64::from(scale) / f64::from(units) / ticks);
        Some(Self { hz, even })
    }
}

impl Model {
    fn read(bits: &mut Bits<'_>, even: bool) -> Option<Self> {
        let mut length = |skipped: u32| -> Option<u8> {
            bits.skip(skipped)?;
            u8::try_from(bits.bits(5)? + 1).ok()
        };
        let delay_bits = length(0)?;
        // num_units_in_decoding_tick.
        let removal_bits = length(32)?;
        let presentation_bits = length(0)?;
        let presentation_bits = if even { 0 } else { presentation_bits };
        Some(Self { delay_bits, removal_bits, presentation_bits })
    }
}

impl Point {
    fn read(bits: &mut Bits<'_>, model: Option<Model>, delay: bool) -> Option<Self> {
        let layers = bits.bits(12)?;
        if bits.bits(5)? > 7 {
            // seq_tier.
            bits.skip(1)?;
        }
        let mut present = false;
        if let Some(model) = model {
            present = bits.flag()?;
            if present {
                bits.skip(u32::from(model.delay_bits) * 2 + 1)?;
            }
        }
        if delay && bits.flag()? {
            bits.skip(4)?;
        }
        Some(Self { layers, model: present })
    }
}
