//! A workload for measuring disciplines: every stream always has a head, and the link is always busy.
//!
//! Every sample is sent in one piece and takes one slot of 1 µs. The streams' periods start at scattered
//! instants, so neither the order of streams nor the order in memory is the order of deadlines.
//!
//! The contracts request 1.1 times the capacity of the link and tolerate the loss of one sample in ten.
//! The service owed just fits, about one sample in eleven misses, and windows change all the time. With
//! less load nothing would miss. With more load the benchmark would measure how a discipline breaks
//! contracts, not how it keeps them. The same parameters give the same decisions.

use crate::contract::{Contract, Late, LossTolerance};
use crate::discipline::{
    Discipline, Eligibility, Head, Miss, Policy, Scheduler, ServiceClass, StreamIndex, Terms,
};
use crate::time::{Duration, Instant};

/// The transmission time of a sample.
pub const SLOT: Duration = Duration::from_nanos(1_000);

/// The size of a sample in bytes: 1 µs at 10 Gbit/s.
const BYTES: u32 = 1_250;

/// The loss tolerances, assigned to the streams in rotation; on average 0.9 of the samples are owed. All
/// windows have the same length, because DWCS can keep all of them only then.
const WINDOWS: [(u32, u32); 4] = [(1, 10), (2, 10), (0, 10), (1, 10)];

/// A discipline, its streams and the link's time.
#[derive(Clone, Debug)]
pub struct Workload {
    discipline: Discipline,
    now: Instant,
    served: u64,
    missed: u64,
    violated: u64,
}

impl Workload {
    /// Returns a workload of `streams` streams under `policy`, each with its first head.
    ///
    /// VDS gets periods that differ up to eightfold; all other disciplines get equal periods. Both workloads
    /// owe 0.98 to 0.99 of the link. DWCS compares windows only at equal deadlines, so it violates some.
    /// Periods that begin together would avoid that, but then the order in memory would be the order of
    /// service.
    #[must_use]
    pub fn new(policy: Policy, eligibility: Eligibility, streams: u32) -> Self {
        let mut workload = Self {
            discipline: Discipline::new(policy, eligibility),
            now: Instant::ZERO,
            served: 0,
            missed: 0,
            violated: 0,
        };
        workload.discipline.reserve(streams as usize);
        // The link starts to send when every stream is in its first period. If some streams had waited
        // longer, they would miss first and then continue in the order of their indices.
        workload.now = Instant::ZERO + SLOT.mul_div(u64::from(streams) * 8, 1);
        let mut random = 1;
        for index in 0..streams {
            let (terms, period) = terms(policy, index, streams);
            workload.discipline.join(StreamIndex(index), terms);
            random = scatter(random);
            let begins = workload.now - Duration::from_nanos(random % period.as_nanos());
            let head = Head::whole(begins, SLOT, BYTES);
            workload.discipline.handle_head(StreamIndex(index), head);
        }
        workload
    }

    /// Makes one scheduling decision: handles misses, picks the next stream, serves its head and adds
    /// the next one.
    ///
    /// A benchmark measures exactly this.
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

    /// Handles one miss. Returns false if no more are due.
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

    /// The stream was backlogged, so the discipline dates a head that arrived before its period by the
    /// period.
    #[inline]
    const fn head(&self) -> Head {
        Head::whole(self.now, SLOT, BYTES)
    }

    /// Stops the link for `time`.
    pub fn stall(&mut self, time: Duration) {
        self.now += time;
    }

    /// Returns the number of samples served so far.
    #[must_use]
    pub const fn served(&self) -> u64 {
        self.served
    }

    /// Returns the number of samples missed so far.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// Returns the number of windows violated so far.
    #[must_use]
    pub const fn violated(&self) -> u64 {
        self.violated
    }
}

/// Returns the terms of stream `index` of `streams`, and its period.
fn terms(policy: Policy, index: u32, streams: u32) -> (Terms, Duration) {
    let slots = match policy {
        // The mean of 1/1, 1/2, 1/4 and 1/8 is 0.469, so the load is 0.9 × 0.469 ÷ 0.43 = 0.98.
        Policy::Vds => (u64::from(streams) * 430) << (index % 4),
        Policy::Fifo
        | Policy::StaticPriority
        | Policy::Edf
        | Policy::DelayEdd
        | Policy::Dwcs { .. }
        | Policy::Drr
        | Policy::Wf2qPlus
        | Policy::Hfsc
        | Policy::Rcsp
        | Policy::StopAndGo
        | Policy::Rpq => u64::from(streams) * 910,
    };
    let period = SLOT.mul_div(slots.max(1), 1_000);
    let (x, y) =
        WINDOWS.get((index + index / 4) as usize % WINDOWS.len()).copied().unwrap_or((0, 1));
    let loss = LossTolerance::new(x, y).unwrap_or(LossTolerance::NONE);
    let late = Late::Drop;
    let contract = Contract { period, deadline: period, loss, late, jitter: Duration::ZERO };
    let rate = u64::from(BYTES) * 1_000_000_000 / period.as_nanos();
    (Terms::new(ServiceClass::Contracted(contract)).with_rate(rate.max(1)), period)
}

/// Returns the next number of a pseudo-random sequence.
const fn scatter(last: u64) -> u64 {
    let mixed = last.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
