//! Reading of single bits: of a NAL unit's payload, or of plain bytes.

/// Reads big-endian bits. Returns `None` at the end.
#[derive(Debug, Clone)]
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The number of zero bytes just before `at`.
    zeros: u8,
    byte: u8,
    left: u8,
    /// Emulation prevention bytes (00 00 03) are skipped.
    escaped: bool,
}

impl<'a> Bits<'a> {
    /// Returns the bits of a NAL unit's payload; emulation prevention bytes are skipped.
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self { bytes: payload, at: 0, zeros: 0, byte: 0, left: 0, escaped: true }
    }

    /// Returns all bits of `bytes`.
    pub(crate) fn plain(bytes: &'a [u8]) -> Self {
        Self { escaped: false, ..Self::new(bytes) }
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        if self.left == 0 {
            self.load()?;
        }
        self.left -= 1;
        Some(self.byte >> self.left & 1 == 1)
    }

    fn load(&mut self) -> Option<()> {
        if self.escaped && self.zeros >= 2 && self.bytes.get(self.at) == Some(&3) {
            self.at += 1;
            self.zeros = 0;
        }
        self.byte = *self.bytes.get(self.at)?;
        self.at += 1;
        self.zeros = if self.byte == 0 { self.zeros.saturating_add(1) } else { 0 };
        self.left = 8;
        Some(())
    }

    /// Reads `count` bits, at most 32.
    pub(crate) fn bits(&mut self, count: u8) -> Option<u32> {
        (0..count).try_fold(0_u32, |value, _| Some(value << 1 | u32::from(self.flag()?)))
    }

    /// Skips `count` bits.
    pub(crate) fn skip(&mut self, count: u32) -> Option<()> {
        (0..count).try_for_each(|_| self.flag().map(drop))
    }

    /// Reads an unsigned Exp-Golomb number, ue(v).
    pub(crate) fn ue(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        let rest = self.bits(zeros)?;
        (1_u32 << zeros).checked_add(rest)?.checked_sub(1)
    }

    /// Reads a signed Exp-Golomb number, se(v).
    pub(crate) fn se(&mut self) -> Option<i64> {
        let code = i64::from(self.ue()?);
        Some(if code % 2 == 0 { -(code / 2) } else { code / 2 + 1 })
    }
}

#[cfg(test)]
pub(crate) mod write;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_table_9_2_says() {
        // 1 010 011 00100 00101 00110 00111 0001000
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0010, 0b1001_1000, 0b1110_0010, 0]);
        let read: Vec<_> = std::iter::from_fn(|| bits.ue()).take(8).collect();
        assert_eq!(read, [0, 1, 2, 3, 4, 5, 6, 7]);
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        let read: Vec<_> = std::iter::from_fn(|| bits.se()).take(5).collect();
        assert_eq!(read, [0, 1, -1, 2, -2]);
    }

    #[test]
    fn emulation_prevention_bytes_are_skipped() {
        let mut bits = Bits::new(&[0, 0, 3, 1, 0, 0, 3]);
        assert_eq!(bits.bits(24), Some(1));
        assert_eq!(bits.bits(16), Some(0));
        assert_eq!(bits.flag(), None);
        assert_eq!(Bits::new(&[0, 3, 0]).bits(24), Some(0x300));
        assert_eq!(Bits::plain(&[0, 0, 3, 1]).bits(32), Some(0x301));
    }

    #[test]
    fn unterminated_numbers_are_errors() {
        assert_eq!(Bits::new(&[0; 100]).ue(), None);
        assert_eq!(Bits::new(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]).ue(), Some(u32::MAX - 1));
        assert_eq!(Bits::new(&[]).ue(), None);
    }
}
