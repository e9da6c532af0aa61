//! Links that measure their capacity, through a bottleneck of another rate.

use super::*;
use crate::capacity::{CapacityState, LinkCapacity};
use crate::link::{ClassTree, LinkClass};
use std::sync::Arc;

const TICK: Duration = Duration::from_micros(250);
const STEERING: StreamIndex = STREAM;
const BULK: StreamIndex = StreamIndex(1);
/// The number of bulk samples, above all of steering.
const FILLER: u64 = 1 << 40;

/// Two ends, with a bottleneck of some rate in one direction, and a delay in both.
struct Path {
    now: Instant,
    a: End,
    b: End,
    rate: Capacity,
    delay: Duration,
    /// The time at which the bottleneck has sent everything.
    free: Instant,
    there: VecDeque<(Instant, Bytes)>,
    back: VecDeque<(Instant, Bytes)>,
    steering: u64,
    bulk: bool,
    late: u64,
    padding: u64,
}

impl Path {
    fn new(range: &str, bits: u64, bulk: bool) -> Self {
        let range: LinkCapacity = range.parse().unwrap();
        let (mut a, b) = pair(LinkSpec { capacity: Some(range.first()), ..LinkSpec::default() });
        a.link.measure(range);
        let contract = Contract::every(Duration::from_millis(10)).unwrap();
        a.link.open_stream(STEERING, to(node(2), Kind::Data, Some(contract)));
        a.link.open_stream(BULK, to(node(2), Kind::Data, None));
        Self {
            now: at(1_000),
            a,
            b,
            rate: Capacity::from_bits_per_s(bits).unwrap(),
            delay: Duration::from_millis(20),
            free: Instant::ZERO,
            there: VecDeque::new(),
            back: VecDeque::new(),
            steering: 0,
            bulk,
            late: 0,
            padding: 0,
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += TICK;
            self.step();
        }
    }

    fn step(&mut self) {
        let (now, delay) = (self.now, self.delay);
        if now.as_nanos() % 10_000_000 == 0 {
            self.a.link.handle_sample(now, STEERING, sample(now, self.steering, 100));
            self.steering += 1;
        }
        if self.bulk && self.a.link.queued(BULK) < 4 {
            self.a.link.handle_sample(now, BULK, sample(now, FILLER, 5_000));
        }
        for frame in take_due(&mut self.there, now) {
            let before = self.b.got.len();
            self.b.hear(now, frame);
            let steering = self.b.got.split_off(before);
            let sent = |seq: &u64| at(1_000 + (seq + 1) * 10);
            let late =
                |seq: &u64| *seq != FILLER && now.since(sent(seq)) > Duration::from_millis(100);
            self.late += steering.iter().filter(|seq| late(seq)).count() as u64;
        }
        for frame in take_due(&mut self.back, now) {
            self.a.hear(now, frame);
        }
        self.a.poll(now);
        self.b.poll(now);
        for frame in std::mem::take(&mut self.a.sent) {
            let wire = on_wire(frame.len() as u64);
            self.free = self.free.max(now) + self.rate.time_for(wire);
            self.padding += u64::from(is_padding(&frame)) * wire;
            self.there.push_back((self.free + delay, frame));
        }
        for frame in std::mem::take(&mut self.b.sent) {
            self.back.push_back((now + delay, frame));
        }
    }

    fn found(&self) -> crate::capacity::CapacityEstimate {
        self.a.link.estimate().unwrap()
    }

    fn stated(&self) -> (u64, bool) {
        let (capacity, contradicted) = self.a.link.stated().unwrap();
        (capacity.bits_per_s(), contradicted)
    }

    fn set_rate(&mut self, bits: u64) {
        self.rate = Capacity::from_bits_per_s(bits).unwrap();
    }
}

fn take_due(frames: &mut VecDeque<(Instant, Bytes)>, now: Instant) -> Vec<Bytes> {
    let due = frames.partition_point(|(due, _)| *due <= now);
    frames.drain(..due).map(|(_, frame)| frame).collect()
}

fn is_padding(frame: &Bytes) -> bool {
    let mut reader = Reader::new(frame.clone());
    FrameHeader::read(&mut reader).unwrap();
    let segment = crate::wire::segment::Segment::read(&mut reader);
    matches!(segment, Ok(crate::wire::segment::Segment::Padding { .. }))
}

/// The rate that 256 kbit/s grow to, and the time that it takes.
#[test]
fn an_unknown_link_is_measured_within_two_seconds() {
    for (bits, bulk) in
        [(1_000_000, false), (1_000_000, true), (20_000_000, false), (20_000_000, true)]
    {
        let mut path = Path::new("auto", bits, bulk);
        path.run(Duration::from_secs(2));
        let early = path.found();
        assert!(early.low >= bits / 3 && early.low <= bits, "{bits} {bulk}: {early:?}");
        path.run(Duration::from_secs(6));
        let found = path.found();
        assert_eq!(found.state, CapacityState::Stable, "{bits} {bulk}");
        assert!(found.low >= bits * 8 / 10 && found.low <= bits, "{bits} {bulk}: {found:?}");
        assert_eq!(path.late, 0, "{bits} {bulk}");
        let sent = path.a.link.sent().1;
        assert!(!bulk || path.padding <= sent / 16, "{bits}: {} of {sent}", path.padding);
    }
}

#[test]
fn a_fall_slows_the_link_down_and_a_rise_speeds_it_up() {
    let mut path = Path::new("auto 1mbit..50mbit", 20_000_000, true);
    path.run(Duration::from_secs(8));
    let before = path.found();
    path.set_rate(2_000_000);
    path.run(Duration::from_secs(1));
    let fallen = path.found();
    assert!(before.low > 15_000_000 && fallen.low <= 2_000_000, "{before:?} {fallen:?}");
    let late = path.late;
    path.run(Duration::from_secs(10));
    assert_eq!(path.late, late, "late samples end");
    assert!(path.found().low >= 1_600_000, "{:?}", path.found());
    path.set_rate(20_000_000);
    path.run(Duration::from_secs(10));
    assert!(path.found().low >= 14_000_000, "{:?}", path.found());
}

#[test]
fn an_idle_link_keeps_its_estimate_and_its_hop() {
    let mut path = Path::new("auto", 10_000_000, true);
    path.run(Duration::from_secs(8));
    let before = path.found().estimate;
    path.bulk = false;
    path.run(Duration::from_secs(60));
    let after = path.found().estimate;
    assert!(after.abs_diff(before) <= before / 10, "{before} {after}");
    path.a.restart(path.now);
    path.run(Duration::from_secs(2));
    assert!(path.a.hop().is_up());
    let found = path.found();
    assert!(found.estimate.abs_diff(before) <= before / 5, "after a new connection: {found:?}");
}

#[test]
fn a_stated_capacity_that_the_link_does_not_have_is_measured() {
    let mut path = Path::new("20mbit", 2_000_000, true);
    path.run(Duration::from_secs(3));
    let found = path.found();
    assert!((1_500_000..=2_000_000).contains(&found.low), "{found:?}");
    assert_eq!(path.stated(), (20_000_000, true));
    let late = path.late;
    path.run(Duration::from_secs(10));
    assert_eq!(path.late, late, "late samples end");
    path.b.restart(path.now);
    path.run(Duration::from_millis(500));
    assert_eq!(path.stated(), (20_000_000, true), "a restart is no evidence");
    path.run(Duration::from_secs(2));
    path.set_rate(40_000_000);
    path.run(Duration::from_secs(30));
    assert_eq!(path.a.link.estimate(), None, "it is as stated");
    let padding = path.padding;
    path.run(Duration::from_secs(10));
    assert_eq!((path.padding, path.a.link.estimate()), (padding, None));
}

#[test]
fn a_stated_capacity_holds_without_a_queue_below_the_link() {
    for (stated, bits, bulk) in [("2mbit", 2_100_000, true), ("20mbit", 2_000_000, false)] {
        let mut path = Path::new(stated, bits, bulk);
        path.run(Duration::from_secs(10));
        assert_eq!((path.a.link.estimate(), path.padding), (None, 0), "{stated} of {bits}");
    }
}

#[test]
fn a_longer_path_does_not_contradict_a_stated_capacity() {
    let mut path = Path::new("2mbit", 10_000_000, true);
    path.run(Duration::from_secs(5));
    path.delay = Duration::from_millis(120);
    path.run(Duration::from_millis(500));
    // Samples that were on the way are late: the path takes longer than their bound.
    for _ in 0..600 {
        path.run(Duration::from_millis(100));
        assert_eq!(path.stated(), (2_000_000, false));
    }
    assert_eq!((path.stated(), path.padding), ((2_000_000, false), 0));
    assert!(path.a.link.measure.is_none(), "the doubt has ended");
}

#[test]
fn a_newly_stated_capacity_replaces_the_measurement() {
    let mut path = Path::new("20mbit", 2_000_000, true);
    path.run(Duration::from_secs(5));
    assert!(path.a.link.set_capacity(path.now, Capacity::from_bits_per_s(1_900_000).unwrap()));
    path.run(Duration::from_secs(5));
    assert_eq!((path.stated(), path.a.link.estimate()), ((1_900_000, false), None));
}

#[test]
fn classes_share_the_stated_capacity() {
    let mut path = Path::new("20mbit", 2_000_000, true);
    path.run(Duration::from_secs(5));
    assert_eq!(path.stated(), (20_000_000, true));
    let classes = vec![LinkClass { name: "a".to_owned(), ..LinkClass::default() }];
    let tree = ClassTree::new(classes, Capacity::from_bits_per_s(20_000_000).ok()).unwrap();
    path.a.link.set_classes(path.now, Some(Arc::new(tree)));
    path.run(Duration::from_secs(5));
    assert_eq!((path.stated(), path.a.link.estimate()), ((20_000_000, false), None));
    path.a.link.set_classes(path.now, None);
    path.run(Duration::from_secs(5));
    assert_eq!(path.stated(), (20_000_000, true), "without them it is contradicted again");
}

/// Five samples of a second, whose acknowledgements are delayed by up to 30 ms.
#[test]
fn jitter_on_a_link_that_is_hardly_used_is_no_doubt() {
    let mut path = Path::new("20mbit", 100_000_000, false);
    let mut random = 7_u64;
    for _ in 0..1_500 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        path.delay = Duration::from_micros(2_000 + (random >> 33) % 30_000);
        path.run(Duration::from_millis(20));
        assert!(path.a.link.measure.is_none());
    }
}
