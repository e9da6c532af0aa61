//! Deterministic mutations of seed inputs: the same number gives the same bytes on every machine.

/// A xorshift generator.
#[derive(Clone, Debug)]
pub struct Xorshift(u64);

impl Xorshift {
    /// Creates the generator of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // Adjacent seeds must not give similar runs. The state must not be 0, its fixed point.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns the next 64 bits.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let high = usize::try_from(self.next() >> 32).unwrap_or_default();
        if bound == 0 { 0 } else { high % bound }
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }
}

/// The longest mutated input, in bytes.
const BYTES_MAX: usize = 1 << 16;

/// Returns `seed` with one to four mutations, which may splice in parts of `other`.
#[must_use]
pub fn mutate(seed: &[u8], other: &[u8], chance: &mut Xorshift) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=chance.below(4) {
        once(&mut bytes, other, chance);
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

fn once(bytes: &mut Vec<u8>, other: &[u8], chance: &mut Xorshift) {
    let len = bytes.len();
    let at = chance.below(len);
    let end = at + chance.below((len - at).min(40) + 1);
    match chance.below(10) {
        0..3 if len > 0 => bytes[at] ^= 1 << chance.below(8),
        3 if len > 0 => bytes[at] = chance.byte(),
        4 => bytes.truncate(at),
        5 => drop(bytes.drain(at..end)),
        6 => {
            let run = vec![0xff; 1 + chance.below(12)];
            bytes.splice(at..at, run);
        }
        7 => {
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        8 if !other.is_empty() => {
            let from = chance.below(other.len());
            let piece = &other[from..from + chance.below(other.len() - from + 1)];
            bytes.splice(at..end, piece.iter().copied());
        }
        _ => {
            let value = [0, 1, 0x7f, 0x80, 0xff, 0x0f][chance.below(6)];
            bytes.insert(at, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_others_give_others() {
        let seed: Vec<u8> = (0..100).collect();
        let run = |number| mutate(&seed, b"other", &mut Xorshift::new(number));
        let all: Vec<_> = (0..200).map(run).collect();
        assert_eq!(all, (0..200).map(run).collect::<Vec<_>>());
        let different: std::collections::BTreeSet<_> = all.iter().collect();
        assert!(different.len() > 150, "{}", different.len());
        assert!(mutate(&[], &[], &mut Xorshift::new(3)).len() < 50);
    }
}
