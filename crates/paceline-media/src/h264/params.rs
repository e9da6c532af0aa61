//! The used fields of parameter sets (7.3.2.1 and 7.3.2.2).

use std::collections::BTreeMap;

use h264_reader::nal::sps::{ChromaFormat, FrameMbsFlags, PicOrderCntType, SeqParameterSet};
use h264_reader::rbsp::{BitReader, decode_nal};

use super::CODEC;
use super::colour::Colour;
use super::nal::{Kind, Nal};
use super::{StreamInfo, Unsupported};
use crate::bits::Bits;
use crate::error::{MediaError, excerpt};
use crate::size::Size;
use crate::video::plausible_hz;

/// The largest SPS in bytes. A usual one has a few dozen; one with all scaling lists and schedules still
/// fits.
const SPS_BYTES_MAX: usize = 4096;

/// A sequence parameter set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sps {
    pub(super) id: u32,
    info: StreamInfo,
    /// The range and colour space of its samples, if it states them.
    #[cfg_attr(not(feature = "h264"), expect(dead_code, reason = "the encoder copies it"))]
    pub(super) colour: Option<Colour>,
    profile: u8,
    chroma: ChromaFormat,
    /// The bits of a luma or chroma sample, whichever is larger.
    depth: u8,
    /// `separate_colour_plane_flag`.
    pub(super) planes: bool,
    /// `frame_mbs_only_flag`.
    pub(super) progressive: bool,
    /// The number of bits of `frame_num`.
    pub(super) frame_num_bits: u8,
    pub(super) order: Order,
    /// The number of macroblocks of a frame.
    #[cfg_attr(not(feature = "h264"), expect(dead_code, reason = "the decoder's start needs it"))]
    pub(super) blocks: u32,
}

/// The representation of the picture order in slice headers (`pic_order_cnt_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Type 0, with the number of bits of `pic_order_cnt_lsb`.
    Lsb(u8),
    /// Type 1 without `delta_pic_order_always_zero_flag`.
    Deltas,
    /// No field in the slice header.
    None,
}

impl Sps {
    /// Reads an SPS NAL unit.
    pub(super) fn read(nal: &Nal<'_>) -> Result<Self, MediaError> {
        let refuse = |reason: String| MediaError::VideoStream {
            codec: CODEC,
            at: nal.begin,
            reason: format!("SPS cannot be read: {}", excerpt(&reason)),
            fix: "have the sender encode the stream again",
        };
        if nal.bytes.len() > SPS_BYTES_MAX || nal.bytes.len() < 4 {
            return Err(refuse(format!(
                "{} bytes long, must be 4 to {SPS_BYTES_MAX}",
                nal.bytes.len()
            )));
        }
        let rbsp = decode_nal(nal.bytes).map_err(|error| refuse(error.to_string()))?;
        let sps = SeqParameterSet::from_bits(BitReader::new(&*rbsp))
            .map_err(|error| refuse(format!("{error:?}")))?;
        let (width, height) =
            sps.pixel_dimensions().map_err(|error| refuse(format!("{error:?}")))?;
        let chroma = &sps.chroma_info;
        let depth = chroma.bit_depth_luma_minus8.max(chroma.bit_depth_chroma_minus8);
        let hz = sps.fps().and_then(plausible_hz);
        Ok(Self {
            id: u32::from(sps.id().id()),
            info: StreamInfo { size: Size::new(width, height)?, hz },
            colour: Colour::of(&sps),
            profile: sps.profile_idc.into(),
            chroma: chroma.chroma_format,
            depth: depth.saturating_add(8),
            planes: chroma.separate_colour_plane_flag,
            progressive: matches!(sps.frame_mbs_flags, FrameMbsFlags::Frames),
            frame_num_bits: sps.log2_max_frame_num(),
            blocks: sps
                .pic_width_in_mbs()
                .saturating_mul(sps.pic_height_in_map_units_minus1.saturating_add(1)),
            order: match sps.pic_order_cnt {
                PicOrderCntType::TypeZero { log2_max_pic_order_cnt_lsb_minus4 } => {
                    Order::Lsb(log2_max_pic_order_cnt_lsb_minus4.saturating_add(4))
                }
                PicOrderCntType::TypeOne { delta_pic_order_always_zero_flag: false, .. } => {
                    Order::Deltas
                }
                PicOrderCntType::TypeOne { .. } | PicOrderCntType::TypeTwo => Order::None,
            },
        })
    }

    pub(super) fn info(&self) -> StreamInfo {
        self.info
    }

    /// Returns true if pictures leave the decoder in decoding order.
    #[cfg(feature = "h264")]
    pub(super) fn in_order(&self) -> bool {
        self.profile == 66
    }

    /// Returns the first feature that openh264 does not decode.
    pub(super) fn unsupported(&self) -> Option<Unsupported> {
        if self.chroma != ChromaFormat::YUV420 {
            Some(Unsupported::Chroma)
        } else if self.depth != 8 {
            Some(Unsupported::Depth)
        } else if !self.progressive {
            Some(Unsupported::Interlaced)
        } else if !matches!(self.profile, 66 | 77 | 100) {
            Some(Unsupported::Profile)
        } else {
            None
        }
    }

    /// Describes the format.
    #[cfg(feature = "h264")]
    pub(super) fn describe(&self) -> String {
        let chroma = match self.chroma {
            ChromaFormat::Monochrome => "4:0:0",
            ChromaFormat::YUV420 => "4:2:0",
            ChromaFormat::YUV422 => "4:2:2",
            ChromaFormat::YUV444 => "4:4:4",
            ChromaFormat::Invalid(_) => "of unknown chroma",
        };
        let scan = if self.progressive { "progressive" } else { "interlaced" };
        let (profile, depth) = (profile_name(self.profile), self.depth);
        format!("{profile} profile, {chroma}, {depth} bits, {scan}")
    }
}

/// Returns the name of a `profile_idc`.
#[cfg(feature = "h264")]
fn profile_name(profile: u8) -> String {
    let name = match profile {
        66 => "Baseline",
        77 => "Main",
        88 => "Extended",
        100 => "High",
        110 => "High 10",
        122 => "High 4:2:2",
        244 => "High 4:4:4 Predictive",
        44 => "CAVLC 4:4:4 Intra",
        _ => return format!("number {profile}"),
    };
    name.to_owned()
}

/// The fields of a picture parameter set that slice headers need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pps {
    pub(super) sps: u32,
    /// `bottom_field_pic_order_in_frame_present_flag`.
    pub(super) bottom_order: bool,
    /// `redundant_pic_cnt_present_flag`.
    pub(super) redundant: bool,
}

impl Pps {
    /// Reads the id and the used fields of a PPS NAL unit; `None` if it cannot be read.
    pub(super) fn read(nal: &Nal<'_>) -> Option<(u32, Self)> {
        let mut bits = Bits::new(nal.payload());
        let id = bits.ue().filter(|&id| id <= 255)?;
        let sps = bits.ue().filter(|&id| id <= 31)?;
        bits.flag()?;
        let bottom_order = bits.flag()?;
        skip_slice_groups(&mut bits)?;
        // num_ref_idx_l0 and l1, weighted_pred_flag and weighted_bipred_idc, three qp values,
        // deblocking_filter_control_present_flag, constrained_intra_pred_flag.
        for _ in 0..2 {
            bits.ue()?;
        }
        bits.bits(3)?;
        for _ in 0..3 {
            bits.se()?;
        }
        bits.bits(2)?;
        let redundant = bits.flag()?;
        Some((id, Self { sps, bottom_order, redundant }))
    }
}

fn skip_slice_groups(bits: &mut Bits<'_>) -> Option<()> {
    let groups = bits.ue().filter(|&last| last <= 7)?;
    if groups == 0 {
        return Some(());
    }
    match bits.ue()? {
        0 => (0..=groups).try_for_each(|_| bits.ue().map(drop)),
        1 => Some(()),
        2 => (0..groups * 2).try_for_each(|_| bits.ue().map(drop)),
        3..=5 => bits.flag().and_then(|_| bits.ue()).map(drop),
        6 => {
            let width = if groups > 3 { 3 } else { u8::from(groups > 1) + 1 };
            let last = bits.ue()?;
            (0..=last).try_for_each(|_| bits.bits(width).map(drop))
        }
        _ => None,
    }
}

/// The latest parameter sets of a stream, as far as slice headers need them: at most 32 SPS and 256 PPS.
#[derive(Debug, Clone, Default)]
pub(super) struct Params {
    sps: BTreeMap<u32, (Sps, Whole)>,
    pps: BTreeMap<u32, (Pps, Whole)>,
}

/// The NAL unit of a parameter set; `None` if it has more than [`WHOLE_BYTES_MAX`] bytes.
type Whole = Option<Box<[u8]>>;

/// The longest parameter set whose repetition is recognized, in bytes. A usual one has a few dozen.
const WHOLE_BYTES_MAX: usize = 512;

fn whole(nal: &Nal<'_>) -> Whole {
    (nal.bytes.len() <= WHOLE_BYTES_MAX).then(|| nal.bytes.into())
}

impl Params {
    /// Returns true if the NAL unit is a parameter set that changes nothing: the latest one with its id has the
    /// same bytes.
    pub(super) fn repeats(&self, nal: &Nal<'_>) -> bool {
        let same = |whole: &Whole| whole.as_deref() == Some(nal.bytes);
        match nal.kind() {
            Kind::Sps => self.sps.values().any(|(_, whole)| same(whole)),
            Kind::Pps => self.pps.values().any(|(_, whole)| same(whole)),
            Kind::Slice { .. }
            | Kind::Delimiter
            | Kind::Sei
            | Kind::Leading
            | Kind::Prefix
            | Kind::Other => false,
        }
    }

    /// Records a parameter set. Ignores other NAL units and parameter sets that cannot be read.
    pub(super) fn note(&mut self, nal: &Nal<'_>) {
        match nal.kind() {
            Kind::Sps | Kind::Pps if self.repeats(nal) => {}
            Kind::Sps => {
                if let Ok(sps) = Sps::read(nal) {
                    self.sps.insert(sps.id, (sps, whole(nal)));
                }
            }
            Kind::Pps => {
                if let Some((id, pps)) = Pps::read(nal) {
                    self.pps.insert(id, (pps, whole(nal)));
                }
            }
            Kind::Slice { .. }
            | Kind::Delimiter
            | Kind::Sei
            | Kind::Leading
            | Kind::Prefix
            | Kind::Other => {}
        }
    }

    /// Returns the parameter sets of slices with PPS `pps`, if both have been received.
    pub(super) fn of(&self, pps: u32) -> Option<(&Sps, &Pps)> {
        let (pps, _) = self.pps.get(&pps)?;
        self.sps.get(&pps.sps).map(|(sps, _)| (sps, pps))
    }
}
