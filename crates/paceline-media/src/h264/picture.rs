//! What the slices and SEI of an access unit state about its picture.

use super::nal::{Kind, Nal};
use super::params::{Order, Params};
use super::sei;
use super::slice::Slice;

/// The picture of an access unit: a frame, or one field or both of its fields.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Picture {
    /// The latest slice whose header could be read.
    pub(super) slice: Option<Slice>,
    /// The current field or frame has its first macroblock.
    first_seen: bool,
    /// A slice was found, readable or not.
    pub(super) begun: bool,
    /// The slices of the frame, or of its first field, are IDR.
    pub(super) idr: bool,
    /// Another picture may refer to it: `nal_ref_idc` is not 0.
    pub(super) reference: bool,
    /// The frame, or its first field, refers to no other picture.
    pub(super) intra: bool,
    /// It has both fields of a frame, one after the other.
    pub(super) paired: bool,
    /// It began with a slice of a single field.
    pub(super) field: bool,
    /// The number of frames from this one until all are correct, from its SEI.
    pub(super) recovery: Option<u32>,
    /// `pic_order_cnt_lsb`, its number of bits, and the offset of the bottom field.
    pub(super) order: Option<(u32, u8, i64)>,
    /// The id of the PPS of its first slice; `None` if no slice header could be read.
    pub(super) pps: Option<u32>,
}

/// The relation of a NAL unit to the picture before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It belongs to the picture.
    Same,
    /// It is the first slice of the picture's second field.
    SecondField,
    /// It is the first slice of another picture.
    Next,
}

impl Picture {
    /// Returns the place of a slice NAL unit.
    pub(super) fn place(&self, nal: &Nal<'_>, params: &Params) -> Place {
        if !self.begun {
            return Place::Same;
        }
        match (Slice::read(nal, params), self.slice) {
            (Some(slice), Some(before)) if slice.begins_picture(&before, self.first_seen) => {
                let second = self.is_first_field() && slice.is_second_field_of(&before);
                if second { Place::SecondField } else { Place::Next }
            }
            (Some(_), Some(_)) => Place::Same,
            // If a header is damaged, decide by its readable part.
            _ => {
                let idr = nal.kind() == Kind::Slice { idr: true };
                let other = (idr, nal.reference()) != (self.idr, self.reference);
                let first = crate::bits::Bits::new(nal.payload()).ue() == Some(0);
                if other || first { Place::Next } else { Place::Same }
            }
        }
    }

    /// Returns true if a second field may follow.
    pub(super) fn is_first_field(&self) -> bool {
        self.field && !self.paired
    }

    /// Adds an SEI or slice NAL unit; `place` is that of a slice. Ignores other NAL units.
    pub(super) fn add(&mut self, nal: &Nal<'_>, place: Place, params: &Params) {
        if nal.kind() == Kind::Sei && !self.begun {
            self.recovery = self.recovery.or(sei::recovery_frames(nal));
        }
        let Kind::Slice { idr } = nal.kind() else { return };
        let slice = Slice::read(nal, params);
        self.reference |= nal.reference();
        if place == Place::SecondField {
            (self.paired, self.first_seen) = (true, false);
        }
        if !self.paired {
            self.idr |= idr;
            let intra = slice.is_some_and(|slice| slice.intra);
            self.intra = intra && (self.intra || !self.begun);
        }
        self.begun = true;
        if let Some(slice) = slice {
            self.add_slice(slice, params);
        }
    }

    fn add_slice(&mut self, slice: Slice, params: &Params) {
        self.first_seen |= slice.is_first();
        if self.slice.is_none() {
            (self.pps, self.field) = (Some(slice.pps), slice.is_field());
            let bits = params.of(slice.pps).and_then(|(sps, _)| match sps.order {
                Order::Lsb(bits) => Some(bits),
                Order::Deltas | Order::None => None,
            });
            let order = bits.zip(slice.order_lsb());
            self.order = order.map(|(bits, (lsb, bottom))| (lsb, bits, bottom));
        }
        self.slice = Some(slice);
    }
}
