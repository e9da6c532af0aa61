//! The interface between a discipline and the core: ranks of heads and adjustment of windows.

use super::stream::{Clauses, Stream};
use super::{StreamIndex, Terms, WindowState};
use crate::contract::LossTolerance;
use crate::time::{Duration, Instant};
use crate::tournament::Tournament;
use core::fmt::Debug;

/// The two highest bits of a rank are the class; the discipline orders heads within a class by the
/// others.
pub(super) const CLASS: u32 = 126;
/// Returns a rank in class 0, for heads that are owed service. `order` has 126 bits.
pub(super) const fn owed(order: u128) -> u128 {
    order & ((1 << CLASS) - 1)
}

/// Returns a rank in class 1, for heads that are owed nothing now.
pub(super) const fn spare(order: u128) -> u128 {
    owed(order) | 1 << CLASS
}

/// The circumstances of a head's arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The stream of the head.
    pub(super) index: StreamIndex,
    /// The preceding head was sent just now, so the stream has been backlogged without interruption.
    pub(super) follows: bool,
    pub(super) arrived: Instant,
    /// The beginning of its period if the head waits for that; otherwise as `arrived`.
    pub(super) released: Instant,
    /// The time from release to deadline, if the stream has a contract.
    pub(super) due: Duration,
    /// The number of heads announced on this link before this one.
    pub(super) serial: u64,
    /// True if the head is sent in one segment.
    pub(super) whole: bool,
}

/// The rules of one discipline. Most methods do nothing by default.
pub(super) trait Rules: Debug {
    /// The discipline's state of each stream.
    type Own: Clone + Debug;
    /// Whether [`Self::reconsider`] may change the rank of a winner.
    const RECONSIDERS: bool = false;

    /// Reserves memory for the streams 0 to `streams` − 1.
    fn reserve(&mut self, _streams: usize) {}
    /// Returns the state of a stream that joins.
    fn open(&mut self, terms: &Terms) -> Self::Own;
    /// Handles a new head, before it is ranked for the first time.
    fn announced(&mut self, _stream: &mut Stream<Self::Own>, _arrival: Arrival) {}
    /// Handles a head whose period begins later by `over`.
    fn postpone(&mut self, _own: &mut Self::Own, _over: Duration) {}
    /// Returns the first instant from which the present head is missed, or is [late to begin](Self::handle_late_begin).
    #[inline]
    fn expires_at(&self, stream: &Stream<Self::Own>, _clauses: &Clauses) -> Instant {
        stream.missed_at()
    }
    /// Handles the instant of [`Self::expires_at`]. Returns true if the head is not missed yet, but ranks behind others
    /// from now on.
    #[inline]
    fn handle_late_begin(&mut self, _stream: &mut Stream<Self::Own>) -> bool {
        false
    }
    /// Returns the rank of a head that begins to compete, or that competes already and has changed:
    /// [`owed`] or [`spare`]. `None` places it in the round robin.
    fn rank(&mut self, stream: &mut Stream<Self::Own>) -> Option<u128>;
    /// Handles a head that was served by its deadline.
    fn met(&mut self, _own: &mut Self::Own, _loss: LossTolerance) {}
    /// Handles the passing of `deadlines` deadlines of the head, one or more.
    fn missed(&mut self, _own: &mut Self::Own, _loss: LossTolerance, _deadlines: u64) {}
    /// Handles a segment of `bytes` of a ranked head that was sent. Returns the new rank, if the head
    /// has more segments and the rank changed.
    ///
    /// [`Stream::has_head`] returns whether the head has more segments.
    fn sent(&mut self, _stream: &mut Stream<Self::Own>, _bytes: u32) -> Option<u128> {
        None
    }
    /// Handles a stream that has no head any more, when none followed at once.
    fn emptied(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// Handles the suspension of a stream, with or without a head.
    fn suspended(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// Handles the resumption of a stream; its head, if it has one, is ranked next.
    fn resumed(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// Handles a stream that leaves, together with its head.
    fn closed(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// Reconsiders the winner before it is served. `Some` changes its rank and selects again.
    ///
    /// Called only if [`Self::RECONSIDERS`].
    fn reconsider(&mut self, _stream: &mut Stream<Self::Own>) -> Option<u128> {
        None
    }
    /// Updates the ranks that have changed by `now`, before a pick.
    fn prepare(
        &mut self,
        _now: Instant,
        _streams: &mut [Option<Stream<Self::Own>>],
        _ranks: &mut Tournament<u128>,
    ) {
    }
    /// Returns the instant at which time alone next changes the pick, apart from releases and misses.
    fn next_change(&self, _now: Instant) -> Option<Instant> {
        None
    }
    /// Returns the instant by which a competing head should be served before others.
    fn virtual_deadline(&self, stream: &Stream<Self::Own>) -> Instant {
        stream.deadline
    }
    /// Returns the state of the stream's window.
    fn window(&self, stream: &Stream<Self::Own>) -> WindowState {
        stream.account.state()
    }
}
