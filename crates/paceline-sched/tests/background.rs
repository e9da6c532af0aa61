//! Background streams take nothing from live streams but the rest of a segment.

use paceline_sched::contract::{Contract, Late, LossTolerance};
use paceline_sched::discipline::{
    Discipline, Eligibility, Head, Left, Policy, Scheduler, ServiceClass, StreamIndex,
};
use paceline_sched::time::{Duration, Instant};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;

const STREAMS: u32 = 5;
/// The transmission time of a segment, which is the longest time that it can delay a live stream.
const SEGMENT: u64 = 10;
/// The service time of a background sample that never ends.
const ENDLESS: Duration = Duration::from_secs(1_000);
const BACKGROUND: StreamIndex = StreamIndex(STREAMS);

/// A sample: its arrival, its stream, its number of segments.
type Sample = (u64, u32, u64);

struct Link {
    discipline: Discipline,
    now: u64,
    /// For each stream: the arrivals of its queued samples and their remaining segments.
    waiting: Vec<VecDeque<(u64, u64)>>,
    /// The end of each live segment, in order.
    ends: Vec<u64>,
    /// The longest time from arrival to end.
    delays: Vec<u64>,
    late: usize,
}

fn nanos(count: u64) -> Duration {
    Duration::from_nanos(count)
}

impl Link {
    fn new(policy: Policy, eligibility: Eligibility, classes: &[ServiceClass], busy: bool) -> Self {
        let mut discipline = Discipline::new(policy, eligibility);
        for (stream, &class) in (0..).zip(classes) {
            discipline.join(StreamIndex(stream), class);
        }
        if busy {
            discipline.join(BACKGROUND, ServiceClass::Background);
            let arrived = Instant::ZERO;
            discipline.handle_head(BACKGROUND, Head::whole(arrived, ENDLESS, 1));
        }
        let waiting = classes.iter().map(|_| VecDeque::new()).collect();
        let delays = vec![0; classes.len()];
        Self { discipline, now: 0, waiting, ends: Vec::new(), delays, late: 0 }
    }

    fn announce(&mut self, stream: u32) {
        if let Some(&(at, segments)) = self.waiting.get(stream as usize).and_then(|w| w.front()) {
            let (arrived, service) = (Instant::from_nanos(at), nanos(segments * SEGMENT));
            self.discipline.handle_head(StreamIndex(stream), Head::whole(arrived, service, 1));
        }
    }

    fn arrive(&mut self, (at, stream, segments): Sample) {
        let Some(waiting) = self.waiting.get_mut(stream as usize) else { return };
        waiting.push_back((at, segments));
        if waiting.len() == 1 {
            self.announce(stream);
        }
    }

    /// Sends one segment. Returns false if there is none.
    fn send(&mut self) -> bool {
        let now = Instant::from_nanos(self.now);
        while let Some(miss) = self.discipline.poll_missed(now) {
            assert!(!miss.dropped);
        }
        let Some(picked) = self.discipline.pick(now) else { return false };
        self.now += SEGMENT;
        if picked == BACKGROUND {
            let waits = self.waiting.iter().any(|waiting| !waiting.is_empty());
            assert!(!waits, "the background preceded live streams");
            self.discipline.handle_segment(
                BACKGROUND,
                1,
                Left { service: ENDLESS, segment: 1, last: false },
            );
            return true;
        }
        self.ends.push(self.now);
        let stream = picked.0 as usize;
        let (Some(waiting), Some(delay)) =
            (self.waiting.get_mut(stream), self.delays.get_mut(stream))
        else {
            panic!("picked {picked:?}, which does not exist");
        };
        let Some((at, left)) = waiting.front_mut() else { panic!("picked {picked:?} for nothing") };
        *left -= 1;
        if *left > 0 {
            let (service, last) = (nanos(*left * SEGMENT), *left == 1);
            self.discipline.handle_segment(picked, 1, Left { service, segment: 1, last });
        } else {
            *delay = (*delay).max(self.now - *at);
            waiting.pop_front();
            let served = self.discipline.handle_served(picked, 1, Instant::from_nanos(self.now));
            self.late += usize::from(!served.on_time);
            self.announce(picked.0);
        }
        true
    }

    fn run(&mut self, samples: &[Sample]) {
        let total: u64 = samples.iter().map(|(_, _, segments)| segments).sum();
        let mut samples = samples.iter().peekable();
        while (self.ends.len() as u64) < total {
            while let Some(&&sample) = samples.peek().filter(|(at, _, _)| *at <= self.now) {
                self.arrive(sample);
                samples.next();
            }
            if !self.send() {
                self.now = samples.peek().map_or(self.now, |(at, _, _)| *at);
            }
        }
    }
}

fn class() -> impl Strategy<Value = ServiceClass> {
    let contract = (20..400u64, 20..400u64, 0..3u32).prop_map(|(period, deadline, x)| {
        let loss = LossTolerance::new(x, 3).unwrap_or(LossTolerance::NONE);
        ServiceClass::Contracted(Contract {
            period: nanos(period),
            deadline: nanos(deadline),
            loss,
            late: Late::Send,
            jitter: nanos(0),
        })
    });
    prop_oneof![2 => contract, 1 => Just(ServiceClass::BestEffort)]
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    vec((0..60u64, 0..STREAMS, 1..5u64), 1..80).prop_map(|samples| {
        let mut now = 0;
        let mut at = |wait| {
            now += wait;
            now
        };
        samples.into_iter().map(|(wait, stream, segments)| (at(wait), stream, segments)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn live_work_is_never_more_than_a_segment_behind(
        classes in vec(class(), STREAMS as usize),
        samples in samples(),
        policy in prop::sample::select(vec![Policy::Fifo, Policy::DWCS, Policy::Vds]),
        once in any::<bool>(),
    ) {
        let eligibility =
            if once { Eligibility::OncePerPeriod } else { Eligibility::WorkConserving };
        let mut alone = Link::new(policy, eligibility, &classes, false);
        let mut beside = Link::new(policy, eligibility, &classes, true);
        alone.run(&samples);
        beside.run(&samples);
        for (alone, beside) in alone.ends.iter().zip(&beside.ends) {
            prop_assert!(*beside <= alone + SEGMENT, "{alone} became {beside}");
        }
    }
}

/// Two contracted streams and one of best effort that fit; each deadline has room for one segment.
#[test]
fn deadlines_with_room_for_a_segment_are_met_under_a_backlogged_background() {
    let contract = |period, deadline| {
        let contract =
            Contract::every(nanos(period)).and_then(|c| c.with_deadline(nanos(deadline)));
        ServiceClass::Contracted(contract.unwrap().with_late(Late::Send))
    };
    let classes = [contract(100, 30), contract(230, 70), ServiceClass::BestEffort];
    let each = |stream, period, segments: u64| {
        (0..500u64).map(move |n| (3 + n * period, stream, segments))
    };
    let mut samples: Vec<Sample> =
        each(0, 100, 1).chain(each(1, 230, 4)).chain(each(2, 170, 5)).collect();
    samples.sort_unstable();
    for policy in [Policy::DWCS, Policy::Vds] {
        let [alone, beside] = [false, true].map(|busy| {
            let mut link = Link::new(policy, Eligibility::OncePerPeriod, &classes, busy);
            link.run(&samples);
            link
        });
        assert_eq!((alone.late, beside.late), (0, 0), "{policy}");
        for (alone, beside) in alone.delays.iter().zip(&beside.delays) {
            assert!(*beside <= alone + SEGMENT, "{policy}: {alone} became {beside}");
        }
        assert!(beside.ends.len() == alone.ends.len() && beside.ends != alone.ends);
    }
}
