//! Earliest deadline first, relative to release or to the contract's clock.

use super::Terms;
use super::rules::{Arrival, Rules as CoreRules, owed};
use super::stream::Stream;
use crate::time::{Duration, Instant};

/// EDF: the deadline of a sample is its release plus the relative deadline. A sample is released when it arrives,
/// or when its period begins if it must wait for that, as in a rate-controlled link with an EDF scheduler
/// (Georgiadis, Guérin, Peris & Sivarajan 1996).
#[derive(Clone, Debug)]
pub(super) struct ByRelease;

impl CoreRules for ByRelease {
    /// The deadline of the head.
    type Own = Instant;

    fn open(&mut self, _: &Terms) -> Instant {
        Instant::FAR
    }

    #[inline]
    fn announced(&mut self, stream: &mut Stream<Instant>, arrival: Arrival) {
        stream.own = arrival.released + arrival.due;
    }

    fn postpone(&mut self, own: &mut Instant, over: Duration) {
        *own += over;
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
