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
use super::rules::{Arrival, Rules as CoreRules, owed, spare};
use super::stream::{Account, Clauses, Stream};
use crate::contract::{Late, LossTolerance};
use crate::time::{Duration, Instant};

/// The number of fraction bits of a virtual deadline, as returned by [`parts`]. The fraction is exact,
/// since m' has less than half as many bits.
const FRACTION: u32 = 2 * LossTolerance::Y_BITS;
/// The offset added to virtual deadlines, which may lie before the origin of the clock.
const ORIGIN: u128 = 1 << 64;
/// The latest representable virtual deadline; later ones saturate.
const LAST: u128 = (1 << (126 - FRACTION)) - 1;

/// The progress of the head of a stream that begins early ([`Terms::begins_early`]): one of the constants, or the time
/// before its deadline by which it must begin.
///
/// The virtual deadline of a sample that may be missed can be later than its deadline. If the discipline preferred others
/// after the first segment, the deadline could pass, and the time of that segment, which is that of the owed samples,
/// would be wasted. So a head of several segments that begins in the first eighth of its time is due by its own
/// deadline from then on, for which admission reserves time (`paceline-admit/src/owed.rs`). After that eighth it ranks behind all
/// samples that are owed, and is missed when the period of the next sample of its stream begins. The paper's samples
/// have one segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Lead(Duration);

impl Lead {
    /// The stream does not begin early.
    const NEVER: Self = Self(Duration::ZERO);
    /// The head has one segment.
    const WHOLE: Self = Self(Duration::from_nanos(1));
    /// The head has begun in time. No deadline is as long as this.
    const BEGUN: Self = Self(Duration::MAX);
    /// The head has not begun in time.
    const LATE: Self = Self(Duration::from_nanos(u64::MAX - 1));

    fn new(due: Duration) -> Self {
        Self(due.mul_div(7, 8).clamp(Duration::from_nanos(2), Duration::from_nanos(u64::MAX / 2)))
    }

    /// Returns the time before its deadline by which the head must begin, if it still can.
    fn time(self) -> Option<Duration> {
        let constant = matches!(self, Self::NEVER | Self::WHOLE | Self::BEGUN | Self::LATE);
        (!constant).then_some(self.0)
    }
}

/// Orders heads by virtual deadline, and then heads that are owed nothing by deadline.
#[derive(Clone, Debug)]
pub(super) struct Rules;

impl CoreRules for Rules {
    type Own = Lead;

    fn open(&mut self, terms: &Terms) -> Lead {
        let tolerates = terms
            .contract()
            .is_some_and(|contract| contract.late == Late::Drop && contract.loss.x() > 0);
        if terms.begins_early && tolerates { Lead::WHOLE } else { Lead::NEVER }
    }

    #[inline]
    fn announced(&mut self, stream: &mut Stream<Lead>, Arrival { due, whole, .. }: Arrival) {
        if stream.own != Lead::NEVER {
            stream.own = if whole { Lead::WHOLE } else { Lead::new(due) };
        }
    }

    #[inline]
    fn expires_at(&self, stream: &Stream<Lead>, clauses: &Clauses) -> Instant {
        let missed = stream.missed_at();
        if stream.own == Lead::NEVER || !stream.account.can_miss() {
            return missed;
        }
        match stream.own {
            Lead::LATE => missed.min(stream.follower_at(clauses)),
            own => own.time().map_or(missed, |lead| missed.min(stream.too_late_for(lead))),
        }
    }

    fn handle_late_begin(&mut self, stream: &mut Stream<Lead>) -> bool {
        let late = stream.own.time().is_some() && stream.account.can_miss();
        if late {
            stream.own = Lead::LATE;
        }
        late
    }

    fn sent(&mut self, stream: &mut Stream<Lead>, _: u32) -> Option<u128> {
        let begins = stream.own.time().is_some() && stream.account.owes > 0;
        if !begins || !stream.has_head() {
            return None;
        }
        stream.own = Lead::BEGUN;
        Some(rank(stream))
    }

    #[inline(always)]
    fn rank(&mut self, stream: &mut Stream<Lead>) -> Option<u128> {
        if stream.contracted() { Some(rank(stream)) } else { None }
    }

    fn virtual_deadline(&self, stream: &Stream<Lead>) -> Instant {
        let Account { left, owes } = stream.account;
        match (left, owes) {
            (0, 0) => stream.deadline,
            (_, 0) => Instant::FAR,
            _ if stream.own == Lead::LATE && owes < left => Instant::FAR,
            _ if stream.own == Lead::BEGUN && owes < left => stream.deadline,
            _ => {
                stream.deadline - stream.period()
                    + stream.period().mul_div(left.into(), owes.into())
            }
        }
    }
}

#[inline(always)]
fn rank(stream: &Stream<Lead>) -> u128 {
    let deadline = u128::from(stream.deadline.as_nanos());
    let Account { left, owes } = stream.account;
    if owes == 0 && left > 0 || stream.own == Lead::LATE && owes < left {
        return spare(deadline);
    }
    // 0/0 has no window over which to spread services: plain EDF.
    if owes == 0 || stream.own == Lead::BEGUN && owes < left {
        return owed((ORIGIN + deadline) << FRACTION);
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
