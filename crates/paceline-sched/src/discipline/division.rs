//! Division by a small number without dividing.
//!
//! Windows are short, and a division is the longest of all instructions that a decision would have:
//! ranks are what it computes last and what the next decision waits for. So the reciprocals are kept.

/// Greater divisors are divided by.
const TABLE: usize = 256;

/// ⌊(2^64 − 1) / d⌋ of each d; that of 0 is not read.
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

/// `n ÷ d` and what remains. `d` is not 0; if it were, the answer would mean nothing.
#[inline(always)]
pub(super) fn divide(n: u64, d: u32) -> (u64, u64) {
    let Some(reciprocal) = RECIPROCALS.get(d as usize) else {
        return (n / u64::from(d), n % u64::from(d));
    };
    // 2^64/d is at most 1 above the reciprocal, so the estimate is at most 1 below the quotient; of the
    // product only the upper half counts, which a u64 holds.
    let estimate = ((u128::from(n) * u128::from(*reciprocal)) >> 64) as u64;
    let rest = n - estimate * u64::from(d);
    // A branch: what follows need not wait for the correction where it is guessed.
    if rest >= u64::from(d) { (estimate + 1, rest - u64::from(d)) } else { (estimate, rest) }
}

/// ⌊x · 2^40 ÷ d⌋ of x ≤ d, both below 2^20: what the shorter reciprocal gives needs no correction.
///
/// The reciprocal ⌈2^56 ÷ d⌉ is less than 1 too great, so x times it is too great by less than x, and in
/// units of 2^16 by less than 1/d, since x · d < 2^16. What ⌊⌋ takes off is a multiple of 1/d below 1: it
/// cannot be crossed.
#[inline(always)]
pub(super) fn fraction(x: u64, d: u32) -> u64 {
    let Some(reciprocal) = RECIPROCALS.get(d as usize) else {
        return (x << 40) / u64::from(d);
    };
    (x * ((reciprocal >> 8) + 1)) >> 16
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
    fn it_divides_as_division_does() {
        let mut random = 1u64;
        for d in 1..1_000u32 {
            let exact =
                |n: u64| assert_eq!(divide(n, d), (n / u64::from(d), n % u64::from(d)), "{n}/{d}");
            for x in 0..=u64::from(d) {
                exact(x << 40);
                exact(x);
                exact(u64::MAX - x);
            }
            for _ in 0..1_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let n = random >> (random % 64);
                exact(n);
                exact(n / u64::from(d) * u64::from(d));
                exact((n / u64::from(d) * u64::from(d)).saturating_sub(1));
            }
        }
    }
}
