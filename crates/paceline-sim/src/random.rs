//! Chance that is the same in every run.

/// A small generator (SplitMix64): its seed decides everything.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if that is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        let drawn = self.next();
        if bound == 0 { 0 } else { drawn % bound }
    }

    /// One of these; `None` if there are none.
    pub fn one_of<T: Copy>(&mut self, these: &[T]) -> Option<T> {
        these.get(self.place(these.len())).copied()
    }

    /// A place below `len`; 0 if that is 0.
    pub fn place(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }

    /// True `ppm` times in a million.
    pub const fn ppm(&mut self, ppm: u32) -> bool {
        self.below(1_000_000) < ppm as u64
    }

    /// True `per_mille` times in a thousand.
    pub const fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1_000) < per_mille as u64
    }
}
