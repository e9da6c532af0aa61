//! A load to measure disciplines under: streams that always have a head, on a link that is always busy.
//!
//! Every sample is sent in one piece and takes one slot of 1 µs. Periods begin scattered over the
//! streams, so that neither the order of streams nor that of memory is the order of deadlines.
//! Contracts ask for 1.1 times what the link has, and tolerate the loss of one sample in ten: what they
//! are owed just fits, about one sample in eleven is missed, and windows change all the time. Less load
//! would miss nothing, more would measure how a discipline breaks promises rather than how it keeps
//! them. The same numbers give the same decisions.

use crate::contract::{Contract, Late, LossTolerance};
use crate::discipline::{
    Class, Discipline, Eligibility, Head, Miss, Policy, Scheduler, StreamIndex, Terms,
};
use crate::time::{Duration, Instant};

/// How long the link needs for a sample.
pub const SLOT: Duration = Duration::from_nanos(1_000);

/// Bytes of a sample: what 1 µs carries at 10 Gbit/s.
const BYTES: u32 = 1_250;

/// The windows that streams have in turn: 0.9 of the samples are owed on average. They are equally long,
/// as DWCS needs them to keep them all.
const WINDOWS: [(u32, u32); 4] = [(1, 10), (2, 10), (0, 10), (1, 10)];

/// A discipline, its streams and the link's time.
#[derive(Clone, Debug)]
pub struct Load {
    discipline: Discipline,
    now: Instant,
    served: u64,
    missed: u64,
    violated: u64,
}

impl Load {
    /// `streams` streams under `policy`, each with its first head.
    ///
    /// VDS gets periods that differ up to eightfold; all others get equal ones.
    /// Both owe 0.98 to 0.99 of the link. DWCS, which looks at windows only between equal deadlines,
    /// violates some: periods that begin together would spare it that, but go by the order of memory.
    #[must_use]
    pub fn new(policy: Policy, eligibility: Eligibility, streams: u32) -> Self {
        let mut load = Self {
            discipline: Discipline::new(policy, eligibility),
            now: Instant::ZERO,
            served: 0,
            missed: 0,
            violated: 0,
        };
        load.discipline.reserve(streams as usize);
        // Every stream is somewhere in its first period when the link begins to send. Would some have
        // waited for longer, they would be missed first, and go on in the order of their indexes.
        load.now = Instant::ZERO + SLOT.mul_div(u64::from(streams) * 8, 1);
        let mut random = 1;
        for index in 0..streams {
            let (terms, period) = terms(policy, index, streams);
            load.discipline.join(StreamIndex(index), terms);
            random = scatter(random);
            let begins = load.now - Duration::from_nanos(random % period.as_nanos());
            let head = Head::whole(begins, SLOT, BYTES);
            load.discipline.handle_head(StreamIndex(index), head);
        }
        load
    }

    /// One packet: misses are handled, the next stream is picked, its head is served, and another
    /// follows. This, and nothing else, is a decision.
    #[inline]
    pub fn decide(&mut self) {
        while self.handle_miss() {}
        let Some(stream) = self.discipline.pick(self.now) else { return };
        self.now += SLOT;
        let (served, next) = ((BYTES, self.now), Some(self.head()));
        let service = self.discipline.handle_served_and_next(stream, served, next);
        self.served += 1;
        self.violated += u64::from(service.violated);
    }

    /// Handles one miss; false if none is known now.
    #[inline]
    pub fn handle_miss(&mut self) -> bool {
        let Some(miss) = self.discipline.poll_missed(self.now) else { return false };
        self.note_miss(miss);
        true
    }

    #[inline(never)]
    fn note_miss(&mut self, miss: Miss) {
        self.missed += 1;
        self.violated += u64::from(miss.violated);
        if miss.dropped {
            self.discipline.handle_head(miss.stream, self.head());
        }
    }

    /// It has waited; what came before its period counts as of then.
    #[inline]
    const fn head(&self) -> Head {
        Head::whole(self.now, SLOT, BYTES)
    }

    /// The link stands still for so long.
    pub fn stall(&mut self, time: Duration) {
        self.now += time;
    }

    /// Samples served so far.
    #[must_use]
    pub const fn served(&self) -> u64 {
        self.served
    }

    /// Samples missed so far.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// Windows violated so far.
    #[must_use]
    pub const fn violated(&self) -> u64 {
        self.violated
    }
}

/// The terms of one stream of `streams`, and its period.
fn terms(policy: Policy, index: u32, streams: u32) -> (Terms, Duration) {
    let slots = match policy {
        // 1/1, 1/2, 1/4 and 1/8 are 0.469 on average: 0.98 = 0.9 × 0.469 ÷ 0.43.
        Policy::Vds => (u64::from(streams) * 430) << (index % 4),
        Policy::Fifo
        | Policy::StaticPriority
        | Policy::Edf
        | Policy::DelayEdd
        | Policy::Dwcs { .. }
        | Policy::Drr
        | Policy::Wf2qPlus
        | Policy::Hfsc => u64::from(streams) * 910,
    };
    let period = SLOT.mul_div(slots.max(1), 1_000);
    let (x, y) =
        WINDOWS.get((index + index / 4) as usize % WINDOWS.len()).copied().unwrap_or((0, 1));
    let loss = LossTolerance::new(x, y).unwrap_or(LossTolerance::NONE);
    let late = Late::Drop;
    let contract = Contract { period, deadline: period, loss, late, jitter: Duration::ZERO };
    let rate = u64::from(BYTES) * 1_000_000_000 / period.as_nanos();
    (Terms::new(Class::Contracted(contract)).with_rate(rate.max(1)), period)
}

/// The next of a sequence without order.
const fn scatter(last: u64) -> u64 {
    let mixed = last.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
