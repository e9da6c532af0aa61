//! The recovery point in supplemental enhancement information (D.1.8 and D.2.8).

use super::nal::Nal;
use crate::bits::Bits;

/// The payload type of a recovery point.
const RECOVERY_POINT: u32 = 6;

/// Returns `recovery_frame_cnt`, if this SEI NAL unit has a recovery point: the number of frames after
/// which all pictures are correct if decoding begins here.
pub(super) fn recovery_frames(nal: &Nal<'_>) -> Option<u32> {
    let mut bits = Bits::new(nal.payload());
    loop {
        let kind = number(&mut bits)?;
        let bytes = number(&mut bits)?;
        if kind == RECOVERY_POINT {
            return bits.ue();
        }
        for _ in 0..bytes {
            bits.bits(8)?;
        }
    }
}

/// Reads a payload type or size: bytes of 255 and a last one, all of which are added.
fn number(bits: &mut Bits<'_>) -> Option<u32> {
    let mut number = 0_u32;
    loop {
        let byte = bits.bits(8)?;
        number = number.checked_add(byte)?;
        if byte != 255 {
            return Some(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::nal::Nals;
    use super::*;

    fn read(payload: &[u8]) -> Option<u32> {
        let bytes = [&[0, 0, 1, 6], payload].concat();
        recovery_frames(&Nals::new(&bytes).next().unwrap())
    }

    #[test]
    fn the_recovery_point_is_found_behind_other_payloads() {
        // recovery_frame_cnt 0 is one bit.
        assert_eq!(read(&[6, 1, 0x80, 0x80]), Some(0));
        // 4 is 00101.
        assert_eq!(read(&[5, 2, 1, 2, 6, 1, 0b0010_1000, 0x80]), Some(4));
        assert_eq!(read(&[5, 2, 1, 2, 0x80]), None);
    }

    #[test]
    fn garbage_has_no_recovery_point() {
        for payload in [&[][..], &[6], &[255, 255, 255], &[5, 200, 1], &[1, 255, 255, 255, 255]] {
            assert_eq!(read(payload), None, "{payload:?}");
        }
    }
}
