//! Which stream leaves next on a link: every discipline behind one trait and one enum.
//!
//! Streams queue their own samples elsewhere; only the *head* of each stream competes here. The
//! caller announces heads ([`Scheduler::handle_head`]), drains the misses
//! ([`Scheduler::poll_missed`]), asks who is next ([`Scheduler::pick`]), sends one segment, says
//! so ([`Scheduler::handle_segment`], [`Scheduler::handle_served`]), and comes back at
//! [`Scheduler::next_change`] at the latest.
//!
//! A pick goes through four classes, and a lower class never precedes a higher one:
//!
//! | class | who | order |
//! |---|---|---|
//! | 0 | contracted heads whose period has come, owed service | the discipline's key |
//! | 1 | contracted heads whose period has come, owed nothing (VDS m' = 0) | deadline |
//! | 2 | best effort, and contracted heads ahead of their period | round robin, one segment a turn |
//! | 3 | background | round robin, one segment a turn |
//!
//! What remains equal goes to the lowest [`StreamIndex`]: the papers say "first come, first served",
//! which decides nothing between streams that are always backlogged. FIFO has a single
//! class for all but background.
//!
//! Deadlines are *finish* deadlines, and successive ones are a period apart whatever became of the
//! sample before. A sample is judged exactly once: on time when it is served by its first deadline,
//! missed otherwise. Aligned windows of `y` judged samples follow each other, and one is violated when
//! its misses first exceed `x`.
//!
//! **Unequal service times.** The papers' slots are all alike; samples here take the time that they
//! take. A head is missed from the instant on at which its own service can no longer end by its
//! deadline, so a long sample is given up sooner than a short one with the same deadline. Orders compare
//! deadlines, not latest starts. One segment is never interrupted, so every bound grows by the longest.
//!
//! Papers: West & Schwan 1999, West & Poellabauer RTSS 2000, West, Zhang, Schwan & Poellabauer TC 2004
//! (DWCS); Zhang, West & Qi RTSS 2004 (VDS); Liu & Layland 1973 (EDF); Ferrari & Verma 1990 (Delay-EDD);
//! Shreedhar & Varghese SIGCOMM 1995 (DRR); Bennett & Zhang SIGCOMM 1996, ToN 1997 (WF²Q+); seed 004
//! §2.2.4.

mod core;
mod division;
mod drr;
mod dwcs;
mod edf;
mod fifo;
mod hfsc;
mod hierarchy;
mod lists;
mod policy;
mod priority;
mod rules;
mod stream;
mod terms;
mod vds;
mod wf2q;

pub use hierarchy::{BranchSpec, Hierarchy, LeafSpec};
pub use policy::{Eligibility, Policy, RuleSet, UnknownPolicy};
pub use terms::{Class, Head, Left, Miss, Service, StreamIndex, Terms, WindowState};

use self::core::Core;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

/// A scheduler of one link: what every discipline can do.
///
/// Every operation is O(log n) in the number of streams, `pick` and `poll_missed` once more for each
/// head whose period comes or elapses. Nothing is allocated but when a stream joins.
///
/// Calls that make no sense — a stream that never joined, a head where there is one, a service where
/// there is none — change nothing. `now` must not go back; if it does, what has been released stays
/// released.
pub trait Scheduler {
    /// Makes room for the streams 0 to `streams` − 1, so that joining allocates nothing.
    fn reserve(&mut self, streams: usize);

    /// `stream` takes part from now on, under a contract with a fresh window.
    ///
    /// A stream that takes part already leaves first, and its head with it: the caller announces the
    /// head again.
    fn join(&mut self, stream: StreamIndex, terms: impl Into<Terms>);

    /// `stream` and its head are forgotten, unjudged. Idempotent.
    fn leave(&mut self, stream: StreamIndex);

    /// `stream` had no head and now has one.
    ///
    /// Its period begins when it arrived, or if that is earlier than the contract allows (jitter
    /// counted), when the contract allows; its deadline follows.
    fn handle_head(&mut self, stream: StreamIndex, head: Head);

    /// `stream` had no head and now has one that is more than it may send: it takes its turn among best
    /// effort, and none of the stream's periods or share is spent on it. Its deadline is that of a sample
    /// with a period of its own, and it is judged as any other.
    fn handle_demoted(&mut self, stream: StreamIndex, head: Head);

    /// The head of `stream`, which was announced just now, is longer than its contract allows, by what the stream
    /// may send in `over`: it gets the period and the deadline of when it may have sent that much, and those
    /// behind it come after it. Until then it takes its turns as one that is ahead of its period. What shares
    /// by bytes anyway, and not by periods, changes nothing.
    fn handle_long(&mut self, stream: StreamIndex, over: Duration);

    /// The heads of `stream` are not picked until [`Self::resume`], because what it leads to cannot
    /// take them; their deadlines run on.
    fn suspend(&mut self, stream: StreamIndex);

    /// The stream takes part again; in round robin it waits for its next turn. Idempotent.
    fn resume(&mut self, stream: StreamIndex);

    /// Whose next segment leaves at `now`; `None` if no stream that takes part has a head, or (HFSC)
    /// those that have one must wait for their upper limits until [`Self::next_change`].
    ///
    /// Drain [`Self::poll_missed`] first, or a sample that is late already may be picked, and one whose
    /// period has come passed over. The caller owes [`Self::handle_segment`] or
    /// [`Self::handle_served`] for the segment that it sends; asking again without them gives the
    /// same answer until [`Self::next_change`].
    #[must_use]
    fn pick(&mut self, now: Instant) -> Option<StreamIndex>;

    /// A segment of `stream` of `bytes` that is not the last of its sample left, and `left` remains. In
    /// classes 2 and 3 the stream's turn is over.
    fn handle_segment(&mut self, stream: StreamIndex, bytes: u32, left: Left);

    /// [`Self::handle_served`], and [`Self::handle_head`] of the head that follows if one waits already: the
    /// same in one step, which is what a backlogged stream needs at every sample.
    fn handle_served_and_next(
        &mut self,
        stream: StreamIndex,
        (bytes, finish): (u32, Instant),
        next: Option<Head>,
    ) -> Service {
        let service = self.handle_served(stream, bytes, finish);
        if let Some(head) = next {
            self.handle_head(stream, head);
        }
        service
    }

    /// The head of `stream` needs another time of the link than was said, because the link's capacity has
    /// changed, or because a newer sample of a stream without a contract has taken its place. Its place and its
    /// turn stay.
    fn handle_left(&mut self, stream: StreamIndex, left: Left);

    /// The last segment of `stream`'s head, of `bytes`, leaves and ends at `finish`. The head is gone:
    /// the caller announces the next, if one waits, before it picks again.
    fn handle_served(&mut self, stream: StreamIndex, bytes: u32, finish: Instant) -> Service;

    /// The next miss known at `now`, earliest latest start first. Call it until `None`, announcing the
    /// next head after each dropped one, before [`Self::pick`].
    ///
    /// A head is missed when `now + service` exceeds its deadline. One that is sent late
    /// ([`crate::contract::Late::Send`]) is judged and reported at its first deadline only; as each
    /// further period elapses its deadline moves on by one, silently, in one step however many elapsed.
    #[must_use]
    fn poll_missed(&mut self, now: Instant) -> Option<Miss>;

    /// The caller withdrew the head of `stream` (superseded, link down). Under a contract it counts as
    /// missed, unless it was already; true if that violated its window.
    fn remove_head(&mut self, stream: StreamIndex) -> bool;

    /// The caller gave up a sample of `stream` that waited behind the head, or came and never waited.
    /// Under a contract it counts as missed; true if that violated its window. It takes no period from
    /// those that follow.
    fn handle_skipped(&mut self, stream: StreamIndex) -> bool;

    /// The next sample of `stream` is not the first of its window: `samples` came before it, when the
    /// stream was not here. They count as met; of more than a window those beyond whole ones.
    fn handle_earlier(&mut self, stream: StreamIndex, samples: u64);

    /// The earliest instant after `now` at which [`Self::poll_missed`] or [`Self::pick`] may answer
    /// otherwise than at `now`, if the caller does nothing: a head's latest start has just passed, or a
    /// head's period comes. `None`: never. Drain [`Self::poll_missed`] first, or the answer is at once.
    #[must_use]
    fn next_change(&self, now: Instant) -> Option<Instant>;

    /// As [`Self::next_change`], for a caller that has nothing to send at `now`, or no time on the link for it:
    /// the further deadlines of heads that are late already are left out. They change who precedes whom and
    /// nothing else, and are made good in one step when somebody looks; to come back at each would be to
    /// come back every period, however short, as long as an upper limit holds such a head.
    #[must_use]
    fn next_wake(&self, now: Instant) -> Option<Instant> {
        self.next_change(now)
    }

    /// Where `stream` stands in its window; `None` without a contract and for a stream not here.
    #[must_use]
    fn window(&self, stream: StreamIndex) -> Option<WindowState>;

    /// By when the present head of `stream` must end; `None` without a head or a contract.
    #[must_use]
    fn deadline(&self, stream: StreamIndex) -> Option<Instant>;

    /// By when the present head of `stream` is to be served before others: its virtual deadline under VDS, its
    /// deadline under the other disciplines; [`Instant::FAR`] if it waits behind all that are due, since its window
    /// owes nothing or it came before its period. `None` without a head or a contract.
    #[must_use]
    fn virtual_deadline(&self, stream: StreamIndex) -> Option<Instant>;
}

/// In order of arrival.
#[derive(Clone, Debug)]
pub struct Fifo(Core<fifo::Rules>);

/// By static priority, in order of arrival within a level.
#[derive(Clone, Debug)]
pub struct StaticPriority(Core<priority::Rules>);

/// Earliest deadline first, due after arrival.
#[derive(Clone, Debug)]
pub struct Edf(Core<edf::ByArrival>);

/// Earliest due date: EDF by the contract's clock (Ferrari & Verma 1990).
#[derive(Clone, Debug)]
pub struct DelayEdd(Core<edf::ByContract>);

/// Dynamic window-constrained scheduling, in either rule set.
#[derive(Clone, Debug)]
pub struct Dwcs(Core<dwcs::Rules>);

/// Virtual deadline scheduling (Zhang, West & Qi RTSS 2004), windows counted in samples.
#[derive(Clone, Debug)]
pub struct Vds(Core<vds::Rules>);

/// Deficit round robin (Shreedhar & Varghese 1995).
#[derive(Clone, Debug)]
pub struct Drr(Core<drr::Rules>);

/// Worst-case fair weighted fair queueing (Bennett & Zhang 1997).
#[derive(Clone, Debug)]
pub struct Wf2qPlus(Core<wf2q::Rules>);

/// Hierarchical fair service curves, each stream a class of its own (Stoica, Zhang & Ng 1997).
#[derive(Clone, Debug)]
pub struct HfscStreams(Core<hfsc::Rules>);

/// The discipline of one link.
#[derive(Clone, Debug)]
#[repr(u8)]
pub enum Discipline {
    /// First in, first out.
    Fifo(Fifo),
    /// Static priority.
    StaticPriority(StaticPriority),
    /// Earliest deadline first.
    Edf(Edf),
    /// Earliest due date.
    DelayEdd(DelayEdd),
    /// Dynamic window-constrained scheduling.
    Dwcs(Dwcs),
    /// Virtual deadline scheduling.
    Vds(Vds),
    /// Deficit round robin.
    Drr(Drr),
    /// Worst-case fair weighted fair queueing.
    Wf2qPlus(Wf2qPlus),
    /// Hierarchical fair service curves.
    Hfsc(HfscStreams),
    /// A tree of classes, each leaf with a discipline of its own.
    Hierarchy(Box<Hierarchy>),
}

/// The same call on whichever scheduler there is.
macro_rules! each {
    ($discipline:expr, $scheduler:ident => $call:expr) => {
        match $discipline {
            Self::Fifo(Fifo($scheduler)) => $call,
            Self::StaticPriority(StaticPriority($scheduler)) => $call,
            Self::Edf(Edf($scheduler)) => $call,
            Self::DelayEdd(DelayEdd($scheduler)) => $call,
            Self::Dwcs(Dwcs($scheduler)) => $call,
            Self::Vds(Vds($scheduler)) => $call,
            Self::Drr(Drr($scheduler)) => $call,
            Self::Wf2qPlus(Wf2qPlus($scheduler)) => $call,
            Self::Hfsc(HfscStreams($scheduler)) => $call,
            Self::Hierarchy($scheduler) => $call,
        }
    };
}

impl Discipline {
    /// A link without streams.
    #[must_use]
    pub fn new(policy: Policy, eligibility: Eligibility) -> Self {
        match policy {
            // Arrival order knows no periods: no head is ever ahead of its own.
            Policy::Fifo => Self::Fifo(Fifo(Core::new(fifo::Rules, Eligibility::WorkConserving))),
            Policy::StaticPriority => {
                Self::StaticPriority(StaticPriority(Core::new(priority::Rules, eligibility)))
            }
            Policy::Edf => Self::Edf(Edf(Core::new(edf::ByArrival, eligibility))),
            Policy::DelayEdd => Self::DelayEdd(DelayEdd(Core::new(edf::ByContract, eligibility))),
            Policy::Dwcs { ordering, adjustment } => {
                Self::Dwcs(Dwcs(Core::new(dwcs::Rules { ordering, adjustment }, eligibility)))
            }
            Policy::Vds => Self::Vds(Vds(Core::new(vds::Rules, eligibility))),
            // A share is not counted in periods either.
            Policy::Drr => {
                Self::Drr(Drr(Core::new(drr::Rules::default(), Eligibility::WorkConserving)))
            }
            Policy::Wf2qPlus => Self::Wf2qPlus(Wf2qPlus(Core::new(
                wf2q::Rules::default(),
                Eligibility::WorkConserving,
            ))),
            Policy::Hfsc => Self::Hfsc(HfscStreams(Core::new(
                hfsc::Rules::default(),
                Eligibility::WorkConserving,
            ))),
        }
    }
}

impl From<Hierarchy> for Discipline {
    fn from(tree: Hierarchy) -> Self {
        Self::Hierarchy(Box::new(tree))
    }
}

impl Scheduler for Discipline {
    fn reserve(&mut self, streams: usize) {
        each!(self, scheduler => scheduler.reserve(streams));
    }

    fn join(&mut self, stream: StreamIndex, terms: impl Into<Terms>) {
        each!(self, scheduler => scheduler.join(stream, terms));
    }

    fn leave(&mut self, stream: StreamIndex) {
        each!(self, scheduler => scheduler.leave(stream));
    }

    #[inline]
    fn handle_head(&mut self, stream: StreamIndex, head: Head) {
        each!(self, scheduler => scheduler.handle_head(stream, head));
    }

    fn handle_demoted(&mut self, stream: StreamIndex, head: Head) {
        each!(self, scheduler => scheduler.handle_demoted(stream, head));
    }

    fn handle_long(&mut self, stream: StreamIndex, over: Duration) {
        each!(self, scheduler => scheduler.handle_long(stream, over));
    }

    fn suspend(&mut self, stream: StreamIndex) {
        each!(self, scheduler => scheduler.suspend(stream));
    }

    fn resume(&mut self, stream: StreamIndex) {
        each!(self, scheduler => scheduler.resume(stream));
    }

    #[inline]
    fn pick(&mut self, now: Instant) -> Option<StreamIndex> {
        each!(self, scheduler => scheduler.pick(now))
    }

    fn handle_segment(&mut self, stream: StreamIndex, bytes: u32, left: Left) {
        each!(self, scheduler => scheduler.handle_segment(stream, bytes, left));
    }

    #[inline]
    fn handle_served(&mut self, stream: StreamIndex, bytes: u32, finish: Instant) -> Service {
        each!(self, scheduler => scheduler.handle_served(stream, bytes, finish))
    }

    #[inline(always)]
    fn handle_served_and_next(
        &mut self,
        stream: StreamIndex,
        (bytes, finish): (u32, Instant),
        next: Option<Head>,
    ) -> Service {
        each!(self, scheduler => scheduler.handle_served_and_next(stream, (bytes, finish), next))
    }

    fn handle_left(&mut self, stream: StreamIndex, left: Left) {
        each!(self, scheduler => scheduler.handle_left(stream, left));
    }

    #[inline]
    fn poll_missed(&mut self, now: Instant) -> Option<Miss> {
        each!(self, scheduler => scheduler.poll_missed(now))
    }

    fn remove_head(&mut self, stream: StreamIndex) -> bool {
        each!(self, scheduler => scheduler.remove_head(stream))
    }

    fn handle_skipped(&mut self, stream: StreamIndex) -> bool {
        each!(self, scheduler => scheduler.handle_skipped(stream))
    }

    fn handle_earlier(&mut self, stream: StreamIndex, samples: u64) {
        each!(self, scheduler => scheduler.handle_earlier(stream, samples));
    }

    fn next_change(&self, now: Instant) -> Option<Instant> {
        each!(self, scheduler => scheduler.next_change(now))
    }

    fn next_wake(&self, now: Instant) -> Option<Instant> {
        each!(self, scheduler => scheduler.next_wake(now))
    }

    fn window(&self, stream: StreamIndex) -> Option<WindowState> {
        each!(self, scheduler => scheduler.window(stream))
    }

    fn deadline(&self, stream: StreamIndex) -> Option<Instant> {
        each!(self, scheduler => scheduler.deadline(stream))
    }

    fn virtual_deadline(&self, stream: StreamIndex) -> Option<Instant> {
        each!(self, scheduler => scheduler.virtual_deadline(stream))
    }
}

#[cfg(test)]
mod tests;
