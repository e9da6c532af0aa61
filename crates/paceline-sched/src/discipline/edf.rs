//! Earliest deadline first, by either of two clocks.

use super::Terms;
use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;
use crate::time::Instant;

/// EDF: a sample is due its relative deadline after it arrived, however early that was.
#[derive(Clone, Debug)]
pub(super) struct ByArrival;

impl CoreRules for ByArrival {
    /// When the head is due.
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

/// Delay-EDD (Ferrari & Verma 1990): a sample is due its relative deadline after the contract expected
/// it, so one that comes too early gains nothing.
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
