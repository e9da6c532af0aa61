//! Blank pictures, with which the decoder starts at a key picture that is not IDR.
//!
//! openh264 decodes nothing before an IDR picture, and streams with open groups may have only one, at their
//! begin. A key picture needs none of the pictures before it, so any IDR picture does: a gray one with the
//! parameters of the stream, which is never shown.

use super::nal::{Kind, Nals};
use super::params::{Order, Sps};
use super::slice::Slice;

/// The id of the picture parameter set of blank pictures, which no encoder uses.
const PPS: u32 = 255;
/// The macroblock of a blank picture: type `I_16x16_2_0_0` (predicted from the mean of its neighbours), and
/// no coefficients.
const GRAY: (u32, u8) = (0b0010_0111, 8);
/// The largest number of macroblocks of a picture, as of level 6.2.
const BLOCKS_MAX: u32 = 139_264;

/// Bits to write, with the most significant one first.
#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    /// Returns the bits of a NAL unit's payload without emulation prevention bytes.
    fn of(payload: &[u8]) -> Self {
        let (mut zeros, mut bits) = (0, Vec::with_capacity(payload.len() * 8));
        for &byte in payload {
            if zeros >= 2 && byte == 3 {
                zeros = 0;
                continue;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            bits.extend((0..8).rev().map(|bit| byte >> bit & 1 == 1));
        }
        Self(bits)
    }

    fn put(&mut self, (value, count): (u32, u8)) {
        self.0.extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
    }

    /// Writes an unsigned Exp-Golomb number, ue(v).
    fn ue(&mut self, value: u32) {
        let code = u64::from(value) + 1;
        let count = 64 - code.leading_zeros();
        self.0.extend((1..count).map(|_| false));
        self.0.extend((0..count).rev().map(|bit| code >> bit & 1 == 1));
    }

    /// Returns a NAL unit with a start code, from its header and these bits.
    fn into_nal(mut self, header: u8, ends: bool) -> Vec<u8> {
        if ends {
            self.0.push(true);
        }
        let mut bytes = vec![0, 0, 0, 1, header];
        let mut zeros = 0;
        for eight in self.0.chunks(8) {
            let byte = eight.iter().fold(0u8, |byte, &bit| byte << 1 | u8::from(bit));
            let byte = byte << (8 - eight.len());
            if zeros >= 2 && byte <= 3 {
                bytes.push(3);
                zeros = 0;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            bytes.push(byte);
        }
        bytes
    }
}

/// Returns the units to decode before the key picture with the slice `key`: an IDR picture, whose number is 0,
/// and unless the key picture has number 1, a picture with the number before that. `sets` are the parameter sets of the stream.
///
/// `None` if the parameter sets cannot be read.
pub(super) fn before(sets: &[u8], sps: &Sps, key: &Slice) -> Option<Vec<Vec<u8>>> {
    let mut unit = permit_gaps(sets);
    let blocks = Some(sps.blocks).filter(|&blocks| blocks <= BLOCKS_MAX)?;
    let mut pps = Bits::default();
    pps.ue(PPS);
    pps.ue(sps.id);
    // CAVLC, no bottom field order, one slice group, one reference, no weighting.
    pps.put((0, 2));
    (0..3).for_each(|_| pps.ue(0));
    pps.put((0, 3));
    // Three quantizers, the deblocking filter is controlled by slices, the rest is off.
    (0..3).for_each(|_| pps.ue(0));
    pps.put((0b100, 3));
    unit.extend(pps.into_nal(0x68, true));
    let range = 1u32.checked_shl(sps.frame_num_bits.into())?;
    let picture = |frame_num: u32, back: u32| {
        let idr = frame_num == 0;
        let mut bits = Bits::default();
        bits.ue(0);
        bits.ue(7); // all slices are I
        bits.ue(PPS);
        bits.put((frame_num, sps.frame_num_bits));
        if idr {
            bits.ue(0);
        }
        match sps.order {
            Order::Lsb(count) => {
                let range = 1u32 << count.min(31);
                let lsb = key.order_lsb().map_or(0, |(lsb, _)| lsb);
                bits.put(((lsb + range - back.min(range)) % range, count));
            }
            Order::Deltas => bits.ue(0),
            Order::None => {}
        }
        if idr {
            bits.put((0, 2));
        } else {
            // This picture precedes the key picture by number, and replaces the IDR picture as a reference.
            // So it is older than all pictures of the stream.
            bits.put((1, 1));
            bits.ue(1);
            bits.ue(frame_num - 1);
            bits.ue(0);
        }
        bits.ue(0);
        bits.ue(1);
        (0..blocks).for_each(|_| bits.put(GRAY));
        bits.into_nal(if idr { 0x65 } else { 0x61 }, true)
    };
    unit.extend(picture(0, 4));
    let number = (key.frame_num()? + range - 1) % range;
    let again = (number > 0).then(|| picture(number, 2));
    Some(std::iter::once(unit).chain(again).collect())
}

/// Returns the unit with `gaps_in_frame_num_value_allowed_flag` set in each SPS, as the frames between a
/// blank picture and the key picture are missing.
pub(super) fn permit_gaps(unit: &[u8]) -> Vec<u8> {
    let mut changed = Vec::with_capacity(unit.len());
    let mut copied = 0;
    for nal in Nals::new(unit).filter(|nal| nal.kind() == Kind::Sps) {
        let (Some(&header), mut bits) = (nal.bytes.first(), Bits::of(nal.payload())) else {
            continue;
        };
        let Some(flag) = gaps_flag(&bits.0).and_then(|at| bits.0.get_mut(at)) else { continue };
        *flag = true;
        changed.extend_from_slice(unit.get(copied..nal.begin).unwrap_or_default());
        changed.extend(bits.into_nal(header, false));
        copied = nal.end;
    }
    changed.extend_from_slice(unit.get(copied..).unwrap_or_default());
    changed
}

/// Returns the index of `gaps_in_frame_num_value_allowed_flag` in the bits of an SPS (7.3.2.1.1).
fn gaps_flag(bits: &[bool]) -> Option<usize> {
    let mut at = Cursor { bits, at: 0 };
    let profile = at.bits(8)?;
    at.bits(16)?;
    at.ue()?;
    if matches!(profile, 100 | 110 | 122 | 244 | 44 | 83 | 86 | 118 | 128 | 138 | 139 | 134 | 135) {
        let chroma = at.ue()?;
        if chroma == 3 {
            at.bits(1)?;
        }
        at.ue()?;
        at.ue()?;
        at.bits(1)?;
        if at.bits(1)? == 1 {
            let lists = if chroma == 3 { 12 } else { 8 };
            for list in 0..lists {
                if at.bits(1)? == 1 {
                    at.skip_scaling_list(if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    at.ue()?;
    match at.ue()? {
        0 => {
            at.ue()?;
        }
        1 => {
            at.bits(1)?;
            at.ue()?;
            at.ue()?;
            let frames = at.ue().filter(|&frames| frames <= 255)?;
            for _ in 0..frames {
                at.ue()?;
            }
        }
        _ => {}
    }
    at.ue()?;
    Some(at.at)
}

struct Cursor<'b> {
    bits: &'b [bool],
    at: usize,
}

impl Cursor<'_> {
    fn bits(&mut self, count: usize) -> Option<u32> {
        let bits = self.bits.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(bits.iter().fold(0, |value, &bit| value << 1 | u32::from(bit)))
    }

    fn ue(&mut self) -> Option<u32> {
        let zeros = self.bits.get(self.at..)?.iter().position(|&bit| bit)?;
        if zeros > 31 {
            return None;
        }
        self.bits(zeros)?;
        self.bits(1)?;
        let rest = self.bits(zeros)?;
        (1u32 << zeros).checked_add(rest)?.checked_sub(1)
    }

    /// Skips a scaling list (7.3.2.1.1.1).
    fn skip_scaling_list(&mut self, size: usize) -> Option<()> {
        let (mut last, mut next) = (8i64, 8i64);
        for _ in 0..size {
            if next != 0 {
                let code = i64::from(self.ue()?);
                let delta = if code % 2 == 0 { -(code / 2) } else { code / 2 + 1 };
                next = (last + delta).rem_euclid(256);
            }
            last = if next == 0 { last } else { next };
        }
        Some(())
    }
}
