//! Runs of a link in virtual time.

mod classes;

use crate::input::Input;
use paceline_sched::discipline::{Policy, ServiceClass, StreamIndex, Terms};
use paceline_sched::timeline::{
    Ahead, Arrivals, ChosenSegment, Doubt, LinkTiming, Outcome, SampleDecision, Setup, Spec, Step,
    Tally, Timeline,
};
use paceline_sched::{Capacity, Contract, Duration, Instant, Late, LossTolerance};

const STEPS_MAX: usize = 2_000;
const STREAMS_MAX: u8 = 6;
/// Edge values of times; the last ones are the limits of their range.
const TIMES: [u64; 12] =
    [0, 1, 2, 3, 7, 10, 100, 1_000, 1_000_000, 1 << 40, u64::MAX - 1, u64::MAX];

fn time(input: &mut Input<'_>) -> u64 {
    let small = u64::from(input.byte());
    if small < 200 { small } else { input.one_of(&TIMES) }
}

fn contract(input: &mut Input<'_>) -> Contract {
    let y = u32::from(input.below(9));
    let loss = LossTolerance::new(u32::from(input.below(9)), y).unwrap_or(LossTolerance::EDF);
    Contract {
        period: Duration::from_nanos(time(input)),
        deadline: Duration::from_nanos(time(input)),
        loss,
        late: if input.flag() { Late::Drop } else { Late::Send },
        jitter: Duration::from_nanos(if input.flag() { time(input) } else { 0 }),
    }
}

fn terms(input: &mut Input<'_>) -> Terms {
    let class = match input.below(5) {
        0 => ServiceClass::BestEffort,
        1 => ServiceClass::Background,
        _ => ServiceClass::Contracted(contract(input)),
    };
    let mut terms = Terms::new(class);
    if input.below(4) == 0 {
        terms = terms.with_priority(u32::from(input.byte()));
    }
    if input.below(4) == 0 {
        terms = terms.with_rate(time(input));
    }
    terms
}

fn spec(input: &mut Input<'_>) -> Spec {
    let arrivals = match input.below(3) {
        0 => Arrivals::Backlogged,
        1 => Arrivals::Every {
            first: Instant::from_nanos(time(input)),
            every: Duration::from_nanos(time(input)),
            count: time(input),
        },
        _ => {
            let mut instants: Vec<_> = (0..input.below(12)).map(|_| time(input)).collect();
            instants.sort_unstable();
            Arrivals::At(instants.into_iter().map(Instant::from_nanos).collect())
        }
    };
    let sizes = (0..input.below(3)).map(|_| u32::from(input.u16())).collect();
    Spec { terms: terms(input), sizes, arrivals, police: None, class: None }
}

fn setup(input: &mut Input<'_>) -> Setup {
    let link = match (input.flag(), time(input)) {
        (true, slot) => LinkTiming::Slots(Duration::from_nanos(slot)),
        (false, rate) => LinkTiming::Capacity(Capacity::from_bytes_per_s(rate.max(1)).unwrap()),
    };
    Setup {
        policy: input.one_of(&Policy::ALL),
        ahead: input.one_of(&[Ahead::Waits, Ahead::Shares, Ahead::Competes]),
        link,
        segment: u32::from(input.u16()),
        end: Instant::from_nanos(time(input).saturating_mul(16)),
    }
}

/// The observed behaviour of a stream.
#[derive(Clone)]
struct Seen {
    spec: Spec,
    tally: Tally,
    next: u64,
    /// Bytes already chosen of the sample `next`.
    sent: u32,
    /// The earliest start of the period of the sample `next`, by the contract.
    turn: u128,
}

/// The observed run: the instant at which the link is idle again, and each stream.
struct Watch {
    setup: Setup,
    streams: Vec<Seen>,
    free: Instant,
}

/// Runs `data` as a link and its streams and checks the invariants of any run.
///
/// The same bytes are also read as a link with service curves, a tree of classes and policers.
pub fn schedule(data: &[u8]) {
    classes::run(data);
    let mut input = Input::new(data);
    let setup = setup(&mut input);
    let count = 1 + input.below(STREAMS_MAX);
    let specs: Vec<_> = (0..count).map(|_| spec(&mut input)).collect();
    for doubt in Doubt::all(&setup, &specs) {
        assert!(!doubt.to_string().is_empty());
    }
    let seen = |spec: &Spec| {
        let loss = spec.terms.contract().map_or(LossTolerance::EDF, |contract| contract.loss);
        Seen { spec: spec.clone(), tally: Tally::new(loss), next: 0, sent: 0, turn: 0 }
    };
    let streams = specs.iter().map(seen).collect();
    let mut watch = Watch { setup, streams, free: Instant::ZERO };
    let mut timeline = Timeline::new(setup, specs);
    for _ in 0..STEPS_MAX {
        match timeline.next() {
            Some(Step::Chosen(pick)) => watch.chosen(pick),
            Some(Step::Decided(decision)) => watch.decided(&decision),
            None => return watch.ended(&mut timeline),
        }
    }
}

impl Watch {
    fn chosen(&mut self, pick: ChosenSegment) {
        assert!(pick.at >= self.free && pick.at < self.setup.end, "{pick:?}");
        assert!(pick.bytes >= 1 && pick.bytes <= self.setup.segment.max(1), "{pick:?}");
        let waits = self.setup.ahead == Ahead::Waits;
        if pick.at > self.free {
            for seen in &self.streams {
                let waiting = waits && seen.spec.terms.contract().is_some();
                let arrived = seen.spec.arrivals.nth(seen.next);
                assert!(
                    waiting || arrived.is_none_or(|at| at >= pick.at),
                    "idle although due: {:?}",
                    seen.spec
                );
            }
        }
        let seen = &mut self.streams[pick.stream.0 as usize];
        assert_eq!(pick.seq, seen.next);
        assert!(seen.spec.arrivals.nth(pick.seq).is_some_and(|at| at <= pick.at), "{pick:?}");
        if let Some(contract) = seen.spec.terms.contract().filter(|_| waits) {
            // Near the end of the range a deadline no longer implies the start of its period.
            let release = seen.release(&self.setup, contract, pick.seq);
            let in_range = release + wide(contract.deadline) < u128::from(u64::MAX / 2);
            assert!(!in_range || u128::from(pick.at.as_nanos()) >= release, "{pick:?}");
        }
        seen.sent += pick.bytes;
        assert!(seen.sent <= seen.spec.size(pick.seq));
        self.free = pick.at + self.setup.link.time_for(pick.bytes);
    }

    fn decided(&mut self, decision: &SampleDecision) {
        let (setup, free) = (self.setup, self.free);
        let seen = &mut self.streams[decision.stream.0 as usize];
        assert_eq!((decision.seq, decision.bytes), (seen.next, seen.sent));
        if let Some(finish) = decision.finish {
            assert_eq!((finish, seen.sent), (free, seen.spec.size(seen.next)));
            assert!(decision.at < finish || finish == Instant::FAR);
        }
        assert_eq!(decision.finish.is_none(), decision.outcome == Outcome::Dropped);
        assert_eq!(decision.window.is_some(), seen.spec.terms.contract().is_some());
        assert!(decision.window.is_none_or(|window| window.x <= window.y));
        match seen.spec.terms.contract() {
            Some(contract) => seen.check(&setup, contract, decision),
            None => assert_eq!(decision.outcome, Outcome::OnTime),
        }
        seen.tally.record(decision);
        (seen.next, seen.sent) = (seen.next + 1, 0);
    }

    fn ended(&self, timeline: &mut Timeline) {
        assert!(timeline.next().is_none(), "the end is final");
        for (place, seen) in (0..).zip(&self.streams) {
            assert_eq!(seen.tally.decided(), seen.next);
            let regular = seen.spec.arrivals != Arrivals::Backlogged;
            if regular {
                let offered = seen.spec.arrivals.before(self.setup.end);
                assert_eq!(timeline.waiting(StreamIndex(place)) + seen.next, offered);
            }
        }
    }
}

fn wide(duration: Duration) -> u128 {
    u128::from(duration.as_nanos())
}

impl Seen {
    /// Returns the arrival time of the sample `seq`.
    fn arrived(&self, setup: &Setup, contract: Contract, seq: u64) -> u128 {
        match setup.ahead {
            // One sample per period, from 0 on.
            Ahead::Waits if self.spec.arrivals == Arrivals::Backlogged => {
                wide(contract.period).max(1).saturating_mul(u128::from(seq))
            }
            Ahead::Waits | Ahead::Shares | Ahead::Competes => {
                self.spec.arrivals.nth(seq).unwrap().as_nanos().into()
            }
        }
    }

    /// Returns the start of the period of the head, the sample `seq`, by the contract's clock.
    fn release(&self, setup: &Setup, contract: Contract, seq: u64) -> u128 {
        let arrived = self.arrived(setup, contract, seq);
        let early = arrived + wide(contract.jitter) < self.turn;
        if early { self.turn - wide(contract.jitter) } else { arrived }
    }

    /// Checks the outcome against the deadline by the contract's clock, unless a value exceeds its range.
    fn check(&mut self, setup: &Setup, contract: Contract, decision: &SampleDecision) {
        let arrived = self.arrived(setup, contract, decision.seq);
        let release = self.release(setup, contract, decision.seq);
        self.turn = self.turn.max(arrived) + wide(contract.period);
        let deadline = release + wide(contract.deadline);
        if deadline.max(self.turn) >= u128::from(u64::MAX / 2) {
            return;
        }
        let left = setup.service(self.spec.size(decision.seq) - decision.bytes);
        let finish = match decision.finish {
            Some(finish) => u128::from(finish.as_nanos()),
            None => u128::from(decision.at.as_nanos()) + wide(left),
        };
        let late = decision.outcome != Outcome::OnTime;
        // A segmented sample is checked by its remaining bytes, so rounding alone may make it late.
        if decision.finish.is_none() || setup.segment >= self.spec.size(decision.seq) {
            assert_eq!(finish > deadline, late, "{decision:?} {contract:?}");
        } else if finish > deadline {
            assert!(late, "{decision:?} {contract:?}");
        }
    }
}
