//! Writes NAL units as specified in 7.3, for streams that no encoder produces on request.

use crate::bits::write::Bits;

/// Returns a NAL unit behind a start code, with emulation prevention.
pub(super) fn nal(number: u8, layer: u8, temporal: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 1, number << 1 | layer >> 5, layer << 3 | (temporal + 1)];
    for &byte in payload {
        if byte <= 3 && out.len() > 7 && out.ends_with(&[0, 0]) {
            out.push(3);
        }
        out.push(byte);
    }
    out
}

pub(super) fn aud() -> Vec<u8> {
    nal(35, 0, 0, &[0x50])
}

pub(super) fn vps() -> Vec<u8> {
    nal(32, 0, 0, &[0x0c, 1, 0xff, 0xff, 0x80])
}

pub(super) fn pps(id: u32) -> Vec<u8> {
    nal(34, 0, 0, &Bits::default().ue(id).ue(0).bits(16, 0xc1c1).bytes())
}

/// Returns the first slice of a picture of the base layer, without anything behind its PPS.
pub(super) fn slice(number: u8, temporal: u8) -> Vec<u8> {
    slice_of(number, temporal, 0)
}

pub(super) fn slice_of(number: u8, temporal: u8, pps: u32) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.bits(1, 1).bits(u32::from(number >= 16), 0).ue(pps).bits(16, 0xa5a5);
    nal(number, 0, temporal, &bits.bytes())
}

/// Returns a further slice segment of a picture.
pub(super) fn more(number: u8) -> Vec<u8> {
    nal(number, 0, 0, &[0x15, 0xa5])
}

/// A sequence parameter set of 320x240.
#[derive(Clone, Copy)]
pub(super) struct Sps {
    /// `sps_max_sub_layers_minus1`.
    pub(super) temporal_max: u32,
    pub(super) chroma: u32,
    pub(super) width: u32,
    /// The conformance window: left, right, top, bottom.
    pub(super) crop: Option<[u32; 4]>,
    /// `num_units_in_tick` and `time_scale`.
    pub(super) timing: Option<(u32, u32)>,
    pub(super) fields: bool,
    /// With scaling lists, PCM, reference picture sets, long-term pictures, and each optional field of the
    /// VUI.
    pub(super) rich: bool,
}

impl Default for Sps {
    fn default() -> Self {
        let (crop, timing) = (None, None);
        Self { temporal_max: 0, chroma: 1, width: 320, crop, timing, fields: false, rich: false }
    }
}

impl Sps {
    pub(super) fn write(self) -> Vec<u8> {
        let mut bits = Bits::default();
        self.write_head(&mut bits);
        self.write_tools(&mut bits);
        let timed = self.timing.is_some() || self.fields;
        bits.bits(1, u32::from(timed));
        if timed {
            self.write_vui(&mut bits);
        }
        bits.bits(1, 0);
        nal(33, 0, 0, &bits.bytes())
    }

    /// Writes the fields up to the conformance window.
    pub(super) fn write_head(self, bits: &mut Bits) {
        bits.bits(4, 0).bits(3, self.temporal_max).bits(1, 1);
        // Main profile, level 3.
        bits.bits(8, 1).bits(32, 0x6000_0000).bits(32, 0x9000_0000).bits(16, 0).bits(8, 90);
        for layer in 0..self.temporal_max {
            bits.bits(2, if layer == 0 { 3 } else { 1 });
        }
        if self.temporal_max > 0 {
            bits.bits((8 - self.temporal_max) * 2, 0);
        }
        for layer in 0..self.temporal_max {
            if layer == 0 {
                bits.bits(32, 0x0160_0000).bits(32, 0).bits(24, 0);
            }
            bits.bits(8, 60);
        }
        bits.ue(0).ue(self.chroma);
        if self.chroma == 3 {
            bits.bits(1, 0);
        }
        bits.ue(self.width).ue(240).bits(1, u32::from(self.crop.is_some()));
        for side in self.crop.into_iter().flatten() {
            bits.ue(side);
        }
    }

    fn write_tools(self, bits: &mut Bits) {
        // Depths, bits of the order; the buffering of each sub-layer; block sizes.
        bits.ue(0).ue(0).ue(4).bits(1, 1);
        for _ in 0..=self.temporal_max {
            bits.ue(4).ue(2).ue(0);
        }
        bits.ue(0).ue(3).ue(0).ue(3).ue(1).ue(1);
        bits.bits(1, u32::from(self.rich));
        if self.rich {
            bits.bits(1, 1);
            for list in 0..20 {
                let (large, count) = (list >= 12, if list < 6 { 16 } else { 64 });
                // Every second list is a copy.
                bits.bits(1, list % 2);
                if list % 2 == 0 {
                    bits.ue(0);
                    continue;
                }
                for _ in 0..count + u32::from(large) {
                    bits.ue(list);
                }
            }
        }
        bits.bits(2, 3).bits(1, u32::from(self.rich));
        if self.rich {
            bits.bits(8, 0x77).ue(0).ue(1).bits(1, 1);
        }
        if self.rich {
            // A set of two and one pictures, one that differs by it and keeps two, one that differs by that.
            bits.ue(3).ue(2).ue(1).ue(0).bits(1, 1).ue(1).bits(1, 1).ue(3).bits(1, 0);
            bits.bits(1, 1).bits(1, 1).ue(0).bits(1, 1).bits(2, 1).bits(2, 0).bits(2, 0);
            bits.bits(1, 1).bits(1, 0).ue(2).bits(1, 1).bits(1, 1).bits(2, 1);
            // Two long-term pictures of eight bits each.
            bits.bits(1, 1).ue(2).bits(9, 0x155).bits(9, 0);
        } else {
            bits.ue(0).bits(1, 0);
        }
        bits.bits(2, 3);
    }

    fn write_vui(self, bits: &mut Bits) {
        if self.rich {
            bits.bits(1, 1).bits(8, 255).bits(32, 0x0001_0001).bits(2, 3);
            bits.bits(1, 1).bits(4, 0xa).bits(1, 1).bits(24, 0x01_0101).bits(1, 1).ue(2).ue(2);
        } else {
            bits.bits(4, 0);
        }
        bits.bits(1, 0).bits(1, u32::from(self.fields)).bits(1, 1);
        bits.bits(1, u32::from(self.rich));
        if self.rich {
            bits.ue(0).ue(1).ue(0).ue(1);
        }
        bits.bits(1, u32::from(self.timing.is_some()));
        if let Some((tick, scale)) = self.timing {
            bits.bits(32, tick).bits(32, scale).bits(2, 0);
        }
        bits.bits(1, 0);
    }
}

pub(super) fn sps() -> Vec<u8> {
    Sps::default().write()
}
