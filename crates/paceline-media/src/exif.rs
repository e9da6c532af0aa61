//! The orientation in Exif metadata (Exif 2.32, 4.6.2), which is a TIFF file.

/// The tag of the orientation.
const ORIENTATION: u16 = 0x0112;
/// The type of a number of 16 bits.
const SHORT: u16 = 3;
/// More entries are not searched.
const ENTRIES_MAX: u16 = 256;

/// The way in which a picture is shown: turned, mirrored or both; 2 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Orientation(u8);

impl Orientation {
    /// Reads the orientation; `None` for the usual one (1), and if there is none.
    pub(crate) fn read(tiff: &[u8]) -> Option<Self> {
        let little = match tiff.get(..4)? {
            b"II\x2a\0" => true,
            b"MM\0\x2a" => false,
            _ => return None,
        };
        let short = |at: usize| {
            let bytes = *tiff.get(at..)?.first_chunk::<2>()?;
            Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
        };
        let bytes = *tiff.get(4..)?.first_chunk::<4>()?;
        let begin = if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) };
        let begin = usize::try_from(begin).ok()?;
        let entries = (0..short(begin)?.min(ENTRIES_MAX)).filter_map(|number| {
            let at = begin.checked_add(2 + 12 * usize::from(number))?;
            (short(at)? == ORIENTATION && short(at + 2)? == SHORT).then(|| short(at + 8))
        });
        let value = entries.flatten().next().and_then(|value| u8::try_from(value).ok())?;
        (2..=8).contains(&value).then_some(Self(value))
    }

    /// Returns metadata with nothing but this orientation.
    pub(crate) fn tiff(self) -> [u8; 26] {
        let mut tiff = *b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x01\0\0\0\0\0\0";
        if let Some(value) = tiff.get_mut(19) {
            *value = self.0;
        }
        tiff
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_are_read_and_the_usual_orientation_is_none() {
        for value in 2..=8 {
            let tiff = Orientation(value).tiff();
            assert_eq!(Orientation::read(&tiff), Some(Orientation(value)));
            let little =
                b"II\x2a\0\x08\0\0\0\x02\0\x0f\x01\x02\0\x04\0\0\0abc\0\x12\x01\x03\0\x01\0\0\0";
            let little = [&little[..], &[value, 0, 0, 0, 0, 0, 0, 0]].concat();
            assert_eq!(Orientation::read(&little), Some(Orientation(value)));
            for len in 0..tiff.len() {
                let _ = Orientation::read(&tiff[..len]);
                let _ = Orientation::read(&little[..len]);
            }
        }
        for value in [0, 1, 9] {
            assert_eq!(Orientation::read(&Orientation(value).tiff()), None);
        }
        assert_eq!(Orientation::read(b""), None);
        assert_eq!(Orientation::read(b"MM\0\x2a\xff\xff\xff\xff"), None);
    }
}
