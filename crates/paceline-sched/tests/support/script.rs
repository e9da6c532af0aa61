//! Drives a discipline and its twin through the same random life of a link, and compares all that can
//! be seen after every step.

use super::twin::{Rules, Twin};
use paceline_sched::contract::{Contract, Late, LossTolerance};
use paceline_sched::discipline::{
    Class, Discipline, Eligibility, Head, Left, Policy, Scheduler, StreamIndex,
};
use paceline_sched::time::{Duration, Instant};
use proptest::prelude::*;
use std::collections::VecDeque;

/// How many streams there may be: few, so that deadlines and windows collide.
const STREAMS: u32 = 6;
/// Longest service of one segment, in nanoseconds.
const SEGMENT: u64 = 4;

/// One event on the link.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Join(u32, Class),
    Leave(u32),
    /// A sample joins the stream's queue.
    Arrive(u32, u64),
    /// The head is withdrawn.
    Remove(u32),
    /// Whoever is picked sends so many segments.
    Send(u8),
    Idle(u64),
}

fn tolerance() -> impl Strategy<Value = LossTolerance> {
    let window = (1..6u32).prop_flat_map(|y| (0..=y, Just(y)));
    let window = window.prop_map(|(x, y)| LossTolerance::new(x, y).unwrap_or(LossTolerance::EDF));
    prop_oneof![5 => window, 1 => Just(LossTolerance::EDF)]
}

fn contract() -> impl Strategy<Value = Contract> {
    let period = prop_oneof![Just(8u64), Just(16), 1..40u64];
    let deadline = prop_oneof![2 => Just(None), 1 => (1..60u64).prop_map(Some)];
    let late = prop_oneof![Just(Late::Drop), Just(Late::Send)];
    let jitter = prop_oneof![2 => Just(0u64), 1 => 0..12u64];
    (period, deadline, tolerance(), late, jitter).prop_map(
        |(period, deadline, loss, late, jitter)| Contract {
            period: Duration::from_nanos(period),
            deadline: Duration::from_nanos(deadline.unwrap_or(period)),
            loss,
            late,
            jitter: Duration::from_nanos(jitter),
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let class = prop_oneof![
        4 => contract().prop_map(Class::Contracted),
        1 => Just(Class::BestEffort),
        1 => Just(Class::Background)
    ];
    prop_oneof![
        2 => (0..STREAMS, class).prop_map(|(stream, class)| Event::Join(stream, class)),
        1 => (0..STREAMS).prop_map(Event::Leave),
        12 => (0..STREAMS, 1..14u64).prop_map(|(stream, service)| Event::Arrive(stream, service)),
        1 => (0..STREAMS).prop_map(Event::Remove),
        16 => (1..4u8).prop_map(Event::Send),
        5 => (0..20u64).prop_map(Event::Idle),
        1 => (100..2_000u64).prop_map(Event::Idle),
    ]
}

/// The eligibility and the events of one life.
pub(crate) fn life() -> impl Strategy<Value = (Eligibility, Vec<Event>)> {
    let eligibility = prop_oneof![
        2 => Just(Eligibility::OncePerPeriod),
        1 => Just(Eligibility::WorkConserving)
    ];
    let joined = proptest::collection::vec(contract(), 1..5).prop_map(|contracts| {
        (0..)
            .zip(contracts)
            .map(|(stream, contract)| Event::Join(stream, Class::Contracted(contract)))
    });
    let events = proptest::collection::vec(event(), 1..120);
    let events = (joined, events).prop_map(|(joined, events)| joined.chain(events).collect());
    (eligibility, events)
}

/// Both links, and what a caller keeps beside them.
pub(crate) struct Pair<R: Rules> {
    fast: Discipline,
    slow: Twin<R>,
    now: Instant,
    waiting: Vec<VecDeque<Head>>,
    /// Service left of each announced head.
    left: Vec<Option<u64>>,
}

impl<R: Rules> Pair<R> {
    pub(crate) fn new(policy: Policy, eligibility: Eligibility) -> Self {
        Self {
            fast: Discipline::new(policy, eligibility),
            slow: Twin::new(eligibility, STREAMS as usize),
            now: Instant::ZERO,
            waiting: (0..STREAMS).map(|_| VecDeque::new()).collect(),
            left: (0..STREAMS).map(|_| None).collect(),
        }
    }

    pub(crate) fn step(&mut self, event: &Event) -> Result<(), TestCaseError> {
        match *event {
            Event::Join(stream, class) => {
                self.forget(stream);
                self.fast.join(StreamIndex(stream), class);
                self.slow.join(StreamIndex(stream), class);
            }
            Event::Leave(stream) => {
                self.forget(stream);
                self.fast.leave(StreamIndex(stream));
                self.slow.leave(StreamIndex(stream));
            }
            Event::Arrive(stream, service) => {
                let head = Head::whole(self.now, Duration::from_nanos(service), 1);
                self.waiting[stream as usize].push_back(head);
                self.announce(stream);
            }
            Event::Remove(stream) => {
                let fast = self.fast.remove_head(StreamIndex(stream));
                prop_assert_eq!(fast, self.slow.remove_head(StreamIndex(stream)));
                self.left[stream as usize] = None;
                self.announce(stream);
            }
            Event::Send(segments) => {
                for _ in 0..segments {
                    self.send()?;
                }
            }
            Event::Idle(nanos) => self.now += Duration::from_nanos(nanos),
        }
        self.drain()?;
        self.compare()?;
        self.nothing_changes_before_next_change()
    }

    fn forget(&mut self, stream: u32) {
        self.waiting[stream as usize].clear();
        self.left[stream as usize] = None;
    }

    /// Announces the next head if there is none and one waits. Streams that never joined get theirs
    /// announced too, which changes nothing.
    fn announce(&mut self, stream: u32) {
        if self.left[stream as usize].is_some() {
            return;
        }
        if let Some(head) = self.waiting[stream as usize].pop_front() {
            self.left[stream as usize] = Some(head.left.service.as_nanos());
            self.fast.handle_head(StreamIndex(stream), head);
            self.slow.handle_head(StreamIndex(stream), head);
        }
    }

    fn send(&mut self) -> Result<(), TestCaseError> {
        self.drain()?;
        let picked = self.fast.pick(self.now);
        prop_assert_eq!(picked, self.slow.pick(self.now), "pick at {}", self.now);
        let Some(stream) = picked else { return Ok(()) };
        let Some(left) = self.left[stream.0 as usize] else {
            return Err(TestCaseError::fail("picked a stream without a head"));
        };
        let segment = left.min(SEGMENT);
        self.now += Duration::from_nanos(segment);
        if segment < left {
            let left = left - segment;
            self.left[stream.0 as usize] = Some(left);
            let rest = Left { service: Duration::from_nanos(left), segment: 1 };
            self.fast.handle_segment(stream, 1, rest);
            self.slow.handle_segment(stream, Duration::from_nanos(left));
        } else {
            self.left[stream.0 as usize] = None;
            let fast = self.fast.handle_served(stream, 1, self.now);
            prop_assert_eq!(fast, self.slow.handle_served(stream, self.now));
            self.announce(stream.0);
        }
        Ok(())
    }

    fn drain(&mut self) -> Result<(), TestCaseError> {
        loop {
            let miss = self.fast.poll_missed(self.now);
            prop_assert_eq!(miss, self.slow.poll_missed(self.now), "misses at {}", self.now);
            let Some(miss) = miss else { return Ok(()) };
            if miss.dropped {
                self.left[miss.stream.0 as usize] = None;
                self.announce(miss.stream.0);
            }
        }
    }

    fn compare(&mut self) -> Result<(), TestCaseError> {
        for stream in (0..STREAMS).map(StreamIndex) {
            prop_assert_eq!(self.fast.window(stream), self.slow.window(stream), "{:?}", stream);
            prop_assert_eq!(self.fast.deadline(stream), self.slow.deadline(stream), "{:?}", stream);
        }
        prop_assert_eq!(self.fast.pick(self.now), self.slow.pick(self.now), "at {}", self.now);
        Ok(())
    }

    /// Asked at any instant before it, a link that nobody touched gives the answers of now; at the
    /// instant itself there is at least a reason to ask.
    fn nothing_changes_before_next_change(&mut self) -> Result<(), TestCaseError> {
        let picked = self.fast.pick(self.now);
        let change = self.fast.next_change(self.now);
        prop_assert!(change.is_none_or(|at| at > self.now));
        let last =
            change.map_or(self.now + Duration::from_secs(1), |at| at - Duration::from_nanos(1));
        let half = self.now + Duration::from_nanos(last.since(self.now).as_nanos() / 2);
        for at in [half, last] {
            let mut later = self.fast.clone();
            prop_assert_eq!(later.poll_missed(at), None, "at {} of {:?}", at, change);
            prop_assert_eq!(later.pick(at), picked, "at {} of {:?}", at, change);
            for stream in (0..STREAMS).map(StreamIndex) {
                prop_assert_eq!(later.window(stream), self.fast.window(stream));
                prop_assert_eq!(later.deadline(stream), self.fast.deadline(stream));
            }
        }
        Ok(())
    }
}
