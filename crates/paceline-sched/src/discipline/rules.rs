//! What a discipline says to the core: how heads rank, how a window changes.

use super::stream::Stream;
use super::{StreamIndex, Terms, WindowState};
use crate::contract::LossTolerance;
use crate::time::{Duration, Instant};
use crate::tournament::Tournament;
use core::fmt::Debug;

/// The two highest bits of a rank are the class, the others are the discipline's within its classes.
pub(super) const CLASS: u32 = 126;
/// A rank in class 0: heads that are owed service. `order` has 126 bits.
pub(super) const fn owed(order: u128) -> u128 {
    order & ((1 << CLASS) - 1)
}

/// A rank in class 1: heads that are owed nothing now.
pub(super) const fn spare(order: u128) -> u128 {
    owed(order) | 1 << CLASS
}

/// How a head came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Whose head it is.
    pub(super) index: StreamIndex,
    /// The head before it left just now: the stream has been backlogged without a break.
    pub(super) follows: bool,
    pub(super) arrived: Instant,
    /// Time from its release to its deadline, if it has a contract.
    pub(super) due: Duration,
    /// How many heads were announced on this link before it.
    pub(super) serial: u64,
}

/// The rules of one discipline. Whatever is not said does nothing.
pub(super) trait Rules: Debug {
    /// What the discipline keeps of each stream.
    type Own: Clone + Debug;
    /// [`Self::reconsider`] may rank a winner anew.
    const RECONSIDERS: bool = false;

    /// There may be the streams 0 to `streams` − 1.
    fn reserve(&mut self, _streams: usize) {}
    /// A stream joins.
    fn open(&mut self, terms: &Terms) -> Self::Own;
    /// A head is announced, before it is ranked for the first time.
    fn announced(&mut self, _stream: &mut Stream<Self::Own>, _arrival: Arrival) {}
    /// The rank of a head that competes from now on, or competes already and has changed: [`owed`] or
    /// [`spare`]. `None` sends it to round robin.
    fn rank(&mut self, stream: &mut Stream<Self::Own>) -> Option<u128>;
    /// The head was served by its deadline.
    fn met(&mut self, _own: &mut Self::Own, _loss: LossTolerance) {}
    /// As many `deadlines` of the head passed, one or more.
    fn missed(&mut self, _own: &mut Self::Own, _loss: LossTolerance, _deadlines: u64) {}
    /// A segment of `bytes` of a ranked head left; another rank, if the head goes on and has one.
    /// [`Stream::has_head`] tells whether it goes on.
    fn sent(&mut self, _stream: &mut Stream<Self::Own>, _bytes: u32) -> Option<u128> {
        None
    }
    /// The stream has no head any more, and none followed at once.
    fn emptied(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// The stream's heads are not picked from now on. It has one, or not.
    fn suspended(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// The stream takes part again; its head, if it has one, is ranked next.
    fn resumed(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// The stream leaves, and its head with it.
    fn closed(&mut self, _stream: &mut Stream<Self::Own>) {}
    /// The winner is about to be served: `Some` ranks it anew, and who wins then is asked next. Only if [`Self::RECONSIDERS`].
    fn reconsider(&mut self, _stream: &mut Stream<Self::Own>) -> Option<u128> {
        None
    }
    /// Whoever may be ranked otherwise before a pick, is.
    fn prepare(
        &mut self,
        _now: Instant,
        _streams: &mut [Option<Stream<Self::Own>>],
        _ranks: &mut Tournament<u128>,
    ) {
    }
    /// When time alone next changes who is picked, beside releases and misses.
    fn next_change(&self, _now: Instant) -> Option<Instant> {
        None
    }
    /// By when a head that competes is to be served before others.
    fn virtual_deadline(&self, stream: &Stream<Self::Own>) -> Instant {
        stream.deadline
    }
    /// The window, for whoever asks.
    fn window(&self, stream: &Stream<Self::Own>) -> WindowState {
        stream.account.state()
    }
}
