//! The first fields of a slice header (7.3.3), and the detection of a new picture (7.4.1.2.4).

use super::nal::{Kind, Nal};
use super::params::{Order, Params};
use crate::bits::Bits;

/// The fields that distinguish slices of different pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// `first_mb_in_slice` is 0.
    first: bool,
    pub(super) pps: u32,
    pub(super) idr: bool,
    pub(super) reference: bool,
    /// The slice refers to no other picture.
    pub(super) intra: bool,
    /// The fields that can be read only with the parameter sets.
    rest: Option<Rest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Rest {
    frame_num: u32,
    /// `field_pic_flag` and `bottom_field_flag`.
    field: (bool, bool),
    idr_pic_id: u32,
    /// `pic_order_cnt_lsb`, then the one or two deltas.
    order: (u32, i64, i64),
    /// `redundant_pic_cnt` is not 0.
    redundant: bool,
}

impl Slice {
    /// Reads the beginning of a slice NAL unit's header; `None` if it cannot be read.
    pub(super) fn read(nal: &Nal<'_>, params: &Params) -> Option<Self> {
        let mut bits = Bits::new(nal.payload());
        let first = bits.ue()? == 0;
        let slice_type = bits.ue().filter(|&slice_type| slice_type <= 9)?;
        let intra = matches!(slice_type % 5, 2 | 4);
        let pps = bits.ue().filter(|&id| id <= 255)?;
        let (idr, reference) = (nal.kind() == Kind::Slice { idr: true }, nal.reference());
        let rest = read_rest(&mut bits, idr, pps, params);
        Some(Self { first, pps, idr, reference, intra, rest })
    }

    /// Returns true if it repeats a part of the current picture, in case that was lost.
    pub(super) fn redundant(&self) -> bool {
        self.rest.is_some_and(|rest| rest.redundant)
    }

    /// Returns true if this slice begins a new picture after `before`, a slice of the current picture.
    ///
    /// `first_seen` is true if that picture already has its slice with the first macroblock.
    pub(super) fn begins_picture(&self, before: &Self, first_seen: bool) -> bool {
        let same = |slice: &Self| (slice.pps, slice.idr, slice.reference);
        let known = |slice: &Self| slice.rest.map(|rest| Rest { redundant: false, ..rest });
        if same(self) != same(before) {
            return true;
        }
        match (known(self), known(before)) {
            (Some(this), Some(other)) if this != other => true,
            // Slices may be in any order, so the first macroblock need not begin a picture.
            (Some(_), Some(_)) => self.first && first_seen && !self.redundant(),
            _ => self.first,
        }
    }

    /// Returns true if this slice begins the second field of the frame whose first field `before` is a
    /// slice of: the fields of a frame have the same `frame_num` and opposite parity, and only the first
    /// one can be IDR (3.30 and 7.4.1.2.4).
    pub(super) fn is_second_field_of(&self, before: &Self) -> bool {
        let (Some(this), Some(first)) = (self.rest, before.rest) else { return false };
        let fields = this.field.0 && first.field.0 && this.field.1 != first.field.1;
        fields
            && this.frame_num == first.frame_num
            && !self.idr
            && (before.reference || !self.reference)
    }

    /// Returns true if it is a slice of a single field.
    pub(super) fn is_field(&self) -> bool {
        self.rest.is_some_and(|rest| rest.field.0)
    }

    /// Returns `pic_order_cnt_lsb` and `delta_pic_order_cnt_bottom`, if the slice has them and they can be
    /// read.
    pub(super) fn order_lsb(&self) -> Option<(u32, i64)> {
        self.rest.map(|rest| (rest.order.0, rest.order.1))
    }

    /// Returns `frame_num`, if it can be read.
    #[cfg(feature = "h264")]
    pub(super) fn frame_num(&self) -> Option<u32> {
        self.rest.map(|rest| rest.frame_num)
    }

    /// Returns true if it contains the picture's first macroblock.
    pub(super) fn is_first(&self) -> bool {
        self.first && !self.redundant()
    }
}

fn read_rest(bits: &mut Bits<'_>, idr: bool, pps: u32, params: &Params) -> Option<Rest> {
    let (sps, pps) = params.of(pps)?;
    let mut rest = Rest::default();
    if sps.planes {
        bits.bits(2)?;
    }
    rest.frame_num = bits.bits(sps.frame_num_bits)?;
    if !sps.progressive && bits.flag()? {
        rest.field = (true, bits.flag()?);
    }
    if idr {
        rest.idr_pic_id = bits.ue()?;
    }
    let bottom = pps.bottom_order && !rest.field.0;
    match sps.order {
        Order::Lsb(count) => {
            rest.order.0 = bits.bits(count)?;
            rest.order.1 = if bottom { bits.se()? } else { 0 };
        }
        Order::Deltas => {
            rest.order.1 = bits.se()?;
            rest.order.2 = if bottom { bits.se()? } else { 0 };
        }
        Order::None => {}
    }
    rest.redundant = pps.redundant && bits.ue()? > 0;
    Some(rest)
}
