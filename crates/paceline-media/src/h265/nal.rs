//! The headers of NAL units (7.3.1.2 and table 7-1).

use crate::annexb::Nal;
use crate::bits::Bits;

/// The kind of a NAL unit, as far as this module distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A slice segment: types 0 to 9 and 16 to 21.
    Slice,
    /// VPS, type 32.
    Vps,
    /// SPS, type 33.
    Sps,
    /// PPS, type 34.
    Pps,
    /// Access unit delimiter, type 35.
    Delimiter,
    /// Other types that begin a unit when they follow a picture: 39, 41 to 44 and 48 to 55.
    Opening,
    /// All others, and damaged ones: they belong to the current unit.
    Other,
}

/// The header of a NAL unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// `nal_unit_type`.
    number: u8,
    /// `nuh_layer_id`: 0 is the base layer.
    layer: u8,
    /// `TemporalId`.
    pub(super) temporal: u32,
}

impl Header {
    /// Reads the header of a NAL unit. Parameter sets and delimiters of other layers than the base layer
    /// are [`Kind::Other`].
    pub(super) fn of(nal: &Nal<'_>) -> Self {
        let (first, second) = match nal.bytes {
            [first, second, ..] => (*first, *second),
            // As if the forbidden bit were set.
            _ => (0x80, 0),
        };
        let number = first >> 1 & 0x3f;
        let layer = (first & 1) << 5 | second >> 3;
        let damaged = first & 0x80 != 0 || second & 7 == 0;
        let kind = match number {
            _ if damaged => Kind::Other,
            0..=9 | 16..=21 => Kind::Slice,
            _ if layer > 0 => Kind::Other,
            32 => Kind::Vps,
            33 => Kind::Sps,
            34 => Kind::Pps,
            35 => Kind::Delimiter,
            39 | 41..=44 | 48..=55 => Kind::Opening,
            _ => Kind::Other,
        };
        Self { kind, number, layer, temporal: u32::from(second & 7).saturating_sub(1) }
    }

    /// Returns true for slices of IRAP pictures: BLA, IDR and CRA.
    pub(super) fn is_key(self) -> bool {
        self.kind == Kind::Slice && self.number >= 16
    }

    /// Returns true for slices of IDR pictures, whose order is 0.
    pub(super) fn is_idr(self) -> bool {
        self.kind == Kind::Slice && matches!(self.number, 19 | 20)
    }

    /// Returns true for slices of RASL or RADL pictures, which precede their key picture in presentation order.
    pub(super) fn is_leading(self) -> bool {
        self.kind == Kind::Slice && matches!(self.number, 6..=9)
    }

    /// Returns true for slices of RASL pictures, which may need pictures before their key picture.
    pub(super) fn is_skipped_leading(self) -> bool {
        self.kind == Kind::Slice && matches!(self.number, 8 | 9)
    }

    /// Returns true if pictures of the same temporal sub-layer may need the slice.
    pub(super) fn is_reference(self) -> bool {
        self.number % 2 == 1 || self.number >= 16
    }

    /// Returns true for parameter sets.
    pub(super) fn is_set(self) -> bool {
        matches!(self.kind, Kind::Vps | Kind::Sps | Kind::Pps)
    }

    /// Returns true if the NAL unit cannot belong to the picture before it.
    pub(super) fn opens_unit(self, nal: &Nal<'_>) -> bool {
        match self.kind {
            Kind::Vps | Kind::Sps | Kind::Pps | Kind::Delimiter | Kind::Opening => true,
            Kind::Slice => self.begins_picture(nal),
            Kind::Other => false,
        }
    }

    /// Returns true for the first slice segment of a picture of the base layer.
    pub(super) fn begins_picture(self, nal: &Nal<'_>) -> bool {
        let first = payload(nal).first().is_some_and(|byte| byte & 0x80 != 0);
        self.kind == Kind::Slice && self.layer == 0 && first
    }

    /// Returns the id of the PPS to which the slice refers.
    pub(super) fn pps_of_slice(self, nal: &Nal<'_>) -> Option<u32> {
        let mut bits = Bits::new(payload(nal));
        // first_slice_segment_in_pic_flag, and no_output_of_prior_pics_flag of key pictures.
        bits.skip(if self.is_key() { 2 } else { 1 })?;
        bits.ue().filter(|&id| id <= 63)
    }
}

/// Returns the bytes after the two-byte header.
pub(super) fn payload<'a>(nal: &Nal<'a>) -> &'a [u8] {
    nal.bytes.get(2..).unwrap_or_default()
}
