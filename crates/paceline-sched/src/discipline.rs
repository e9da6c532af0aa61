//! Packet scheduling disciplines: each selects the stream that sends next on a link.
//!
//! Streams queue their samples elsewhere; only the *head* of each stream competes here. The caller
//! repeats these steps:
//!
//! 1. Announce heads ([`Scheduler::handle_head`]).
//! 2. Drain the misses ([`Scheduler::poll_missed`]).
//! 3. Ask for the next stream ([`Scheduler::pick`]) and send one segment of its head.
//! 4. Report the segment ([`Scheduler::handle_segment`], [`Scheduler::handle_served`]).
//! 5. Continue at [`Scheduler::next_change`] at the latest.
//!
//! A pick considers four classes in order; a lower class never precedes a higher one:
//!
//! | class | heads | order |
//! |---|---|---|
//! | 0 | contracted, period begun, service owed | the discipline's key |
//! | 1 | contracted, period begun, no service owed (VDS m' = 0) | deadline |
//! | 2 | best effort, and contracted heads ahead of their period | round robin, one segment each |
//! | 3 | background | round robin, one segment each |
//!
//! Ties are resolved in favour of the lowest [`StreamIndex`]. The papers use "first come, first served",
//! which does not order streams that are always backlogged. FIFO has a single class for everything but
//! background.
//!
//! Deadlines are *finish* deadlines. Successive deadlines are one period apart, whatever happened to the
//! previous sample. Each sample is counted exactly once: on time if its service ends by its first
//! deadline, missed otherwise. Aligned windows of `y` counted samples follow each other. A window is
//! violated when its misses first exceed `x`.
//!
//! **Unequal service times.** The papers assume slots of equal length; here each sample takes its own
//! service time. A head is missed as soon as its own service can no longer end by its deadline. A long
//! sample is therefore missed earlier than a short one with the same deadline. Heads are ordered by
//! deadline, not by latest start. A segment is never interrupted, so every bound grows by the longest
//! segment.
//!
//! Papers: West & Schwan 1999, West & Poellabauer RTSS 2000, West, Zhang, Schwan & Poellabauer TC 2004
//! (DWCS); Zhang, West & Qi RTSS 2004 (VDS); Liu & Layland 1973 (EDF); Ferrari & Verma 1990 (Delay-EDD);
//! Zhang & Ferrari 1993 (RCSP); Golestani 1990 (Stop-and-Go); Liebeherr & Wrege 1994 (rotating priority queues);
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
mod rcsp;
mod rpq;
mod rules;
mod stop_and_go;
mod stream;
mod terms;
mod vds;
mod wf2q;

pub use hierarchy::{BranchSpec, Hierarchy, LeafSpec};
pub use policy::{Eligibility, Policy, RuleSet, UnknownPolicy};
pub use terms::{
    Earlier, Head, Left, Miss, Service, ServiceClass, StreamIndex, Terms, WindowState,
};

use self::core::Core;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

/// The scheduler of one link: the interface of all disciplines.
///
/// Every operation is O(log n) in the number of streams. `pick` and `poll_missed` take O(log n) more for
/// each head whose period begins or elapses. Only joining allocates.
///
/// Invalid calls change nothing: a stream that never joined, a head for a stream that has one, a service
/// without a head. `now` must not decrease; if it does, heads already released stay released.
pub trait Scheduler {
    /// Reserves memory for the streams 0 to `streams` − 1, so that joining does not allocate.
    fn reserve(&mut self, streams: usize);

    /// Adds `stream` with a fresh window.
    ///
    /// If the stream is already present, it leaves first and loses its head; the caller must announce
    /// the head again.
    fn join(&mut self, stream: StreamIndex, terms: impl Into<Terms>);

    /// Removes `stream` and its head without counting the head. Idempotent.
    fn leave(&mut self, stream: StreamIndex);

    /// Announces the head of `stream`, which had none.
    ///
    /// Its period begins at its arrival, or at the earliest instant that the contract permits, jitter
    /// included, if that is later. The deadline follows from the period.
    fn handle_head(&mut self, stream: StreamIndex, head: Head);

    /// Announces a head that exceeds the traffic which `stream` may send; the stream had no head.
    ///
    /// The head is served in round robin with best effort and consumes none of the stream's periods or
    /// share. It gets the deadline of a sample with a period of its own and is counted like any other
    /// sample.
    fn handle_demoted(&mut self, stream: StreamIndex, head: Head);

    /// Postpones the head of `stream`, announced just now, because it is longer than its contract
    /// allows.
    ///
    /// `over` is the time in which the stream may send the excess. The period and the deadline of the
    /// head move later by `over`, and those of the samples behind it follow. Until its period begins,
    /// the head is treated as ahead of its period. Disciplines that share by bytes rather than by
    /// periods ignore this call.
    fn handle_long(&mut self, stream: StreamIndex, over: Duration);

    /// Stops picking the heads of `stream` until [`Self::resume`], because its receiver cannot accept
    /// them.
    ///
    /// Their deadlines continue to run.
    fn suspend(&mut self, stream: StreamIndex);

    /// Resumes picking `stream`; in round robin it joins at the end. Idempotent.
    fn resume(&mut self, stream: StreamIndex);

    /// Returns the stream whose next segment is to be sent at `now`.
    ///
    /// Returns `None` if no active stream has a head. HFSC also returns `None` while all heads wait for
    /// their upper limits, until [`Self::next_change`].
    ///
    /// Drain [`Self::poll_missed`] first; otherwise a sample that is already late may be picked, and one
    /// whose period has begun may be passed over. The caller must report the segment that it sends with
    /// [`Self::handle_segment`] or [`Self::handle_served`]. Without that report, further calls return
    /// the same stream until [`Self::next_change`].
    #[must_use]
    fn pick(&mut self, now: Instant) -> Option<StreamIndex>;

    /// Reports that a segment of `stream` of `bytes` bytes was sent which is not the last of its sample;
    /// `left` remains.
    ///
    /// In classes 2 and 3 the stream then moves to the end of the round robin.
    fn handle_segment(&mut self, stream: StreamIndex, bytes: u32, left: Left);

    /// Combines [`Self::handle_served`] with [`Self::handle_head`] of the following head, if there is
    /// one.
    ///
    /// A backlogged stream needs both calls for every sample, so one step is faster.
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

    /// Replaces the remaining service of the head of `stream`; the head keeps its position.
    ///
    /// Used when the capacity of the link has changed, or when a newer sample of a stream without a
    /// contract replaces the head.
    fn handle_left(&mut self, stream: StreamIndex, left: Left);

    /// Reports that the last segment of the head of `stream`, of `bytes` bytes, is sent and ends at
    /// `finish`.
    ///
    /// The stream then has no head. If a sample is queued, the caller must announce it before the next
    /// pick.
    fn handle_served(&mut self, stream: StreamIndex, bytes: u32, finish: Instant) -> Service;

    /// Returns the next miss known at `now`, in the order of latest starts.
    ///
    /// Call this until it returns `None` before [`Self::pick`], and announce the next head after each
    /// dropped one.
    ///
    /// A head is missed when `now + service` exceeds its deadline. A head that is sent late
    /// ([`crate::contract::Late::Send`]) is counted and reported at its first deadline only. As further
    /// periods elapse, its deadline advances by whole periods, in one step and without a report.
    #[must_use]
    fn poll_missed(&mut self, now: Instant) -> Option<Miss>;

    /// Withdraws the head of `stream`, because it was superseded or the link is down.
    ///
    /// Under a contract the sample counts as missed, unless it was counted already. Returns true if that
    /// violated the stream's window.
    fn remove_head(&mut self, stream: StreamIndex) -> bool;

    /// Reports that the caller dropped a sample of `stream` which never was the head.
    ///
    /// Under a contract the sample counts as missed. Returns true if that violated the stream's window.
    /// The sample consumes no period of the samples behind it.
    fn handle_skipped(&mut self, stream: StreamIndex) -> bool;

    /// Reports the samples of `stream` before it joined, so that its next sample is not the first of its
    /// window.
    ///
    /// Whole windows among them are ignored. Of the others, as many as possible up to [`Earlier::missed`]
    /// count as missed, and the rest as met. No violation is reported.
    fn handle_earlier(&mut self, stream: StreamIndex, earlier: Earlier);

    /// Returns the samples of the present window of `stream` before its head, as [`Self::handle_earlier`] takes
    /// them after the stream has left and joined again. `None` for an unknown stream or one without a contract.
    ///
    /// If the head was already counted as missed, and was the last one of its window, the misses before it are
    /// unknown and not included.
    #[must_use]
    fn earlier(&self, stream: StreamIndex) -> Option<Earlier>;

    /// Returns the earliest instant after `now` at which [`Self::poll_missed`] or [`Self::pick`] may
    /// return something else than at `now`, if the caller does nothing.
    ///
    /// That is when a head's latest start has just passed, or when a head's period begins. Returns
    /// `None` for never. Drain [`Self::poll_missed`] first; otherwise the result is immediately after
    /// `now`.
    #[must_use]
    fn next_change(&self, now: Instant) -> Option<Instant>;

    /// Returns the same as [`Self::next_change`] for a caller that cannot send at `now`, without the
    /// further deadlines of heads that are already late.
    ///
    /// Those deadlines only change the order of heads, and the next call catches up with them in one
    /// step. Otherwise a late head that an upper limit delays would wake the caller every period,
    /// however short.
    #[must_use]
    fn next_wake(&self, now: Instant) -> Option<Instant> {
        self.next_change(now)
    }

    /// Returns the position of `stream` in its window; `None` for an unknown stream or one without a
    /// contract.
    #[must_use]
    fn window(&self, stream: StreamIndex) -> Option<WindowState>;

    /// Returns the instant by which the head of `stream` must end; `None` without a head or a contract.
    #[must_use]
    fn deadline(&self, stream: StreamIndex) -> Option<Instant>;

    /// Returns the instant by which the head of `stream` should be served before others.
    ///
    /// This is the virtual deadline under VDS, and the deadline under the other disciplines. It is
    /// [`Instant::FAR`] if the head follows all that are due, because its window owes nothing or its
    /// period has not begun. Returns `None` without a head or a contract.
    #[must_use]
    fn virtual_deadline(&self, stream: StreamIndex) -> Option<Instant>;
}

/// First in, first out, in order of arrival.
#[derive(Clone, Debug)]
pub struct Fifo(Core<fifo::Rules>);

/// Static priority, in order of arrival within a level.
#[derive(Clone, Debug)]
pub struct StaticPriority(Core<priority::Rules>);

/// Earliest deadline first, with deadlines relative to release.
#[derive(Clone, Debug)]
pub struct Edf(Core<edf::ByRelease>);

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

/// Rate-controlled static priority (Zhang & Ferrari 1993): levels with a delay bound each, behind a regulator for each
/// stream.
#[derive(Clone, Debug)]
pub struct Rcsp(Core<rcsp::Rules>);

/// Stop-and-Go queueing (Golestani 1990): samples of one frame are served in the next.
#[derive(Clone, Debug)]
pub struct StopAndGo(Core<stop_and_go::Rules>);

/// Rotating priority queues (Liebeherr & Wrege 1994): EDF with deadlines rounded to rotations.
#[derive(Clone, Debug)]
pub struct Rpq(Core<rpq::Rules>);

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
    /// Rate-controlled static priority.
    Rcsp(Rcsp),
    /// Stop-and-Go queueing.
    StopAndGo(StopAndGo),
    /// Rotating priority queues.
    Rpq(Rpq),
    /// A tree of classes, each leaf with a discipline of its own.
    Hierarchy(Box<Hierarchy>),
}

/// Calls the same method on the scheduler of any variant.
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
            Self::Rcsp(Rcsp($scheduler)) => $call,
            Self::StopAndGo(StopAndGo($scheduler)) => $call,
            Self::Rpq(Rpq($scheduler)) => $call,
            Self::Hierarchy($scheduler) => $call,
        }
    };
}

impl Discipline {
    /// Returns the discipline of a link without streams.
    #[must_use]
    pub fn new(policy: Policy, eligibility: Eligibility) -> Self {
        match policy {
            // Arrival order does not use periods, so no head is ever ahead of its own.
            Policy::Fifo => Self::Fifo(Fifo(Core::new(fifo::Rules, Eligibility::WorkConserving))),
            Policy::StaticPriority => {
                Self::StaticPriority(StaticPriority(Core::new(priority::Rules, eligibility)))
            }
            Policy::Edf => Self::Edf(Edf(Core::new(edf::ByRelease, eligibility))),
            Policy::DelayEdd => Self::DelayEdd(DelayEdd(Core::new(edf::ByContract, eligibility))),
            Policy::Dwcs { ordering, adjustment } => {
                Self::Dwcs(Dwcs(Core::new(dwcs::Rules { ordering, adjustment }, eligibility)))
            }
            Policy::Vds => Self::Vds(Vds(Core::new(vds::Rules, eligibility))),
            // Shares do not use periods either.
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
            Policy::Rcsp => Self::Rcsp(Rcsp(Core::new(rcsp::Rules, eligibility))),
            Policy::StopAndGo => {
                Self::StopAndGo(StopAndGo(Core::new(stop_and_go::Rules, eligibility)))
            }
            Policy::Rpq => Self::Rpq(Rpq(Core::new(rpq::Rules, eligibility))),
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

    fn handle_earlier(&mut self, stream: StreamIndex, earlier: Earlier) {
        each!(self, scheduler => scheduler.handle_earlier(stream, earlier));
    }

    fn earlier(&self, stream: StreamIndex) -> Option<Earlier> {
        each!(self, scheduler => scheduler.earlier(stream))
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
