//! Virtual deadline scheduling (Zhang, West & Qi, RTSS 2004), with windows counted in samples.
//!
//! A window of k' remaining samples that owes m' services spreads them evenly over its k' periods. The
//! next service is due k'/m' periods after the beginning of the present period: Vd = d − T + k'·T/m'. A
//! stream that may still miss many samples has a distant virtual deadline. For one that may miss none,
//! Vd = d.
//!
//! The paper counts k' in periods. Here each sample has its own period, so k' and m' are the numbers of
//! the window account. An idle stream does not use up its window. After misses m' may exceed k'. The
//! formula then gives a Vd before d, which a violated stream needs.

use super::Terms;
use super::division::parts;
use super::rules::{Rules as CoreRules, owed, spare};
use super::stream::{Account, Stream};
use crate::contract::LossTolerance;
use crate::time::Instant;

/// The number of fraction bits of a virtual deadline, as returned by [`parts`]. The fraction is exact,
/// since m' has less than half as many bits.
const FRACTION: u32 = 2 * LossTolerance::Y_BITS;
/// The offset added to virtual deadlines, which may lie before the origin of the clock.
const ORIGIN: u128 = 1 << 64;
/// The latest representable virtual deadline; later ones saturate.
const LAST: u128 = (1 << (126 - FRACTION)) - 1;

/// Orders heads by virtual deadline, and then heads that are owed nothing by deadline.
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
        // 0/0 has no window over which to spread services: plain EDF.
        return if left == 0 { owed((ORIGIN + deadline) << FRACTION) } else { spare(deadline) };
    }
    let period = stream.period().as_nanos();
    let begins = ORIGIN + deadline - u128::from(period);
    let spread = period.checked_mul(u64::from(left));
    // The term with the longest latency is added last.
    match spread.and_then(|spread| parts(spread, owes)) {
        Some(parts) => (begins << FRACTION) + parts,
        None => far(begins, u128::from(period) * u128::from(left), owes),
    }
}

/// Computes the same as [`rank`] for windows that last for years or owe very many services.
#[cold]
#[inline(never)]
fn far(begins: u128, spread: u128, owes: u32) -> u128 {
    let (whole, rest) = (spread / u128::from(owes), spread % u128::from(owes));
    let whole = (begins + whole).min(LAST);
    owed((whole << FRACTION) | ((rest << FRACTION) / u128::from(owes)))
}
