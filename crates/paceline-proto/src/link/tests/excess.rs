//! Traffic beyond a contract delays only its own stream, and bunching on the path does not count as excess.

use super::*;
use crate::budget::counted;
use crate::plan::Demand;
use crate::reason::Excess;
use paceline_sched::{Late, LossTolerance};

const OTHER: StreamIndex = StreamIndex(1);
const FILLER: StreamIndex = StreamIndex(2);
const PERIOD: Duration = Duration::from_millis(20);
const DECLARED: usize = 64;

fn contract() -> Contract {
    Contract {
        period: PERIOD,
        deadline: PERIOD,
        loss: LossTolerance::NONE,
        late: Late::Send,
        jitter: Duration::from_millis(2),
    }
}

/// Returns a contracted stream of samples of [`DECLARED`] bytes, whose samples may be delayed upstream by
/// `upstream`.
fn promised(upstream: Duration, declared: bool) -> StreamSpec {
    let bytes = u64::try_from(counted(DECLARED as u128)).unwrap();
    let (burst, bytes_per_s) = (bytes + bytes / 10, bytes * 50);
    let demand =
        Demand { bytes, burst, bytes_per_s, declared: true, varies: false, saves_loss: false };
    let demand = declared.then_some(demand);
    StreamSpec { upstream, demand, ..to(node(2), Kind::Data, Some(contract())) }
}

/// A link of 8 Mbit/s that is filled with best effort, and two contracted streams.
struct Bench {
    a: End,
    b: End,
    now: Instant,
    filled: u64,
}

impl Bench {
    fn new(policy: Policy, first: StreamSpec) -> Self {
        let capacity = Capacity::from_bits_per_s(8_000_000).ok();
        let (mut a, mut b) = pair(LinkSpec { capacity, policy, ..LinkSpec::default() });
        let mut now = at(1_000);
        talk(&mut now, &mut a, &mut b, 4);
        assert!(a.link.open_stream(STREAM, first));
        assert!(a.link.open_stream(OTHER, promised(Duration::ZERO, true)));
        assert!(a.link.open_stream(FILLER, to(node(2), Kind::Data, None)));
        Self { a, b, now, filled: 1_000_000 }
    }

    /// Advances by 0.1 ms.
    fn step(&mut self) {
        self.now += Duration::from_micros(100);
        while self.a.link.has_room(self.now, FILLER) {
            self.a.link.handle_sample(self.now, FILLER, sample(self.now, self.filled, 5_000));
            self.filled += 1;
        }
        self.a.poll(self.now);
        let Self { a, b, now, .. } = self;
        a.sent.drain(..).for_each(|frame| b.hear(*now, frame));
        b.poll(*now);
        b.sent.drain(..).for_each(|frame| a.hear(*now, frame));
    }

    fn excess(&self, stream: StreamIndex) -> Excess {
        self.a.link.counters(stream).unwrap().excess
    }
}

/// Returns the longest delay of the other stream's samples while the first stream sends `count` samples of
/// `bytes` in each period.
fn others_wait(bench: &mut Bench, count: u64, bytes: usize) -> Duration {
    let mut longest = Duration::ZERO;
    for round in 0..50 {
        let came = bench.now;
        for number in 0..count {
            let seq = round * count + number;
            bench.a.link.handle_sample(came, STREAM, sample(came, seq, bytes));
        }
        let mine = 500_000 + round;
        bench.a.link.handle_sample(came, OTHER, sample(came, mine, DECLARED));
        while bench.now < came + PERIOD {
            let here = bench.b.got.contains(&mine);
            bench.step();
            if !here {
                longest = longest.max(bench.now.since(came));
            }
        }
    }
    longest
}

const POLICIES: [Policy; 5] =
    [Policy::Vds, Policy::DWCS, Policy::Edf, Policy::DelayEdd, Policy::StaticPriority];

#[test]
fn oversized_samples_delay_others_by_at_most_a_frame() {
    for policy in POLICIES {
        let mut held = Bench::new(policy, promised(Duration::ZERO, true));
        // A frame takes 2 ms: one in transmission, and one that carries the declared size.
        let wait = others_wait(&mut held, 1, 15_000);
        assert!(wait <= Duration::from_micros(4_500), "{policy}: {wait}");
        assert_eq!(held.excess(STREAM), Excess { early: 0, long: 50 });
        assert_eq!(held.excess(OTHER), Excess::default());
        assert!(held.b.got.iter().any(|seq| *seq < 50), "{policy}: it is not dropped");
        // Without a declared size, the other samples wait for all of it.
        let mut free = Bench::new(policy, promised(Duration::ZERO, false));
        let waits = others_wait(&mut free, 1, 15_000);
        assert!(waits > Duration::from_millis(10), "{policy}: {waits}");
        assert_eq!(free.excess(STREAM), Excess::default());
    }
}

#[test]
fn excess_samples_delay_others_by_at_most_a_frame() {
    for policy in POLICIES {
        let mut bench = Bench::new(policy, promised(Duration::ZERO, true));
        let wait = others_wait(&mut bench, 40, DECLARED);
        assert!(wait <= Duration::from_micros(4_500), "{policy}: {wait}");
        let Excess { early, long } = bench.excess(STREAM);
        assert!(early > 1_900 && long == 0, "{policy}: {early} of 2,000");
        assert_eq!(bench.excess(OTHER), Excess::default());
    }
}

#[test]
fn bursts_from_earlier_hops_are_no_excess_and_stay_on_time() {
    let upstream = Duration::from_millis(90);
    for policy in POLICIES {
        let mut bench = Bench::new(policy, promised(upstream, true));
        for group in 0..10 {
            // Five samples of five periods, as early as jitter allows, arrive together and as late as
            // possible.
            let first = bench.now;
            let published_at = |n: u64| first + PERIOD.mul_div(n, 1);
            while bench.now < first + upstream {
                bench.step();
            }
            for n in 0..5 {
                let early = Duration::from_millis(2 * (n % 2));
                let mut bunched = sample(bench.now, group * 5 + n, DECLARED);
                bunched.published_at = (published_at(n) - early).min(bench.now);
                bench.a.link.handle_sample(bench.now, STREAM, bunched);
            }
            while bench.now < published_at(5) {
                bench.step();
            }
        }
        while bench.now < at(3_000) {
            bench.step();
        }
        assert_eq!(bench.excess(STREAM), Excess::default(), "{policy}");
        let counters = bench.a.link.counters(STREAM).unwrap();
        assert_eq!((counters.sent, counters.late), (50, 0), "{policy}: {counters:?}");
    }
}
