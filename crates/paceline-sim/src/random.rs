//! A deterministic random generator.

/// A small random generator (SplitMix64) that its seed determines completely.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the generator of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        let drawn = self.next();
        if bound == 0 { 0 } else { drawn % bound }
    }

    /// Returns one of `these`, or `None` if there are none.
    pub fn one_of<T: Copy>(&mut self, these: &[T]) -> Option<T> {
        these.get(self.place(these.len())).copied()
    }

    /// Returns an index below `len`, or 0 if `len` is 0.
    pub fn place(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }

    /// Returns true with a probability of `ppm` in a million.
    pub const fn ppm(&mut self, ppm: u32) -> bool {
        self.below(1_000_000) < ppm as u64
    }

    /// Returns true with a probability of `per_mille` in a thousand.
    pub const fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1_000) < per_mille as u64
    }
}
