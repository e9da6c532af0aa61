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
#[inline]
pub(super) fn divide(n: u64, d: u32) -> (u64, u64) {
    let Some(reciprocal) = RECIPROCALS.get(d as usize) else {
        return (n / u64::from(d), n % u64::from(d));
    };
    // 2^64/d is at most 1 above the reciprocal, so the estimate is at most 1 below the quotient; of the
    // product only the upper half counts, which a u64 holds.
    let estimate = ((u128::from(n) * u128::from(*reciprocal)) >> 64) as u64;
    let rest = n - estimate * u64::from(d);
    if rest >= u64::from(d) { (estimate + 1, rest - u64::from(d)) } else { (estimate, rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
