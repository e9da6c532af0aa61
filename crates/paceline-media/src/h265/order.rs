//! The picture order count (8.3.1).

use super::nal::{Header, Kind, payload};
use super::pps::Pps;
use super::sps::Sps;
use crate::annexb::Nal;
use crate::bits::Bits;
use std::collections::BTreeMap;

/// The order of the pictures of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct PictureOrder {
    /// The bits of the order, and `separate_colour_plane_flag`, of each SPS by its id.
    sps: BTreeMap<u32, (u8, bool)>,
    pps: BTreeMap<u32, Pps>,
    /// The order of the last picture that others may refer to.
    last: i64,
}

impl PictureOrder {
    /// Records a parameter set. Ignores other NAL units, and sets that cannot be read.
    pub(super) fn note(&mut self, header: Header, nal: &Nal<'_>) {
        match header.kind {
            Kind::Sps => {
                let sps = Sps::read(nal).ok();
                let bits = sps.and_then(|sps| Some((sps.id, (sps.order_bits?, sps.planes))));
                self.sps.extend(bits);
            }
            Kind::Pps => self.pps.extend(Pps::read(nal).map(|pps| (pps.id, pps))),
            Kind::Slice | Kind::Vps | Kind::Delimiter | Kind::Opening | Kind::Other => {}
        }
    }

    /// Returns the order of the picture that begins with a slice, in decoding order; `None` without its parameter sets.
    pub(super) fn of(&mut self, header: Header, nal: &Nal<'_>) -> Option<i64> {
        let order = self.read(header, nal)?;
        // Only pictures of the lowest sub-layer that are neither leading nor left out count (prevTid0Pic).
        if header.temporal == 0 && header.is_reference() && !header.is_leading() {
            self.last = order;
        }
        Some(order)
    }

    fn read(&self, header: Header, nal: &Nal<'_>) -> Option<i64> {
        if header.is_idr() {
            return Some(0);
        }
        let pps = self.pps.get(&header.pps_of_slice(nal)?)?;
        let (count, planes) = *self.sps.get(&pps.sps)?;
        let mut bits = Bits::new(payload(nal));
        bits.skip(if header.is_key() { 2 } else { 1 })?;
        bits.ue()?;
        bits.skip(pps.extra_bits)?;
        // slice_type.
        bits.ue()?;
        bits.skip(u32::from(pps.output_flag) + if planes { 2 } else { 0 })?;
        let lsb = i64::from(bits.bits(count)?);
        let (range, half) = (1_i64 << count, 1_i64 << count >> 1);
        let low = self.last.rem_euclid(range);
        let high = self.last - low;
        Some(match lsb - low {
            step if step <= -half => high + range + lsb,
            step if step > half => high - range + lsb,
            _ => high + lsb,
        })
    }
}
