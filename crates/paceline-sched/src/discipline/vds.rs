//! Virtual deadline scheduling (Zhang, West & Qi, RTSS 2004), with windows counted in samples.
//!
//! A window of k' samples that still owes m' services spreads them evenly over its k' periods: the
//! next is due k'/m' periods after the present one began, Vd = d − T + k'·T/m'. A stream that may
//! still miss much has a far virtual deadline, one that may miss nothing has its own.
//!
//! The paper counts k' in periods. Here each sample has its period, so k' and m' are what the judge of
//! the promise counts anyway, and an idle stream does not use up its window. After misses m' may exceed
//! k'; the formula then puts Vd before d, which is what a violated stream needs.

use super::Terms;
use super::division::parts;
use super::rules::{Rules as CoreRules, owed, spare};
use super::stream::{Account, Stream};
use crate::contract::LossTolerance;
use crate::time::Instant;

/// Bits of a virtual deadline behind the point, as [`parts`] has them: exact, since m' has less than half of them.
const FRACTION: u32 = 2 * LossTolerance::Y_BITS;
/// Added to virtual deadlines, which may lie before the origin of the clock.
const ORIGIN: u128 = 1 << 64;
/// The last virtual deadline; one so far away is as good as any other.
const LAST: u128 = (1 << (126 - FRACTION)) - 1;

/// Earliest virtual deadline first; then whoever is owed nothing, earliest deadline first.
#[derive(Clone, Debug)]
pub(super) struct Rules;

impl CoreRules for Rules {
    type Own = ();

    fn open(&mut self, _: &Terms) {}

    #[inline(always)]
    fn rank(&mut self, stream: &mut Stream<()>) -> Option<u128> {
        if stream.contracted() { Some(rank(stream)) } else { None }
    }

    fn virtual_deadline(&self, stream: &Stream<()>) -> Instant {
        let Account { left, owes } = stream.account;
        match (left, owes) {
            (0, 0) => stream.deadline,
            (_, 0) => Instant::FAR,
            _ => {
                stream.deadline - stream.period()
                    + stream.period().mul_div(left.into(), owes.into())
            }
        }
    }
}

#[inline(always)]
fn rank(stream: &Stream<()>) -> u128 {
    let deadline = u128::from(stream.deadline.as_nanos());
    let Account { left, owes } = stream.account;
    if owes == 0 {
        // 0/0 has no window to spread services over: plain EDF.
        return if left == 0 { owed((ORIGIN + deadline) << FRACTION) } else { spare(deadline) };
    }
    let period = stream.period().as_nanos();
    let begins = ORIGIN + deadline - u128::from(period);
    let spread = period.checked_mul(u64::from(left));
    // What is added last is what is known last.
    match spread.and_then(|spread| parts(spread, owes)) {
        Some(parts) => (begins << FRACTION) + parts,
        None => far(begins, u128::from(period) * u128::from(left), owes),
    }
}

/// As [`rank`], of windows that last for years or owe very much.
#[cold]
#[inline(never)]
fn far(begins: u128, spread: u128, owes: u32) -> u128 {
    let (whole, rest) = (spread / u128::from(owes), spread % u128::from(owes));
    let whole = (begins + whole).min(LAST);
    owed((whole << FRACTION) | ((rest << FRACTION) / u128::from(owes)))
}
