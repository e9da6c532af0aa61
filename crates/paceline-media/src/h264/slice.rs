//! The first fields of a slice header (7.3.3), and where a new picture begins (7.4.1.2.4).

use super::bits::Bits;
use super::nal::{Kind, Nal};
use super::params::{Order, Params};

/// What tells slices of different pictures apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// `first_mb_in_slice` is 0.
    first: bool,
    pub(super) pps: u32,
    pub(super) idr: bool,
    pub(super) reference: bool,
    /// What can only be read with the parameter sets at hand.
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
    /// The beginning of a slice NAL unit's header; `None` if it cannot be read.
    pub(super) fn read(nal: &Nal<'_>, params: &Params) -> Option<Self> {
        let mut bits = Bits::new(nal.payload());
        let first = bits.ue()? == 0;
        bits.ue().filter(|&slice_type| slice_type <= 9)?;
        let pps = bits.ue().filter(|&id| id <= 255)?;
        let (idr, reference) = (nal.kind() == Kind::Slice { idr: true }, nal.reference());
        let rest = read_rest(&mut bits, idr, pps, params);
        Some(Self { first, pps, idr, reference, rest })
    }

    /// Repeats a part of the picture at hand, in case that was lost.
    pub(super) fn redundant(&self) -> bool {
        self.rest.is_some_and(|rest| rest.redundant)
    }

    /// Whether this slice begins a new picture behind `before`, one of the picture at hand.
    /// `first_seen`: that picture has its slice with the first macroblock already.
    pub(super) fn begins_picture(&self, before: &Self, first_seen: bool) -> bool {
        let same = |slice: &Self| (slice.pps, slice.idr, slice.reference);
        let known = |slice: &Self| slice.rest.map(|rest| Rest { redundant: false, ..rest });
        if same(self) != same(before) {
            return true;
        }
        match (known(self), known(before)) {
            (Some(this), Some(other)) if this != other => true,
            // Slices may come in any order, so the first macroblock need not begin a picture.
            (Some(_), Some(_)) => self.first && first_seen && !self.redundant(),
            _ => self.first,
        }
    }

    /// Whether it holds the picture's first macroblock.
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
