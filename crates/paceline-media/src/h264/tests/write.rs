//! Writes NAL units as specified in 7.3, for streams that no encoder produces on request.

use crate::bits::write::Bits;

/// Returns a NAL unit behind a start code, with emulation prevention.
pub(super) fn nal(header: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 1, header];
    for &byte in payload {
        if byte <= 3 && out.len() > 6 && out.ends_with(&[0, 0]) {
            out.push(3);
        }
        out.push(byte);
    }
    out
}

pub(super) fn join(nals: &[Vec<u8>]) -> Vec<u8> {
    nals.concat()
}

pub(super) fn aud() -> Vec<u8> {
    nal(0x09, &[0xf0])
}

pub(super) fn sei() -> Vec<u8> {
    nal(0x06, &[6, 1, 0xc4, 0x80])
}

#[derive(Clone, Copy)]
pub(super) struct Sps {
    pub(super) rows: u32,
    /// Pairs of lines cropped at the bottom.
    pub(super) crop: Option<u32>,
    /// `num_units_in_tick` and `time_scale`.
    pub(super) timing: Option<(u32, u32)>,
    /// Pictures may be fields.
    pub(super) fields: bool,
}

impl Default for Sps {
    fn default() -> Self {
        Self { rows: 15, crop: None, timing: None, fields: false }
    }
}

impl Sps {
    /// Returns an SPS of Baseline, level 3, 20 macroblocks wide, with 4 bits of `frame_num` and of the
    /// order.
    pub(super) fn write(self) -> Vec<u8> {
        let mut bits = Bits::default();
        bits.bits(8, 66).bits(8, 0xc0).bits(8, 30).ue(0);
        bits.ue(0).ue(0).ue(0).ue(1).bits(1, 0);
        bits.ue(19).ue(self.rows - 1).bits(1, u32::from(!self.fields));
        if self.fields {
            bits.bits(1, 0);
        }
        bits.bits(1, 1);
        bits.bits(1, u32::from(self.crop.is_some()));
        if let Some(below) = self.crop {
            bits.ue(0).ue(0).ue(0).ue(below);
        }
        bits.bits(1, u32::from(self.timing.is_some()));
        if let Some((tick, scale)) = self.timing {
            // No aspect ratio, overscan, signal type, chroma location; timing; no HRD, no picture
            // structure, no restrictions.
            bits.bits(4, 0).bits(1, 1).bits(32, tick).bits(32, scale).bits(1, 1).bits(4, 0);
        }
        nal(0x67, &bits.bytes())
    }
}

pub(super) fn sps() -> Vec<u8> {
    Sps::default().write()
}

pub(super) fn pps() -> Vec<u8> {
    pps_of(0, false)
}

pub(super) fn pps_of(id: u32, redundant: bool) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.ue(id).ue(0).bits(2, 0).ue(0).ue(0).ue(0).bits(3, 0).ue(0).ue(0).ue(0).bits(2, 0);
    bits.bits(1, u32::from(redundant));
    nal(0x68, &bits.bytes())
}

#[derive(Clone, Copy)]
pub(super) struct Slice {
    pub(super) idr: bool,
    pub(super) reference: u8,
    pub(super) first_mb: u32,
    /// `slice_type`: 5 P, 6 B, 7 I.
    pub(super) kind: u32,
    pub(super) pps: u32,
    pub(super) frame_num: u32,
    pub(super) idr_pic_id: u32,
    pub(super) order: u32,
    pub(super) redundant: Option<u32>,
    /// In a stream with fields: 0 for a frame, 1 for the top field, 2 for the bottom field.
    pub(super) field: Option<u32>,
}

impl Slice {
    pub(super) fn p(frame_num: u32) -> Self {
        Self {
            idr: false,
            reference: 2,
            first_mb: 0,
            kind: 5,
            pps: 0,
            frame_num,
            idr_pic_id: 0,
            order: frame_num * 2 % 16,
            redundant: None,
            field: None,
        }
    }

    pub(super) fn b(frame_num: u32, order: u32) -> Self {
        Self { reference: 0, kind: 6, order, ..Self::p(frame_num) }
    }

    pub(super) fn idr(idr_pic_id: u32) -> Self {
        Self { idr: true, reference: 3, kind: 7, idr_pic_id, ..Self::p(0) }
    }
}

/// Returns a slice without anything behind the fields that are read.
pub(super) fn slice(slice: Slice) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.ue(slice.first_mb).ue(slice.kind).ue(slice.pps).bits(4, slice.frame_num % 16);
    match slice.field {
        None => {}
        Some(0) => drop(bits.bits(1, 0)),
        Some(field) => drop(bits.bits(2, field + 1)),
    }
    if slice.idr {
        bits.ue(slice.idr_pic_id);
    }
    bits.bits(4, slice.order);
    if let Some(count) = slice.redundant {
        bits.ue(count);
    }
    bits.bits(16, 0xa5a5);
    nal(slice.reference << 5 | if slice.idr { 5 } else { 1 }, &bits.bytes())
}
