//! Writes OBUs as specified in section 5, for streams that no encoder produces on request.

use crate::bits::write::Bits;

pub(super) fn obu(number: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    sized(&mut out, payload);
    out
}

/// Returns an OBU of a layer.
pub(super) fn obu_of(number: u8, (temporal, spatial): (u8, u8), payload: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 6, temporal << 5 | spatial << 3];
    sized(&mut out, payload);
    out
}

fn sized(out: &mut Vec<u8>, payload: &[u8]) {
    let mut size = payload.len();
    while size > 0x7f {
        out.push(u8::try_from(size & 0x7f).unwrap() | 0x80);
        size >>= 7;
    }
    out.push(u8::try_from(size).unwrap());
    out.extend(payload);
}

pub(super) fn delimiter() -> Vec<u8> {
    obu(2, &[])
}

/// A sequence header of 320x240.
#[derive(Clone, Copy, Default)]
pub(super) struct Sequence {
    /// `reduced_still_picture_header`.
    pub(super) still: bool,
    /// `num_units_in_display_tick`, `time_scale` and `num_ticks_per_picture_minus_1`.
    pub(super) timing: Option<(u32, u32, Option<u32>)>,
    /// With a decoder model, which needs timing, for each of two operating points; with frame ids.
    pub(super) rich: bool,
    /// Frames have no order and choose no screen content tools.
    pub(super) plain: bool,
}

impl Sequence {
    pub(super) fn write(self) -> Vec<u8> {
        let mut bits = Bits::default();
        bits.bits(3, 0).bits(1, u32::from(self.still)).bits(1, u32::from(self.still));
        if self.still {
            bits.bits(5, 0);
        } else {
            self.write_points(&mut bits);
        }
        bits.bits(4, 8).bits(4, 7).bits(9, 319).bits(8, 239);
        if !self.still {
            bits.bits(1, u32::from(self.rich));
            if self.rich {
                // Ids of 9 + 2 + 2 + 1 = 14 bits.
                bits.bits(4, 9).bits(3, 2);
            }
        }
        bits.bits(3, 0);
        if !self.still {
            bits.bits(4, 0).bits(1, u32::from(!self.plain));
            if !self.plain {
                bits.bits(2, 0);
            }
            if self.plain {
                bits.bits(1, 0).bits(1, 0);
            } else {
                bits.bits(1, 1).bits(1, 1).bits(3, 6);
            }
        }
        bits.bits(16, 0xa5a5);
        obu(1, &bits.bytes())
    }

    fn write_points(self, bits: &mut Bits) {
        bits.bits(1, u32::from(self.timing.is_some()));
        if let Some((tick, scale, even)) = self.timing {
            bits.bits(32, tick).bits(32, scale).bits(1, u32::from(even.is_some()));
            if let Some(ticks) = even {
                bits.ue(ticks);
            }
            bits.bits(1, u32::from(self.rich));
            if self.rich {
                // Delays of 6 bits, removal times of 7, presentation times of 8.
                bits.bits(5, 5).bits(32, 1).bits(5, 6).bits(5, 7);
            }
        }
        bits.bits(1, u32::from(self.rich)).bits(5, u32::from(self.rich));
        for point in 0..=u32::from(self.rich) {
            // All layers; without those of temporal id 1.
            bits.bits(12, if self.rich { 0x103 - point * 2 } else { 0 }).bits(5, 8).bits(1, 0);
            if self.rich {
                bits.bits(1, 1).bits(6, 9).bits(6, 9).bits(1, 0).bits(1, 1).bits(4, 3);
            }
        }
    }
}

pub(super) fn sequence() -> Vec<u8> {
    Sequence::default().write()
}

/// A frame header.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    /// `frame_type`: 0 key, 1 inter, 2 intra-only, 3 switch.
    pub(super) kind: u32,
    pub(super) shown: bool,
    /// `error_resilient_mode`, where it is written.
    pub(super) resilient: bool,
    pub(super) refresh: u32,
    pub(super) layer: (u8, u8),
}

impl Frame {
    pub(super) fn of(kind: u32, shown: bool, refresh: u32) -> Self {
        Self { kind, shown, resilient: false, refresh, layer: (0, 0) }
    }

    pub(super) fn write(self, sequence: Sequence) -> Vec<u8> {
        let mut bits = Bits::default();
        let presentation = match sequence.timing {
            Some((_, _, None)) if sequence.rich => 8,
            _ => 0,
        };
        bits.bits(1, 0).bits(2, self.kind).bits(1, u32::from(self.shown));
        if self.shown {
            bits.bits(presentation, 0xaa);
        } else {
            bits.bits(1, 1);
        }
        let all = self.kind == 3 || self.kind == 0 && self.shown;
        if !all {
            bits.bits(1, u32::from(self.resilient));
        }
        bits.bits(1, 0);
        if !sequence.plain {
            // allow_screen_content_tools and force_integer_mv.
            bits.bits(1, 1).bits(1, 0);
        }
        bits.bits(if sequence.rich { 14 } else { 0 }, 0x2aaa);
        if self.kind != 3 {
            bits.bits(1, 0);
        }
        bits.bits(if sequence.plain { 0 } else { 7 }, 0x55);
        if matches!(self.kind, 1) && !self.resilient {
            bits.bits(3, 0);
        }
        if sequence.rich {
            bits.bits(1, 1).bits(7, 0x55);
            if self.layer.0 == 0 {
                bits.bits(7, 0x55);
            }
        }
        if !all {
            bits.bits(8, self.refresh);
        }
        bits.bits(16, 0xa5a5);
        match self.layer {
            (0, 0) if !sequence.rich => obu(6, &bits.bytes()),
            layer => obu_of(6, layer, &bits.bytes()),
        }
    }
}

/// Returns a frame of a stream with the default sequence header.
pub(super) fn frame(kind: u32, shown: bool, refresh: u32) -> Vec<u8> {
    Frame::of(kind, shown, refresh).write(Sequence::default())
}

/// Returns a frame header that shows an existing frame.
pub(super) fn existing(slot: u32) -> Vec<u8> {
    obu(3, &Bits::default().bits(1, 1).bits(3, slot).bytes())
}
