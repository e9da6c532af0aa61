//! The used fields of a sequence parameter set (7.3.2.2).

use super::nal::payload;
use super::skip::{skip_profile_tier_level, skip_to_order_bits, skip_to_vui};
use super::vui::Vui;
use super::{CODEC, StreamInfo};
use crate::annexb::Nal;
use crate::bits::Bits;
use crate::error::MediaError;
use crate::size::Size;

/// A sequence parameter set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sps {
    pub(super) id: u32,
    /// The id of its VPS.
    pub(super) vps: u32,
    /// The highest `TemporalId` of the stream.
    pub(super) temporal_max: u32,
    /// `separate_colour_plane_flag`.
    pub(super) planes: bool,
    /// The number of bits of `slice_pic_order_cnt_lsb`; `None` if it cannot be read.
    pub(super) order_bits: Option<u8>,
    size: Size,
    /// The timing of the pictures; the default if it cannot be read.
    pub(super) vui: Vui,
}

impl Sps {
    /// Reads an SPS NAL unit.
    pub(super) fn read(nal: &Nal<'_>) -> Result<Self, MediaError> {
        let mut bits = Bits::new(payload(nal));
        let field = |name: &str, value: Option<u32>, max: u32| {
            let reason = match value {
                Some(value) if value <= max => return Ok(value),
                Some(value) => format!("{name} is {value}, must be 0 to {max}"),
                None => format!("{} bytes end before {name}", nal.bytes.len()),
            };
            Err(MediaError::VideoStream {
                codec: CODEC,
                at: nal.begin,
                reason: format!("SPS cannot be read: {reason}"),
                fix: "have the sender encode the stream again",
            })
        };
        let vps = field("sps_video_parameter_set_id", bits.bits(4), 15)?;
        let temporal_max = field("sps_max_sub_layers_minus1", bits.bits(3), 6)?;
        // sps_temporal_id_nesting_flag, then the profile.
        let profile = bits.skip(1).and_then(|()| skip_profile_tier_level(&mut bits, temporal_max));
        field("profile_tier_level", profile.map(|()| 0), 0)?;
        let id = field("sps_seq_parameter_set_id", bits.ue(), 15)?;
        let chroma = field("chroma_format_idc", bits.ue(), 3)?;
        let planes = chroma == 3 && field("separate_colour_plane_flag", bits.bits(1), 1)? == 1;
        let width = field("pic_width_in_luma_samples", bits.ue(), u32::MAX)?;
        let height = field("pic_height_in_luma_samples", bits.ue(), u32::MAX)?;
        let mut cropped = [0_u32; 4];
        if field("conformance_window_flag", bits.bits(1), 1)? == 1 {
            for side in &mut cropped {
                *side = field("conf_win_offset", bits.ue(), u32::MAX)?;
            }
        }
        let [left, right, top, bottom] = cropped;
        let columns = if matches!(chroma, 1 | 2) { 2 } else { 1 };
        let rows = if chroma == 1 { 2 } else { 1 };
        let rest = |side: u32, unit: u32, a: u32, b: u32| {
            side.saturating_sub(a.saturating_add(b).saturating_mul(unit))
        };
        let size = Size::new(rest(width, columns, left, right), rest(height, rows, top, bottom))?;
        let order_bits = skip_to_order_bits(&mut bits);
        let rest = order_bits.and_then(|count| skip_to_vui(&mut bits, temporal_max, count));
        let present = rest == Some(true);
        let vui = if present { Vui::read(&mut bits) } else { None };
        Ok(Self { id, vps, temporal_max, planes, order_bits, size, vui: vui.unwrap_or_default() })
    }

    pub(super) fn info(&self) -> StreamInfo {
        StreamInfo { size: self.size, hz: self.vui.hz }
    }
}
