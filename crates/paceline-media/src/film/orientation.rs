//! The orientation of pictures within their stream: the SEI message "display orientation" of H.264 and H.265.

use super::FilmTurn;
use crate::annexb::Nals;
use crate::codec::Codec;

/// The type of the message (H.264, D.1.27; H.265, D.2.17).
const DISPLAY_ORIENTATION: u32 = 47;
/// A quarter turn in units of 2^-16 turns.
const QUARTER: u32 = 1 << 14;
/// The type of NAL units with messages: of H.264, and of H.265 before a picture.
const SEI_H264: u8 = 6;
const SEI_H265: u8 = 39;

/// Returns the type of a NAL unit.
const fn kind(codec: Codec, first: u8) -> u8 {
    match codec {
        Codec::H264 => first & 0x1f,
        Codec::H265 | Codec::Av1 => first >> 1 & 0x3f,
    }
}

/// Returns whether a NAL unit of this type is a slice.
fn is_slice(codec: Codec, kind: u8) -> bool {
    match codec {
        Codec::H264 => (1..=5).contains(&kind),
        Codec::H265 => kind < 32,
        Codec::Av1 => false,
    }
}

/// Returns a NAL unit that states an orientation from its access unit on; `None` for mirrored pictures and AV1.
fn message(codec: Codec, turn: FilmTurn) -> Option<Vec<u8>> {
    if turn.other {
        return None;
    }
    let anticlockwise = u32::from(360 - turn.degrees % 360) / 90 % 4 * QUARTER;
    // Three flags, the rotation, the persistence, and the end of the message at a byte.
    let (head, bits): (&[u8], u32) = match codec {
        Codec::H264 => (&[6], anticlockwise << 5 | 0b01001),
        Codec::H265 => (&[SEI_H265 << 1, 1], anticlockwise << 5 | 0b11000),
        Codec::Av1 => return None,
    };
    let [_, a, b, c] = bits.to_be_bytes();
    Some([&[0, 0, 0, 1][..], head, &[47, 3, a, b, c, 0x80]].concat())
}

/// Returns a key picture that states its orientation before its first slice. One that states an orientation stays as it is, and so does
/// one of AV1.
pub(super) fn stated(codec: Codec, turn: FilmTurn, unit: Vec<u8>) -> Vec<u8> {
    if turn.is_none() || found(codec, &unit).is_some() {
        return unit;
    }
    let Some(message) = message(codec, turn) else { return unit };
    let slice = Nals::new(&unit)
        .find(|nal| nal.bytes.first().is_some_and(|first| is_slice(codec, kind(codec, *first))));
    let Some(slice) = slice else { return unit };
    let (before, behind) = unit.split_at(slice.begin.min(unit.len()));
    [before, &message, behind].concat()
}

/// Returns the orientation that an access unit states.
pub(super) fn found(codec: Codec, unit: &[u8]) -> Option<FilmTurn> {
    let (wanted, head) = match codec {
        Codec::H264 => (SEI_H264, 1),
        Codec::H265 => (SEI_H265, 2),
        Codec::Av1 => return None,
    };
    let messages = Nals::new(unit)
        .filter(|nal| nal.bytes.first().is_some_and(|first| kind(codec, *first) == wanted));
    messages.filter_map(|nal| turn_of(nal.bytes.get(head..)?)).next()
}

/// Returns the orientation that the messages of a NAL unit state.
fn turn_of(messages: &[u8]) -> Option<FilmTurn> {
    let mut plain: Vec<u8> = Vec::new();
    for byte in messages {
        if *byte != 3 || !plain.ends_with(&[0, 0]) {
            plain.push(*byte);
        }
    }
    let mut rest = plain.as_slice();
    loop {
        let (kind, behind) = number(rest)?;
        let (length, behind) = number(behind)?;
        let length = usize::try_from(length).ok()?;
        if kind == DISPLAY_ORIENTATION {
            let bits = u32::from_be_bytes([0, *behind.first()?, *behind.get(1)?, *behind.get(2)?]);
            // Cancelled: as if there were none.
            if length < 3 || bits >> 23 == 1 {
                return None;
            }
            let (flips, rotation) = (bits >> 21 & 3, bits >> 5 & 0xffff);
            let other = flips != 0 || rotation % QUARTER != 0;
            let quarters = u16::try_from(rotation / QUARTER).unwrap_or(0);
            let degrees = if other { 0 } else { (4 - quarters) % 4 * 90 };
            return Some(FilmTurn { degrees, other });
        }
        rest = behind.get(length..)?;
    }
}

/// Reads a type or a length: bytes of 255, and a last one.
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let more = bytes.iter().take_while(|byte| **byte == 0xff).count();
    let last = *bytes.get(more)?;
    let more_bytes = u32::try_from(more).ok()?.checked_mul(255)?;
    Some((more_bytes.checked_add(last.into())?, bytes.get(more + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CODECS: [(Codec, &[u8]); 2] = [
        (Codec::H264, b"\0\0\0\x01\x67\x42\0\0\x01\x68\xce\0\0\x01\x65\x88\x84"),
        (Codec::H265, b"\0\0\0\x01\x40\x01\x0c\0\0\0\x01\x42\x01\x01\0\0\x01\x26\x01\xaf"),
    ];

    #[test]
    fn an_orientation_that_is_stated_is_found_and_is_stated_once() {
        for (codec, unit) in CODECS {
            assert_eq!(found(codec, unit), None);
            assert_eq!(stated(codec, FilmTurn::default(), unit.to_vec()), unit);
            for degrees in [90, 180, 270] {
                let turn = FilmTurn { degrees, other: false };
                let turned = stated(codec, turn, unit.to_vec());
                assert_eq!(found(codec, &turned), Some(turn));
                assert_eq!(
                    stated(codec, FilmTurn { degrees: 180, other: false }, turned.clone()),
                    turned
                );
                let kinds: Vec<u8> =
                    Nals::new(&turned).map(|nal| kind(codec, nal.bytes[0])).collect();
                let last = [
                    if codec == Codec::H264 { SEI_H264 } else { SEI_H265 },
                    if codec == Codec::H264 { 5 } else { 19 },
                ];
                assert!(kinds.ends_with(&last), "{kinds:?}");
            }
            let mirrored = FilmTurn { degrees: 0, other: true };
            assert_eq!(stated(codec, mirrored, unit.to_vec()), unit);
        }
    }

    #[test]
    fn flips_other_angles_and_cancellations_are_distinguished() {
        let of = |bits: u32| {
            let [_, a, b, c] = bits.to_be_bytes();
            // Behind a message of another type.
            turn_of(&[5, 1, 9, 47, 3, a, b, c, 0x80])
        };
        assert_eq!(of(QUARTER << 5), Some(FilmTurn { degrees: 270, other: false }));
        assert_eq!(of(0), Some(FilmTurn::default()));
        assert_eq!(of(100 << 5), Some(FilmTurn { degrees: 0, other: true }));
        assert_eq!(of(1 << 22), Some(FilmTurn { degrees: 0, other: true }));
        assert_eq!(of(1 << 23), None);
        assert_eq!(turn_of(&[0xff, 0xff]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for (codec, _) in CODECS {
                let turn = FilmTurn { degrees: 90, other: false };
                let _ = found(codec, &stated(codec, turn, bytes.clone()));
            }
            let _ = turn_of(&bytes);
        }
    }
}
