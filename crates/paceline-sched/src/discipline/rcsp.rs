//! Rate-controlled static priority (Zhang & Ferrari, INFOCOM 1993).
//!
//! A regulator releases the samples of each stream one period apart
//! ([`Eligibility::OncePerPeriod`](super::Eligibility::OncePerPeriod)), so no stream can delay others by a burst. The
//! released samples wait in a few levels with a delay bound each, and the lowest level is served first. The bounds
//! are the powers of two of a nanosecond, and a stream is on the last level whose bound its deadline permits.
//!
//! In the paper a link may idle while samples wait in the regulator. Here they are sent when no released one waits, as
//! with the paper's standby queue for links that conserve work.

use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;
use super::{Rcsp, Terms};
use crate::time::{Duration, Instant};

impl Rcsp {
    /// Returns the level of a stream with this relative deadline: level `n` guarantees a delay of at most 2^n ns.
    /// A deadline of 0 counts as 1 ns.
    #[must_use]
    pub const fn level(deadline: Duration) -> u32 {
        63 - (deadline.as_nanos() | 1).leading_zeros()
    }
}

/// Orders heads by level, lowest first, and by release within a level.
#[derive(Clone, Debug)]
pub(super) struct Rules;

/// The level of a stream, and the release of its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regulated {
    level: u32,
    released: Instant,
}

impl CoreRules for Rules {
    type Own = Regulated;

    fn open(&mut self, terms: &Terms) -> Regulated {
        let deadline = terms.contract().map_or(Duration::ZERO, |contract| contract.deadline);
        Regulated { level: Rcsp::level(deadline), released: Instant::ZERO }
    }

    #[inline]
    fn announced(&mut self, stream: &mut Stream<Regulated>, Arrival { released, .. }: Arrival) {
        stream.own.released = released;
    }

    fn postpone(&mut self, own: &mut Regulated, over: Duration) {
        own.released += over;
    }

    #[inline]
    fn rank(&mut self, stream: &mut Stream<Regulated>) -> Option<u128> {
        let Regulated { level, released } = stream.own;
        let order = u128::from(level) << 64 | u128::from(released.as_nanos());
        stream.contracted().then(|| owed(order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Policy;
    use crate::discipline::tests::served;
    use std::vec::Vec;

    fn order(now: Instant, streams: &[(Duration, Instant)]) -> Vec<u32> {
        served(Policy::Rcsp, now, streams)
    }

    #[test]
    fn a_level_is_the_last_one_whose_bound_the_deadline_permits() {
        let levels =
            [0, 1, 2, 3, 4, 1_023, 1_024, u64::MAX].map(Duration::from_nanos).map(Rcsp::level);
        assert_eq!(levels, [0, 0, 1, 1, 2, 9, 10, 63]);
    }

    #[test]
    fn levels_precede_each_other_and_a_level_is_served_in_order_of_release() {
        let (ms, at) = (Duration::from_millis, Instant::from_millis);
        // 9 ms and 16 ms are on one level (8.4 ms), and 17 ms on the next one (16.8 ms).
        let streams = [(ms(17), at(1)), (ms(16), at(3)), (ms(9), at(4)), (ms(8), at(5))];
        assert_eq!(order(at(6), &streams), [3, 1, 2, 0]);
    }
}
