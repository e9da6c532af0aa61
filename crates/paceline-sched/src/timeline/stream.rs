//! The specification of a stream, and its state during a run.

use crate::discipline::Terms;
use crate::hfsc::ClassIndex;
use crate::police::{self, Police};
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The arrival instants of a stream's samples.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Arrivals {
    /// All samples are there at 0, and they never end.
    ///
    /// If heads wait for their periods ([`super::Ahead::Waits`]), a stream under a contract has one
    /// sample per period from 0 on.
    Backlogged,
    /// `count` samples, the first at `first`, the others `every` apart; at least 1 ns.
    Every {
        /// The instant of the first arrival.
        first: Instant,
        /// The time between two arrivals.
        every: Duration,
        /// The number of samples.
        count: u64,
    },
    /// At these instants, in ascending order.
    At(Vec<Instant>),
}

impl Arrivals {
    /// Returns the arrival of sample `seq`; `None` if there is no such sample.
    #[must_use]
    pub fn nth(&self, seq: u64) -> Option<Instant> {
        match self {
            Self::Backlogged => Some(Instant::ZERO),
            Self::Every { first, every, count } if seq < *count => {
                let every = Duration::from_nanos(every.as_nanos().max(1));
                Some(*first + every.mul_div(seq, 1))
            }
            Self::Every { .. } => None,
            Self::At(instants) => instants.get(usize::try_from(seq).ok()?).copied(),
        }
    }

    /// Returns the number of arrivals before `end`; [`u64::MAX`] for a backlogged stream.
    #[must_use]
    pub fn before(&self, end: Instant) -> u64 {
        match self {
            Self::Backlogged => u64::MAX,
            Self::Every { first, every, count } => {
                let every = every.as_nanos().max(1);
                end.since(*first).as_nanos().div_ceil(every).min(*count)
            }
            Self::At(instants) => instants.partition_point(|at| *at < end) as u64,
        }
    }
}

/// The terms of a stream and the samples that it sends.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The contract, the priority, the rate and the curves.
    pub terms: Terms,
    /// The sizes of its samples in bytes, repeated cyclically: sample `n` has size `n` modulo their
    /// number.
    ///
    /// Without any, each sample has one byte.
    pub sizes: Vec<u32>,
    /// The arrival instants of its samples.
    pub arrivals: Arrivals,
    /// The policers of arriving samples.
    ///
    /// A nonconforming sample is dropped, waits until it conforms, or is demoted. A demoted sample is
    /// served in round robin with best effort, and the next conforming sample replaces it. Without a
    /// contract demotion has no effect. The policers are ignored for a backlogged stream whose samples
    /// are all there at 0.
    pub police: Option<Police>,
    /// The leaf of the stream, if there are classes.
    pub class: Option<ClassIndex>,
}

impl Spec {
    /// Returns the size of sample `seq` in bytes, at least 1.
    #[must_use]
    pub fn size(&self, seq: u64) -> u32 {
        let sizes = self.sizes.len() as u64;
        let place = seq.checked_rem(sizes).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.sizes.get(place)).map_or(1, |size| *size.max(&1))
    }

    /// Returns the size of the largest sample in bytes.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.sizes.iter().copied().max().unwrap_or(1).max(1)
    }
}

/// A stream during a run.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) spec: Spec,
    /// The sample at the head, or the next one to arrive.
    pub(super) seq: u64,
    pub(super) head: Option<HeadState>,
    /// The instant until which the head is suspended.
    pub(super) held: Option<Instant>,
    /// The number of decided samples.
    pub(super) decided: u64,
    /// For a policed stream: the number of samples that its policers have passed or rejected, and the
    /// samples that passed and are not decided, with the instants at which they did.
    pub(super) offered: u64,
    pub(super) passed: VecDeque<Passed>,
}

/// A sample that passed its stream's policers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) seq: u64,
    pub(super) at: Instant,
    /// It is sent as best effort.
    pub(super) demoted: bool,
}

impl Line {
    /// Returns a stream at the start of a run. If its samples wait for their periods (`waits`), a
    /// backlogged stream has one sample in each.
    pub(super) fn new(mut spec: Spec, waits: bool) -> Self {
        let contract = spec.terms.contract().filter(|_| waits);
        if let (Arrivals::Backlogged, Some(contract)) = (&spec.arrivals, contract) {
            spec.arrivals =
                Arrivals::Every { first: Instant::ZERO, every: contract.period, count: u64::MAX };
        }
        if spec.arrivals == Arrivals::Backlogged {
            spec.police = None;
        }
        let passed = VecDeque::new();
        Self { spec, seq: 0, head: None, held: None, decided: 0, offered: 0, passed }
    }

    /// Returns the arrival of the sample at the head, or of the next one; for a policed stream, the
    /// instant at which the next sample passed.
    pub(super) fn arrival(&self) -> Option<Instant> {
        match (&self.spec.police, self.passed.front()) {
            (None, _) => self.spec.arrivals.nth(self.seq),
            (Some(_), passed) => passed.map(|passed| passed.at),
        }
    }

    /// Moves to the next sample to be announced. Returns true if it is demoted.
    pub(super) fn advance(&mut self) -> bool {
        let Some(Passed { seq, demoted, .. }) = self.passed.pop_front() else { return false };
        self.seq = seq;
        demoted
    }

    /// Polices the next sample, which is there at `now`.
    pub(super) fn offer(&mut self, now: Instant) -> Offer {
        let bytes = self.spec.size(self.offered);
        let contracted = self.spec.terms.contract().is_some();
        let Some(police) = &mut self.spec.police else { return Offer::Passes };
        match police.police(now, bytes.into()) {
            police::PoliceResult::DelayUntil(at) if at > now => Offer::Waits(at),
            police::PoliceResult::Pass | police::PoliceResult::DelayUntil(_) => {
                self.pass(now, false)
            }
            police::PoliceResult::Demote => self.pass(now, contracted),
            police::PoliceResult::Drop => {
                self.offered += 1;
                Offer::Refused(self.offered - 1)
            }
        }
    }

    fn pass(&mut self, at: Instant, demoted: bool) -> Offer {
        self.passed.push_back(Passed { seq: self.offered, at, demoted });
        self.offered += 1;
        Offer::Passes
    }

    /// Removes the first demoted sample behind the head, if the last sample that passed conforms.
    pub(super) fn take_demoted(&mut self) -> Option<u64> {
        self.passed.back().filter(|last| !last.demoted)?;
        let first = self.passed.iter().position(|passed| passed.demoted)?;
        self.passed.remove(first).map(|passed| passed.seq)
    }

    /// Returns true if the head is demoted and a conforming sample waits.
    pub(super) fn head_makes_way(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.demoted)
            && self.passed.back().is_some_and(|last| !last.demoted)
    }

    /// Returns the instant from which the delay of the sample counts that becomes the head at `now`.
    ///
    /// This is its arrival, or `now` for a backlogged stream.
    pub(super) fn since(&self, now: Instant) -> Instant {
        match self.spec.arrivals {
            Arrivals::Backlogged => now,
            Arrivals::Every { .. } | Arrivals::At(_) => {
                self.spec.arrivals.nth(self.seq).unwrap_or(now)
            }
        }
    }

    /// Returns true if its samples arrive one `period` apart, so that each begins its own period.
    pub(super) fn is_periodic(&self, period: Duration) -> bool {
        matches!(self.spec.arrivals, Arrivals::Every { every, .. } if every == period)
    }
}

/// The result of policing a sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offer {
    /// The sample may take part.
    Passes,
    /// The sample may be offered again at this instant.
    Waits(Instant),
    /// The sample with this sequence number is rejected.
    Refused(u64),
}

/// The state of a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadState {
    /// The bytes still to be sent.
    pub(super) left: u32,
    pub(super) sent: u32,
    pub(super) busy: Duration,
    /// The instant from which its delay counts.
    pub(super) since: Instant,
    /// It is sent as best effort.
    pub(super) demoted: bool,
}

impl HeadState {
    pub(super) const fn new(bytes: u32, since: Instant, demoted: bool) -> Self {
        Self { left: bytes, sent: 0, busy: Duration::ZERO, since, demoted }
    }
}
