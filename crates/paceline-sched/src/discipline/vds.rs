//! Virtual deadline scheduling (Zhang, West & Qi, RTSS 2004), with windows counted in samples.
//!
//! A window of k' samples that still owes m' services spreads them evenly over its k' periods: the
//! next is due k'/m' periods after the present one began, Vd = d − T + k'·T/m'. A stream that may
//! still miss much has a far virtual deadline, one that may miss nothing has its own.
//!
//! The paper counts k' in periods. Here each sample has its period, so k' and m' are what the judge of
//! the promise counts anyway, and an idle stream does not use up its window. After misses m' may exceed
//! k'; the formula then puts Vd before d, which is what a violated stream needs.

use super::WindowState;
use super::scheduler::{Arrival, Ranking};
use super::stream::Promise;
use crate::contract::LossTolerance;
use crate::time::Instant;
use core::cmp::Ordering;

/// Earliest virtual deadline first; then whoever is owed nothing, earliest deadline first.
#[derive(Clone, Debug)]
pub(super) struct Rules;

/// The order of heads. The variants are the classes 0 and 1 of a pick.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Key {
    Owed(VirtualDeadline),
    Spare(Instant),
}

impl Ranking for Rules {
    type Key = Key;
    type Window = ();

    fn open(_: LossTolerance) {}

    fn rank(_: Arrival, promise: Option<&Promise<()>>) -> Option<Key> {
        promise.map(key)
    }

    fn state(promise: &Promise<()>) -> WindowState {
        promise.account.state(promise.contract.loss)
    }
}

fn key(promise: &Promise<()>) -> Key {
    let loss = promise.contract.loss;
    if loss.y() == 0 {
        // 0/0 has no window to spread services over: plain EDF, as k' = m' would give.
        return Key::Owed(VirtualDeadline::new(promise, 1, 1));
    }
    match promise.account.owed(loss) {
        0 => Key::Spare(promise.deadline),
        owed => Key::Owed(VirtualDeadline::new(promise, promise.account.left(loss), owed)),
    }
}

/// An exact instant in nanoseconds, `whole + rest / parts` with `rest < parts`. Kept in two, because
/// the cross-multiplied sum would need 129 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualDeadline {
    /// Signed: a virtual deadline may lie before the origin of the clock.
    whole: i128,
    rest: u64,
    parts: u32,
}

impl VirtualDeadline {
    /// d − T + `left`·T/`owed`; `owed` is not zero.
    fn new(promise: &Promise<()>, left: u32, owed: u32) -> Self {
        let period = i128::from(promise.contract.period.as_nanos());
        let deadline = i128::from(promise.deadline.as_nanos());
        let spread = i128::from(left) * period;
        let rest = spread % i128::from(owed);
        Self {
            whole: deadline - period + spread / i128::from(owed),
            rest: u64::try_from(rest).unwrap_or_default(),
            parts: owed,
        }
    }
}

impl Ord for VirtualDeadline {
    fn cmp(&self, other: &Self) -> Ordering {
        // Both rests are below 2^32, so the products fit.
        let mine = self.rest * u64::from(other.parts);
        let theirs = other.rest * u64::from(self.parts);
        self.whole.cmp(&other.whole).then(mine.cmp(&theirs))
    }
}

impl PartialOrd for VirtualDeadline {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for VirtualDeadline {
    /// The same instant, however it is divided: 1/2 is 2/4.
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for VirtualDeadline {}
