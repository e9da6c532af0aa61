//! Rotating priority queues (Liebeherr & Wrege, INFOCOM 1994; Wrege & Liebeherr, INFOCOM 1997): earliest deadline
//! first with first-in-first-out queues, without sorting.
//!
//! A sample enters the queue of its relative deadline. After each [`Rpq::ROTATION`] every queue becomes the next more
//! urgent one. So samples are ordered by deadlines that are rounded to rotations, and by release within one rotation.
//!
//! In the paper a fixed number of queues rotates, and the most urgent one must be empty by the next rotation. Here queues
//! are numbered by the rotation in which they become the most urgent one, so that late samples keep their order.

use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;
use super::{Rpq, Terms};
use crate::time::{Duration, Instant};

impl Rpq {
    /// The time between two rotations.
    ///
    /// Admission plans with deadlines that are rounded down to whole rotations, and one rotation shorter.
    pub const ROTATION: Duration = Duration::from_micros(500);

    /// Returns the queue of a relative deadline: the number of whole rotations in it.
    #[must_use]
    pub const fn queue(deadline: Duration) -> u64 {
        deadline.as_nanos() / Self::ROTATION.as_nanos()
    }
}

/// Orders heads by the rotation in which they are due, and by release within it.
#[derive(Clone, Debug)]
pub(super) struct Rules;

/// The queue of a stream, and the release of its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotating {
    queue: u64,
    released: Instant,
}

impl CoreRules for Rules {
    type Own = Rotating;

    fn open(&mut self, terms: &Terms) -> Rotating {
        let deadline = terms.contract().map_or(Duration::ZERO, |contract| contract.deadline);
        Rotating { queue: Rpq::queue(deadline), released: Instant::ZERO }
    }

    #[inline]
    fn announced(&mut self, stream: &mut Stream<Rotating>, Arrival { released, .. }: Arrival) {
        stream.own.released = released;
    }

    fn postpone(&mut self, own: &mut Rotating, over: Duration) {
        own.released += over;
    }

    #[inline]
    fn rank(&mut self, stream: &mut Stream<Rotating>) -> Option<u128> {
        let Rotating { queue, released } = stream.own;
        // Both are below 2^46, so the rank has less than 126 bits.
        let rotation = released.as_nanos() / Rpq::ROTATION.as_nanos() + queue;
        let order = u128::from(rotation) << 64 | u128::from(released.as_nanos());
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
        served(Policy::Rpq, now, streams)
    }

    #[test]
    fn rotations_order_samples_by_rounded_deadlines_and_then_by_release() {
        let (us, at) = (Duration::from_micros, |micros: u64| Instant::from_nanos(micros * 1_000));
        // All in the queue of rotation 4, except the first (5): in order of release, although the second is due last.
        let streams = [
            (us(1_500), at(1_000)),
            (us(2_499), at(1)),
            (us(1_600), at(700)),
            (us(1_500), at(500)),
        ];
        assert_eq!(order(at(1_100), &streams), [1, 3, 2, 0]);
        assert_eq!(Rpq::queue(us(499)), 0);
    }
}
