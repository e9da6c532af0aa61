//! Which stream leaves next on a link: FIFO, DWCS, VDS behind one enum.
//!
//! Streams queue their own samples elsewhere; only the *head* of each stream competes here. The
//! caller announces heads ([`Discipline::handle_head`]), drains the misses
//! ([`Discipline::poll_missed`]), asks who is next ([`Discipline::pick`]), sends one segment, says
//! so ([`Discipline::handle_segment`], [`Discipline::handle_served`]), and comes back at
//! [`Discipline::next_change`] at the latest.
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
//! Papers: West & Schwan 1999, West & Poellabauer RTSS 2000, West, Zhang, Schwan & Poellabauer TC 2004
//! (DWCS); Zhang, West & Qi RTSS 2004 (VDS); seed 004 §2.2.4.

mod dwcs;
mod fifo;
mod queues;
mod scheduler;
mod stream;
mod vds;

use crate::contract::Contract;
use crate::time::{Duration, Instant};
use core::fmt;
use core::str::FromStr;
use scheduler::Scheduler;

/// Names a stream on its link: small and dense, because memory is proportional to the highest one.
///
/// The order of streams is the order of their indexes, which settles every tie.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamIndex(pub u32);

/// The rule by which a link chooses the next stream.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Policy {
    /// In order of arrival. Contracts are judged, never used.
    Fifo,
    /// Dynamic window-constrained scheduling, the later rules: earliest deadline first, then lowest
    /// window constraint. Keeps every window of a feasible set when all periods are equal.
    Dwcs,
    /// Virtual deadline scheduling: earliest virtual deadline first. Copes with different periods.
    #[default]
    Vds,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "fifo",
            Self::Dwcs => "dwcs",
            Self::Vds => "vds",
        })
    }
}

/// The text names no policy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown policy: must be fifo, dwcs or vds")
    }
}

impl core::error::Error for UnknownPolicy {}

impl FromStr for Policy {
    type Err = UnknownPolicy;
    /// Reads `fifo`, `dwcs` or `vds`, in lower case.
    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        match text {
            "fifo" => Ok(Self::Fifo),
            "dwcs" => Ok(Self::Dwcs),
            "vds" => Ok(Self::Vds),
            _ => Err(UnknownPolicy),
        }
    }
}

/// How often a contracted stream may use its rank. FIFO has no ranks and ignores it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Eligibility {
    /// Whenever it has a head: samples ahead of their period still precede best effort.
    WorkConserving,
    /// Once per period: a head ahead of its period waits its turn among best effort, so that a stream
    /// that sends more than it was promised takes nothing from those that keep to theirs.
    #[default]
    OncePerPeriod,
}

/// In which class a stream takes part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Class {
    /// With a contract: classes 0 to 2.
    Contracted(Contract),
    /// Without one: class 2.
    BestEffort,
    /// Without one, and after all others: class 3.
    Background,
}

impl From<Option<Contract>> for Class {
    /// A stream without a contract is best effort.
    fn from(contract: Option<Contract>) -> Self {
        contract.map_or(Self::BestEffort, Self::Contracted)
    }
}

/// The sample at the head of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Head {
    /// When it arrived at the link; not in the future.
    pub arrived: Instant,
    /// Time the link still needs to send all of it.
    pub service: Duration,
}

/// How the service of a sample ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Service {
    /// It ended by the sample's first deadline. Always true without a contract.
    pub on_time: bool,
    /// The sample was missed, and with it the misses of its window first exceeded x: true at most once
    /// per window, and never for a miss that [`Discipline::poll_missed`] has reported.
    pub violated: bool,
}

/// A sample that can no longer end by its deadline. Reported once per sample.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Miss {
    /// Whose sample it is.
    pub stream: StreamIndex,
    /// True under [`crate::contract::Late::Drop`]: the head is gone; the caller discards the sample,
    /// segments already sent included, and announces the next. False: it stays and is sent late.
    pub dropped: bool,
    /// With this miss the misses of the window first exceeded x: true once per violated window.
    pub violated: bool,
}

/// Where a stream stands in its window.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowState {
    /// Misses still tolerated. DWCS: x'. VDS and FIFO: k' − m', at least 0.
    pub x: u32,
    /// Samples left. DWCS: y', which grows beyond y while violated. VDS and FIFO: k'.
    pub y: u32,
    /// DWCS: violated since the last service in time. VDS and FIFO: never.
    pub tagged: bool,
}

/// In order of arrival; at equal arrival in the order in which heads were announced.
///
/// A sample is not interleaved with others: begun or not, the earliest arrival stays first.
#[derive(Clone, Debug)]
pub struct Fifo(Scheduler<fifo::Rules>);

/// Dynamic window-constrained scheduling, later rule set (West & Poellabauer RTSS 2000, TC 2004).
#[derive(Clone, Debug)]
pub struct Dwcs(Scheduler<dwcs::Rules>);

/// Virtual deadline scheduling (Zhang, West & Qi RTSS 2004), windows counted in samples.
#[derive(Clone, Debug)]
pub struct Vds(Scheduler<vds::Rules>);

/// The discipline of one link. Every operation is O(log n) in the number of streams, `pick` and
/// `poll_missed` once more for each head whose period comes or elapses.
///
/// Calls that make no sense — a stream that never joined, a head where there is one, a service where
/// there is none — change nothing. `now` must not go back; if it does, what has been released stays
/// released.
#[derive(Clone, Debug)]
pub enum Discipline {
    /// First in, first out.
    Fifo(Fifo),
    /// Dynamic window-constrained scheduling.
    Dwcs(Dwcs),
    /// Virtual deadline scheduling.
    Vds(Vds),
}

/// The same call on whichever scheduler there is.
macro_rules! each {
    ($discipline:expr, $scheduler:ident => $call:expr) => {
        match $discipline {
            Self::Fifo(Fifo($scheduler)) => $call,
            Self::Dwcs(Dwcs($scheduler)) => $call,
            Self::Vds(Vds($scheduler)) => $call,
        }
    };
}

impl Discipline {
    /// A link without streams.
    #[must_use]
    pub fn new(policy: Policy, eligibility: Eligibility) -> Self {
        match policy {
            // Arrival order knows no periods: no head is ever ahead of its own.
            Policy::Fifo => Self::Fifo(Fifo(Scheduler::new(Eligibility::WorkConserving))),
            Policy::Dwcs => Self::Dwcs(Dwcs(Scheduler::new(eligibility))),
            Policy::Vds => Self::Vds(Vds(Scheduler::new(eligibility))),
        }
    }

    /// The policy it was made with.
    #[must_use]
    pub fn policy(&self) -> Policy {
        match self {
            Self::Fifo(_) => Policy::Fifo,
            Self::Dwcs(_) => Policy::Dwcs,
            Self::Vds(_) => Policy::Vds,
        }
    }

    /// `stream` takes part from now on, under a contract with a fresh window. A contract or none
    /// says the class too, unless it is background.
    ///
    /// A stream that takes part already leaves first, and its head with it: the caller announces the
    /// head again.
    pub fn join(&mut self, stream: StreamIndex, class: impl Into<Class>) {
        let class = class.into();
        each!(self, scheduler => scheduler.join(stream, class));
    }

    /// `stream` and its head are forgotten, unjudged. Idempotent.
    pub fn leave(&mut self, stream: StreamIndex) {
        each!(self, scheduler => scheduler.leave(stream));
    }

    /// `stream` had no head and now has one.
    ///
    /// Its period begins when it arrived, or if that is earlier than the contract allows (jitter
    /// counted), when the contract allows; its deadline follows.
    pub fn handle_head(&mut self, stream: StreamIndex, head: Head) {
        each!(self, scheduler => scheduler.handle_head(stream, head));
    }

    /// The heads of `stream` are not picked until [`Self::resume`], because what it leads to cannot
    /// take them; their deadlines run on.
    pub fn suspend(&mut self, stream: StreamIndex) {
        each!(self, scheduler => scheduler.suspend(stream));
    }

    /// The stream takes part again; in round robin it waits for its next turn. Idempotent.
    pub fn resume(&mut self, stream: StreamIndex) {
        each!(self, scheduler => scheduler.resume(stream));
    }

    /// Whose next segment leaves at `now`; `None` only if no stream that takes part has a head.
    ///
    /// Drain [`Self::poll_missed`] first, or a sample that is late already may be picked. The caller
    /// owes [`Self::handle_segment`] or [`Self::handle_served`] for the segment that it sends; asking
    /// again without them gives the same answer until [`Self::next_change`].
    #[must_use]
    pub fn pick(&mut self, now: Instant) -> Option<StreamIndex> {
        each!(self, scheduler => scheduler.pick(now))
    }

    /// A segment of `stream` that is not the last of its sample left, and `service_left` remains. In
    /// classes 2 and 3 the stream's turn is over.
    pub fn handle_segment(&mut self, stream: StreamIndex, service_left: Duration) {
        each!(self, scheduler => scheduler.handle_segment(stream, service_left));
    }

    /// The last segment of `stream`'s head leaves and ends at `finish`. The head is gone: the caller
    /// announces the next, if one waits.
    pub fn handle_served(&mut self, stream: StreamIndex, finish: Instant) -> Service {
        each!(self, scheduler => scheduler.handle_served(stream, finish))
    }

    /// The next miss known at `now`, earliest latest start first. Call it until `None`, announcing the
    /// next head after each dropped one, before [`Self::pick`].
    ///
    /// A head is missed when `now + service` exceeds its deadline. One that is sent late
    /// ([`crate::contract::Late::Send`]) is judged and reported at its first deadline only; as each
    /// further period elapses its deadline moves on by one, silently, in one step however many elapsed.
    #[must_use]
    pub fn poll_missed(&mut self, now: Instant) -> Option<Miss> {
        each!(self, scheduler => scheduler.poll_missed(now))
    }

    /// The caller withdrew the head of `stream` (superseded, link down). Under a contract it counts as
    /// missed, unless it was already; true if that violated its window.
    pub fn remove_head(&mut self, stream: StreamIndex) -> bool {
        each!(self, scheduler => scheduler.remove_head(stream))
    }

    /// The caller gave up a sample of `stream` that waited behind the head, or came and never waited.
    /// Under a contract it counts as missed; true if that violated its window. It takes no period from
    /// those that follow.
    pub fn handle_skipped(&mut self, stream: StreamIndex) -> bool {
        each!(self, scheduler => scheduler.handle_skipped(stream))
    }

    /// The earliest instant after `now` at which [`Self::poll_missed`] or [`Self::pick`] may answer
    /// otherwise than at `now`, if the caller does nothing: a head's latest start has just passed, or a
    /// head's period comes. `None`: never.
    #[must_use]
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        each!(self, scheduler => scheduler.next_change(now))
    }

    /// Where `stream` stands in its window; `None` without a contract and for a stream not here.
    #[must_use]
    pub fn window(&self, stream: StreamIndex) -> Option<WindowState> {
        each!(self, scheduler => scheduler.window(stream))
    }

    /// By when the present head of `stream` must end; `None` without a head or a contract.
    #[must_use]
    pub fn deadline(&self, stream: StreamIndex) -> Option<Instant> {
        each!(self, scheduler => scheduler.deadline(stream))
    }
}

#[cfg(test)]
mod tests;
