//! What is written down of a stream, and what is known of it while the run goes on.

use crate::discipline::Terms;
use crate::time::{Duration, Instant};
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
    /// Its class with its contract, its priority, its rate.
    pub terms: Terms,
    /// The bytes of its samples, over and over: sample `n` has the size at place `n` modulo their
    /// number. Without any, each sample has one byte.
    pub sizes: Vec<u32>,
    /// When its samples arrive.
    pub arrivals: Arrivals,
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
}

impl Line {
    /// If its samples are to wait (`waits`) for their periods, a backlogged stream has one in each.
    pub(super) fn new(mut spec: Spec, waits: bool) -> Self {
        let contract = spec.terms.contract().filter(|_| waits);
        if let (Arrivals::Backlogged, Some(contract)) = (&spec.arrivals, contract) {
            spec.arrivals =
                Arrivals::Every { first: Instant::ZERO, every: contract.period, count: u64::MAX };
        }
        Self { spec, seq: 0, head: None, held: None }
    }

    /// When the sample at the head arrived, or the next one will.
    pub(super) fn arrival(&self) -> Option<Instant> {
        self.spec.arrivals.nth(self.seq)
    }

    pub(super) fn is_backlogged(&self) -> bool {
        self.spec.arrivals == Arrivals::Backlogged
    }

    /// Its samples come one `period` apart, so that each begins its own.
    pub(super) fn is_periodic(&self, period: Duration) -> bool {
        matches!(self.spec.arrivals, Arrivals::Every { every, .. } if every == period)
    }
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
}

impl HeadState {
    pub(super) const fn new(bytes: u32, since: Instant) -> Self {
        Self { left: bytes, sent: 0, busy: Duration::ZERO, since }
    }
}
