//! Division by a small number through precomputed reciprocals.
//!
//! Windows are short, so the divisors are small. A division would be the slowest instruction of a
//! decision: the rank is computed last, and the next decision depends on it.

/// The size of the table; larger divisors use a division.
const TABLE: usize = 256;

/// ⌊(2^64 − 1) / d⌋ for each d; the entry for 0 is never read.
static RECIPROCALS: [u64; TABLE] = reciprocals();

#[expect(clippy::indexing_slicing, reason = "computed by the compiler, which checks it")]
const fn reciprocals() -> [u64; TABLE] {
    let mut table = [0; TABLE];
    let mut divisor = 1;
    while divisor < TABLE {
        table[divisor] = u64::MAX / divisor as u64;
        divisor += 1;
    }
    table
}

/// Returns ⌊x · 2^40 ÷ d⌋ for x ≤ d, both below 2^20. The shorter reciprocal needs no correction.
///
/// The reciprocal ⌈2^56 ÷ d⌉ is too large by less than 1, so x times it is too large by less than x. In
/// units of 2^16 the error is below 1/d, since x · d < 2^16. The fraction that ⌊⌋ removes is a multiple
/// of 1/d below 1, so the error cannot cross it.
#[inline(always)]
pub(super) fn fraction(x: u64, d: u32) -> u64 {
    let Some(reciprocal) = RECIPROCALS.get(d as usize) else {
        return (x << 40) / u64::from(d);
    };
    (x * ((reciprocal >> 8) + 1)) >> 16
}

/// ⌊2^104 / d⌋ + 1 for each d; 0 for 0.
static LONG_RECIPROCALS: [u128; TABLE] = long_reciprocals();

#[expect(clippy::indexing_slicing, reason = "computed by the compiler, which checks it")]
const fn long_reciprocals() -> [u128; TABLE] {
    let mut table = [0; TABLE];
    let mut divisor = 1;
    while divisor < TABLE {
        table[divisor] = (1 << 104) / divisor as u128 + 1;
        divisor += 1;
    }
    table
}

/// Returns ⌊x · 2^40 ÷ d⌋ for x below 2^56 and d below 256, 0 for d = 0, and `None` otherwise.
///
/// As with [`fraction`]: x times the reciprocal, in units of 2^64, is too large by at most x · 2^-64,
/// which is below 1/d. The two products are independent, so the processor can compute them in parallel.
#[inline(always)]
pub(super) fn parts(x: u64, d: u32) -> Option<u128> {
    let reciprocal = *LONG_RECIPROCALS.get(d as usize)?;
    if x >> 56 != 0 {
        return None;
    }
    let (upper, lower) = (reciprocal >> 64, reciprocal & u128::from(u64::MAX));
    Some(u128::from(x) * upper + ((u128::from(x) * lower) >> 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_exact() {
        for d in (1..1_000).chain([4_095, 4_096, (1 << 20) - 1]) {
            for x in (0..=u64::from(d).min(2_000)).chain([u64::from(d) - 1, u64::from(d)]) {
                assert_eq!(fraction(x, d), (x << 40) / u64::from(d), "{x}/{d}");
            }
        }
    }

    #[test]
    fn parts_are_exact() {
        let mut random = 1u64;
        for d in 1..256u32 {
            let exact = |x: u64| {
                let expected = (u128::from(x) << 40) / u128::from(d);
                assert_eq!(parts(x, d), Some(expected), "{x}/{d}");
            };
            let most = (1 << 56) - 1;
            for x in 0..=2 * u64::from(d) {
                exact(x);
                exact(x << 40);
                exact(most - x);
            }
            for _ in 0..1_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let x = random >> (8 + random % 56);
                exact(x);
                exact(x / u64::from(d) * u64::from(d));
                exact((x / u64::from(d) * u64::from(d)).saturating_sub(1));
            }
            assert_eq!(parts(most + 1, d), None);
        }
        assert_eq!((parts(1, 256), parts(1, u32::MAX)), (None, None));
    }
}
