//! Earliest deadline first, relative to arrival or to the contract's clock.

use super::Terms;
use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;
use crate::time::Instant;

/// EDF: the deadline of a sample is its arrival plus the relative deadline, however early it arrives.
#[derive(Clone, Debug)]
pub(super) struct ByArrival;

impl CoreRules for ByArrival {
    /// The deadline of the head.
    type Own = Instant;

    fn open(&mut self, _: &Terms) -> Instant {
        Instant::FAR
    }

    #[inline]
    fn announced(&mut self, stream: &mut Stream<Instant>, arrival: Arrival) {
        stream.own = arrival.arrived + arrival.due;
    }

    #[inline]
    fn rank(&mut self, stream: &mut Stream<Instant>) -> Option<u128> {
        stream.contracted().then(|| owed(u128::from(stream.own.as_nanos())))
    }
}

/// Delay-EDD (Ferrari & Verma 1990): the deadline of a sample is relative to its arrival time under the
/// contract, so a sample that arrives early gains nothing.
#[derive(Clone, Debug)]
pub(super) struct ByContract;

impl CoreRules for ByContract {
    type Own = ();

    fn open(&mut self, _: &Terms) {}

    #[inline]
    fn rank(&mut self, stream: &mut Stream<()>) -> Option<u128> {
        stream.contracted().then(|| owed(u128::from(stream.deadline.as_nanos())))
    }
}
