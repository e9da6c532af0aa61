//! What is written down of a stream, and what is known of it while the run goes on.

use crate::discipline::Terms;
use crate::hfsc::ClassIndex;
use crate::police::{self, Police};
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// When the samples of a stream arrive.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Arrivals {
    /// All are there at 0, and they never end. Where a head waits for its period
    /// ([`super::Ahead::Waits`]) this is one sample a period, from 0 on, under a contract.
    Backlogged,
    /// `count` samples, the first at `first`, the others `every` apart; at least a nanosecond.
    Every {
        /// When the first one arrives.
        first: Instant,
        /// The time between two of them.
        every: Duration,
        /// How many there are.
        count: u64,
    },
    /// At these instants, in ascending order.
    At(Vec<Instant>),
}

impl Arrivals {
    /// When sample `seq` arrives; `None` if there is no such sample.
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

    /// How many arrive before `end`; all of them if they never end.
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

/// A stream: on what terms it takes part, and what it sends.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its contract, its priority, its rate, its curves.
    pub terms: Terms,
    /// The bytes of its samples, over and over: sample `n` has the size at place `n` modulo their
    /// number. Without any, each sample has one byte.
    pub sizes: Vec<u32>,
    /// When its samples arrive.
    pub arrivals: Arrivals,
    /// What its samples are held to when they arrive. What does not conform is given up, waits until it does,
    /// or is demoted: it takes its turns among best effort, and makes way for the next that conforms. Without
    /// a contract there is nothing to demote. Of a backlogged stream whose samples are all there at 0 it
    /// means nothing.
    pub police: Option<Police>,
    /// The leaf in which it takes part, where there are classes.
    pub class: Option<ClassIndex>,
}

impl Spec {
    /// The bytes of sample `seq`, at least 1.
    #[must_use]
    pub fn size(&self, seq: u64) -> u32 {
        let sizes = self.sizes.len() as u64;
        let place = seq.checked_rem(sizes).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.sizes.get(place)).map_or(1, |size| *size.max(&1))
    }

    /// The bytes of its largest sample.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.sizes.iter().copied().max().unwrap_or(1).max(1)
    }
}

/// A stream while the run goes on.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) spec: Spec,
    /// The sample at the head, or the next one to come.
    pub(super) seq: u64,
    pub(super) head: Option<HeadState>,
    /// Until when the head is held back.
    pub(super) held: Option<Instant>,
    /// Samples with a fate.
    pub(super) decided: u64,
    /// Of a policed stream: how many samples its policers have let pass or refused, and which passed and
    /// have no fate, with the instants at which they did.
    pub(super) offered: u64,
    pub(super) passed: VecDeque<Passed>,
}

/// A sample that the policers of its stream have let pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) seq: u64,
    pub(super) at: Instant,
    /// It goes as best effort.
    pub(super) demoted: bool,
}

impl Line {
    /// If its samples are to wait (`waits`) for their periods, a backlogged stream has one in each.
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

    /// When the sample at the head arrived, or the next one will; of a policed stream, when the next
    /// that passed did.
    pub(super) fn arrival(&self) -> Option<Instant> {
        match (&self.spec.police, self.passed.front()) {
            (None, _) => self.spec.arrivals.nth(self.seq),
            (Some(_), passed) => passed.map(|passed| passed.at),
        }
    }

    /// The sample at the head becomes the next one to be announced; true if it is demoted.
    pub(super) fn advance(&mut self) -> bool {
        let Some(Passed { seq, demoted, .. }) = self.passed.pop_front() else { return false };
        self.seq = seq;
        demoted
    }

    /// Asks the policers about the next sample, which is there at `now`; their answer.
    pub(super) fn offer(&mut self, now: Instant) -> Offer {
        let bytes = self.spec.size(self.offered);
        let contracted = self.spec.terms.contract().is_some();
        let Some(police) = &mut self.spec.police else { return Offer::Passes };
        match police.police(now, bytes.into()) {
            police::Outcome::DelayUntil(at) if at > now => Offer::Waits(at),
            police::Outcome::Pass | police::Outcome::DelayUntil(_) => self.pass(now, false),
            police::Outcome::Demote => self.pass(now, contracted),
            police::Outcome::Drop => {
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

    /// Something demoted waits although the last that passed conforms: the first such sample behind the head
    /// is taken out.
    pub(super) fn take_demoted(&mut self) -> Option<u64> {
        self.passed.back().filter(|last| !last.demoted)?;
        let first = self.passed.iter().position(|passed| passed.demoted)?;
        self.passed.remove(first).map(|passed| passed.seq)
    }

    /// True if its head is demoted although something waits that conforms.
    pub(super) fn head_makes_way(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.demoted)
            && self.passed.back().is_some_and(|last| !last.demoted)
    }

    /// From when the delay of the sample counts that comes to the head at `now`: from its arrival, or
    /// of a backlogged stream from now.
    pub(super) fn since(&self, now: Instant) -> Instant {
        match self.spec.arrivals {
            Arrivals::Backlogged => now,
            Arrivals::Every { .. } | Arrivals::At(_) => {
                self.spec.arrivals.nth(self.seq).unwrap_or(now)
            }
        }
    }

    /// Its samples come one `period` apart, so that each begins its own.
    pub(super) fn is_periodic(&self, period: Duration) -> bool {
        matches!(self.spec.arrivals, Arrivals::Every { every, .. } if every == period)
    }
}

/// What policers say of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offer {
    /// It may take part.
    Passes,
    /// It may be offered again at this instant.
    Waits(Instant),
    /// The sample of this number may not.
    Refused(u64),
}

/// What is known of a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadState {
    /// Bytes still to be sent.
    pub(super) left: u32,
    pub(super) sent: u32,
    pub(super) busy: Duration,
    /// From when its delay counts.
    pub(super) since: Instant,
    /// It goes as best effort.
    pub(super) demoted: bool,
}

impl HeadState {
    pub(super) const fn new(bytes: u32, since: Instant, demoted: bool) -> Self {
        Self { left: bytes, sent: 0, busy: Duration::ZERO, since, demoted }
    }
}
