//! Compares DRR and WF²Q+ with naive schedulers, written directly from the rules of their papers: Shreedhar &
//! Varghese SIGCOMM 1995, Bennett & Zhang ToN 1997.

mod twin;

use super::random::SplitMix;
use paceline_sched::contract::Contract;
use paceline_sched::discipline::{
    Discipline, Eligibility, Head, Left, Policy, Scheduler, ServiceClass, StreamIndex, Terms,
};
use paceline_sched::time::{Duration, Instant};
use std::collections::VecDeque;
use twin::{Drr, Twin, Wf2q};

/// In a strict history the last stream never sends: it only fills Σr up.
const STREAMS: usize = 6;

/// The range of rates in a history.
#[derive(Clone, Copy)]
enum Rates {
    /// Any rate, from a quarter of a byte to dozens of segments per round.
    Rounds,
    /// Rates up to 5 times this one.
    Exact(u64),
    /// Powers of two, filled up to a sum of 64.
    Strict,
}

/// A link, its twin, and the queued samples as lists of segments.
struct Pair<T> {
    random: SplitMix,
    fast: Discipline,
    slow: T,
    rates: Rates,
    joined: [u64; STREAMS],
    waiting: [VecDeque<Vec<u32>>; STREAMS],
    now: Instant,
}

fn index(stream: usize) -> StreamIndex {
    StreamIndex(u32::try_from(stream).unwrap())
}

impl<T: Twin> Pair<T> {
    fn new(seed: u64, policy: Policy, slow: T, rates: Rates) -> Self {
        Self {
            random: SplitMix::new(seed),
            fast: Discipline::new(policy, Eligibility::OncePerPeriod),
            slow,
            rates,
            joined: [0; STREAMS],
            waiting: Default::default(),
            now: Instant::ZERO,
        }
    }

    fn live(&mut self) -> Result<(), String> {
        for _ in 0..self.random.within(5, 60) {
            self.step();
            self.look()?;
        }
        Ok(())
    }

    /// Drains the misses, then compares the choices of both.
    fn look(&mut self) -> Result<(), String> {
        while let Some(miss) = self.fast.poll_missed(self.now) {
            if miss.dropped {
                self.slow.withdrawn(miss.stream.0 as usize);
                self.follow(miss.stream.0 as usize);
            }
        }
        let picked = self.fast.pick(self.now).map(|stream| stream.0 as usize);
        self.slow.check(picked)?;
        if self.random.once_in(2) {
            self.send(picked);
            while self.random.once_in(3) {
                // A sample arrives while the picked one is being sent.
                let stream = usize::try_from(self.random.within(0, 4)).unwrap();
                if self.joined[stream] > 0 {
                    self.arrive(stream);
                }
            }
            return self.look();
        }
        Ok(())
    }

    fn step(&mut self) {
        let last = STREAMS - if matches!(self.rates, Rates::Strict) { 2 } else { 1 };
        let stream = usize::try_from(self.random.within(0, last as u64)).unwrap();
        match self.random.within(0, 15) {
            0..=1 => self.join(stream),
            2 => self.leave(stream),
            3 => self.withdraw(stream),
            4 => {
                self.fast.suspend(index(stream));
                self.slow.suspend(stream);
            }
            5..=6 => {
                self.fast.resume(index(stream));
                self.slow.resume(stream);
            }
            7 => self.now += Duration::from_nanos(self.random.within(0, 300)),
            _ if self.joined[stream] == 0 => self.join(stream),
            _ => self.arrive(stream),
        }
    }

    fn join(&mut self, stream: usize) {
        self.leave(stream);
        let (rate, counts) = match self.rates {
            Rates::Rounds => {
                let bits = self.random.within(18, 30);
                let rate = self.random.within(1 << bits, 2 << bits);
                (rate, rate)
            }
            Rates::Exact(scale) => {
                let weight = self.random.within(1, 5);
                (scale * weight, weight)
            }
            Rates::Strict => {
                let weight = self.random.one_of(&[1, 2, 4, 8]);
                (weight, weight)
            }
        };
        self.joined[stream] = counts;
        let class = if self.random.once_in(3) {
            let period = Duration::from_nanos(self.random.within(1, 400));
            let deadline = Duration::from_nanos(self.random.within(1, 400));
            ServiceClass::Contracted(Contract {
                period,
                deadline,
                ..Contract::every(Duration::from_nanos(1_000)).unwrap()
            })
        } else {
            ServiceClass::BestEffort
        };
        self.fast.join(index(stream), Terms::new(class).with_rate(rate));
        self.slow.join(stream, counts);
        self.fill_up();
    }

    fn leave(&mut self, stream: usize) {
        self.joined[stream] = 0;
        self.waiting[stream].clear();
        self.fast.leave(index(stream));
        self.slow.leave(stream);
        self.fill_up();
    }

    /// Sets the rate of the last stream so that Σr is 64 again.
    fn fill_up(&mut self) {
        if matches!(self.rates, Rates::Strict) {
            let others: u64 = self.joined.iter().sum();
            let filler = STREAMS - 1;
            let rate = 64 - others;
            self.fast.join(index(filler), Terms::new(ServiceClass::BestEffort).with_rate(rate));
            self.slow.join(filler, rate);
        }
    }

    fn arrive(&mut self, stream: usize) {
        let segments = self.random.within(1, 3);
        let sample = (0..segments).map(|_| u32::try_from(self.random.within(1, 60)).unwrap());
        let sample = sample.collect();
        self.waiting[stream].push_back(sample);
        if self.waiting[stream].len() == 1 {
            self.announce(stream);
        }
    }

    fn announce(&mut self, stream: usize) {
        let sample = &self.waiting[stream][0];
        let head = Head { arrived: self.now, left: left(sample) };
        self.fast.handle_head(index(stream), head);
        self.slow.head(stream, sample[0]);
    }

    /// Removes the head of the stream and announces the next one.
    fn follow(&mut self, stream: usize) {
        self.waiting[stream].pop_front();
        if !self.waiting[stream].is_empty() {
            self.announce(stream);
        }
    }

    fn withdraw(&mut self, stream: usize) {
        if !self.waiting[stream].is_empty() {
            self.fast.remove_head(index(stream));
            self.slow.withdrawn(stream);
            self.follow(stream);
        }
    }

    fn send(&mut self, picked: Option<usize>) {
        let Some(stream) = picked else { return };
        let segment = self.waiting[stream][0].remove(0);
        // The sent segment may differ in size from the announced one.
        let bytes = match self.random.within(0, 7) {
            0 => u32::try_from(self.random.within(1, 90)).unwrap(),
            _ => segment,
        };
        self.now += Duration::from_nanos(u64::from(bytes));
        let sample = &self.waiting[stream][0];
        self.slow.sent(stream, bytes, sample.first().copied());
        if sample.is_empty() {
            self.fast.handle_served(index(stream), bytes, self.now);
            self.follow(stream);
        } else {
            self.fast.handle_segment(index(stream), bytes, left(sample));
        }
    }
}

fn left(sample: &[u32]) -> Left {
    let service = Duration::from_nanos(sample.iter().copied().map(u64::from).sum());
    Left { service, segment: sample[0], last: sample.len() == 1 }
}

/// Runs the history of a seed under DRR.
pub(super) fn drr(seed: u64) -> Result<(), String> {
    Pair::new(seed, Policy::Drr, Drr::new(STREAMS), Rates::Rounds).live()
}

/// Runs the history of a seed under WF²Q+.
pub(super) fn wf2q(seed: u64) -> Result<(), String> {
    let strict = seed.is_multiple_of(2);
    let scale = [1, 3, 100, 250][usize::try_from(seed / 2 % 4).unwrap()];
    let rates = if strict { Rates::Strict } else { Rates::Exact(scale) };
    Pair::new(seed, Policy::Wf2qPlus, Wf2q::new(STREAMS, strict), rates).live()
}
