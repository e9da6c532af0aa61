//! A 128-bit number with the alignment of a 64-bit one.

/// Like a [`u128`], but aligned like a [`u64`], so that a struct with such a field is not padded to
/// sixteen bytes.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Wide {
    // The derived order compares fields in declaration order, so the high half must be first.
    high: u64,
    low: u64,
}

impl Wide {
    pub(crate) const ZERO: Self = Self::new(0);
    pub(crate) const MAX: Self = Self::new(u128::MAX);

    #[expect(clippy::cast_possible_truncation, reason = "each half is kept")]
    pub(crate) const fn new(number: u128) -> Self {
        Self { high: (number >> 64) as u64, low: number as u64 }
    }

    pub(crate) const fn get(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_number_keeps_its_value_and_order() {
        let numbers =
            [0, 1, u128::from(u64::MAX), 1 << 64, (1 << 64) + 1, u128::MAX - 1, u128::MAX];
        for a in numbers {
            assert_eq!(Wide::new(a).get(), a);
            for b in numbers {
                assert_eq!(Wide::new(a).cmp(&Wide::new(b)), a.cmp(&b));
            }
        }
        assert_eq!((Wide::ZERO.get(), Wide::MAX.get()), (0, u128::MAX));
        assert_eq!((size_of::<Wide>(), align_of::<Wide>()), (16, align_of::<u64>()));
    }
}
