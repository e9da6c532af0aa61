//! The first fields of a frame header (5.9.2), up to the frames that it replaces.

use super::obu::Obu;
use super::sequence::Sequence;
use crate::bits::Bits;

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Key,
    Inter,
    IntraOnly,
    Switch,
}

/// A frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// It shows a frame that was decoded before, from this slot.
    Existing { slot: u8 },
    /// It has a frame of its own.
    Coded {
        key: bool,
        shown: bool,
        /// The slots that it replaces, one bit each (`refresh_frame_flags`).
        refresh: u8,
    },
}

impl Frame {
    /// Reads the header of a frame of `sequence`; `None` if it is cut off.
    pub(super) fn read(obu: &Obu<'_>, sequence: &Sequence) -> Option<Self> {
        let bits = &mut Bits::plain(obu.payload);
        if sequence.still {
            return Some(Self::Coded { key: true, shown: true, refresh: u8::MAX });
        }
        if bits.flag()? {
            let slot = u8::try_from(bits.bits(3)?).ok()?;
            return Some(Self::Existing { slot });
        }
        let kind = match bits.bits(2)? {
            0 => Type::Key,
            1 => Type::Inter,
            2 => Type::IntraOnly,
            _ => Type::Switch,
        };
        let (key, shown) = (kind == Type::Key, bits.flag()?);
        let all = kind == Type::Switch || key && shown;
        if all {
            return Some(Self::Coded { key, shown, refresh: u8::MAX });
        }
        let refresh = read_refresh(bits, obu.layer, sequence, kind, shown)?;
        Some(Self::Coded { key, shown, refresh })
    }
}

/// Reads on from behind `show_frame`, of a frame that does not replace all slots.
fn read_refresh(
    bits: &mut Bits<'_>,
    layer: (u8, u8),
    sequence: &Sequence,
    kind: Type,
    shown: bool,
) -> Option<u8> {
    if shown {
        let presentation = sequence.model.map_or(0, |model| model.presentation_bits);
        bits.skip(u32::from(presentation))?;
    } else {
        // showable_frame.
        bits.skip(1)?;
    }
    let resilient = bits.flag()?;
    // disable_cdf_update.
    bits.skip(1)?;
    let (tools, integer) = sequence.force;
    let tools = if tools == 2 { bits.flag()? } else { tools == 1 };
    if tools && integer == 2 {
        bits.skip(1)?;
    }
    bits.skip(u32::from(sequence.id_bits))?;
    // frame_size_override_flag and order_hint.
    bits.skip(1 + u32::from(sequence.order_bits))?;
    let intra = matches!(kind, Type::Key | Type::IntraOnly);
    if !intra && !resilient {
        // primary_ref_frame.
        bits.skip(3)?;
    }
    if let Some(model) = sequence.model
        && bits.flag()?
    {
        let (temporal, spatial) = layer;
        for point in sequence.points.iter().filter(|point| point.model) {
            let in_temporal = point.layers >> temporal & 1 == 1;
            let in_spatial = point.layers >> (spatial + 8) & 1 == 1;
            if point.layers == 0 || in_temporal && in_spatial {
                bits.skip(u32::from(model.removal_bits))?;
            }
        }
    }
    u8::try_from(bits.bits(8)?).ok()
}
