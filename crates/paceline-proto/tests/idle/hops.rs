//! Idle hops: their cost on the wire at any delay, and the detection of a lost neighbour.

use bytes::Bytes;
use paceline_proto::link::{Hop, Link, LinkEvent, LinkSpec, StreamSpec};
use paceline_proto::receive::{Received, Receiver};
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{
    Carrier, Encoding, Form, Kind, NodeId, ProbeInterval, PublisherId, RawSample, Timestamp,
};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Contract, Duration, Instant, Late};
use proptest::prelude::*;
use std::collections::VecDeque;

/// The bytes that the layers below add: TCP and IPv4 with time stamps, and the same of an acknowledgement alone; UDP and
/// IPv4 with the headers and the seal of QUIC, and an acknowledgement of QUIC alone.
const TCP: (u64, u64) = (2 + 52, 52);
const QUIC: (u64, u64) = (1 + 2 + 28 + 9 + 4 + 16, 62);
/// The time after which they acknowledge what no frame has answered.
const ACK_DELAY: Duration = Duration::from_millis(25);
/// The bounds of an idle hop, each way: per second, and of a capacity.
const BYTES_MAX: u64 = 500;
const PACKETS_MAX: u64 = 8;
const SHARE: u64 = 50;

const STREAM: StreamIndex = StreamIndex(0);

/// One end of a hop: a link and a receiver.
struct End {
    other: NodeId,
    link: Link,
    receiver: Receiver,
    epoch: u32,
    got: Vec<u64>,
}

impl End {
    fn new(now: Instant, other: u64, spec: LinkSpec) -> Self {
        let (link, receiver) = (Link::new(spec), Receiver::new());
        let mut end = Self { other: NodeId(other), link, receiver, epoch: 0, got: Vec::new() };
        end.find(now);
        end
    }

    fn find(&mut self, now: Instant) {
        self.epoch += 10;
        self.link.add_hop(now, self.other, self.epoch);
        self.receiver = Receiver::new();
    }

    fn poll(&mut self, now: Instant) -> Vec<Bytes> {
        self.link.handle_timeout(now);
        let (mut frame, mut sent) = (FrameBuf::default(), Vec::new());
        while self.link.poll_frame(now, &mut frame).is_some() {
            sent.push(frame.to_bytes());
        }
        sent
    }

    fn hear(&mut self, now: Instant, frame: Bytes) {
        let (got, epoch) = (&mut self.got, self.link.epoch(self.other));
        let heard = self.receiver.handle_frame(now, epoch, frame, |item| {
            if let Received::Sample { sample, .. } = item {
                got.push(sample.seq);
            }
        });
        self.link.handle_heard(now, self.other, &heard.unwrap());
    }

    fn hop(&self) -> &Hop {
        self.link.hops().next().expect("a hop").1
    }
}

/// A direction of a wire, and the packets that it has carried.
#[derive(Default)]
struct Way {
    delay: Duration,
    capacity: Option<Capacity>,
    carried: VecDeque<(Instant, Bytes)>,
    free_at: Instant,
    packets: u64,
    bytes: u64,
    /// Frames have arrived since this instant that no frame has answered.
    unanswered: Option<Instant>,
    /// Frames leave together, once per this time: the frame that follows waits for an acknowledgement of the layers below.
    bunches: Option<Duration>,
    /// One in so many frames is lost.
    loses: Option<u64>,
    seen: u64,
}

impl Way {
    /// Carries a frame; `back` is the other direction.
    fn send(&mut self, now: Instant, frame: Bytes, headers: u64, back: &mut Self) {
        let bytes = frame.len() as u64 + headers;
        (self.packets, self.bytes, self.seen) =
            (self.packets + 1, self.bytes + bytes, self.seen + 1);
        let time = self.capacity.map_or(Duration::ZERO, |it| it.time_for(bytes));
        self.free_at = self.free_at.max(now) + time;
        if let Some(trip) = self.bunches.map(Duration::as_nanos) {
            let leaves = self.free_at.as_nanos().next_multiple_of(trip);
            self.free_at = Instant::from_nanos(leaves);
        }
        back.unanswered = None;
        if self.loses.is_none_or(|loses| !self.seen.is_multiple_of(loses)) {
            self.carried.push_back((self.free_at + self.delay, frame));
        }
    }

    /// Takes a frame that has arrived.
    fn take(&mut self, now: Instant) -> Option<Bytes> {
        self.carried.front().filter(|(arrives, _)| *arrives <= now)?;
        let (_, frame) = self.carried.pop_front()?;
        self.unanswered = self.unanswered.or(Some(now));
        Some(frame)
    }

    /// Counts an acknowledgement of the layers below in direction `back`, if one is due.
    fn acknowledge(&mut self, now: Instant, bytes: u64, back: &mut Self) {
        if self.unanswered.take_if(|since| *since + ACK_DELAY <= now).is_some() {
            (back.packets, back.bytes) = (back.packets + 1, back.bytes + bytes);
        }
    }

    fn next(&self) -> Instant {
        let arrives = self.carried.front().map_or(Instant::FAR, |(at, _)| *at);
        arrives.min(self.unanswered.map_or(Instant::FAR, |since| since + ACK_DELAY))
    }
}

/// Two ends of a hop, and the wire between them.
struct Wired {
    now: Instant,
    ends: [End; 2],
    /// From the first end to the second, and back.
    ways: [Way; 2],
    headers: (u64, u64),
    changes: Vec<LinkEvent>,
}

impl Wired {
    fn new(delay: Duration, capacities: [Option<Capacity>; 2], carrier: Carrier) -> Self {
        let [first, second] =
            capacities.map(|capacity| LinkSpec { capacity, carrier, ..LinkSpec::default() });
        let way = |capacity| Way { delay, capacity, ..Way::default() };
        let headers = if carrier == Carrier::Datagrams { QUIC } else { TCP };
        let now = Instant::from_millis(1_000);
        let ends = [End::new(now, 2, first), End::new(now, 1, second)];
        Self { now, ends, ways: capacities.map(way), headers, changes: Vec::new() }
    }

    /// Runs for `time`; `sends` frames or loses them all.
    fn run(&mut self, time: Duration, sends: bool) {
        let end = self.now + time;
        while self.now < end {
            self.step(sends);
            let [first, second] = &self.ends;
            let links = first.link.poll_timeout().min(second.link.poll_timeout());
            let ways = self.ways.iter().map(Way::next).min().unwrap_or(Instant::FAR);
            let least = self.now + Duration::from_micros(20);
            self.now = links.min(ways).max(least).min(end);
        }
    }

    fn step(&mut self, sends: bool) {
        let (now, (headers, ack)) = (self.now, self.headers);
        for place in [0, 1] {
            let [there, back] = &mut self.ways;
            let (out, into) = if place == 0 { (there, back) } else { (back, there) };
            let end = &mut self.ends[place];
            while let Some(frame) = into.take(now) {
                end.hear(now, frame);
            }
            if end.link.epoch(end.other) == 0 {
                end.find(now);
            }
            for frame in end.poll(now) {
                if sends {
                    out.send(now, frame, headers, into);
                }
            }
            into.acknowledge(now, ack, out);
            self.changes.extend(std::iter::from_fn(|| end.link.poll_event()));
        }
    }

    /// Lets the hop come up and settle, and forgets what it cost.
    fn settle(&mut self) -> Duration {
        self.run(Duration::from_secs(30), true);
        let interval = self.ends[0].hop().probe_interval();
        assert!(self.ends.iter().all(|end| end.hop().is_up()));
        assert_eq!(self.ends[1].hop().probe_interval(), interval, "both know the longer one");
        self.run(interval.time().mul_div(12, 1), true);
        self.changes.clear();
        self.ways.iter_mut().for_each(|way| (way.packets, way.bytes) = (0, 0));
        interval.time()
    }
}

fn sample(now: Instant, seq: u64) -> RawSample {
    RawSample {
        seq,
        captured: Timestamp::default(),
        published_at: now,
        doubt: Duration::ZERO,
        shift: 0,
        kind: Kind::Data,
        encoding: Encoding::Bytes,
        payload: vec![0; 32].into(),
        attachment: None,
    }
}

fn bits(bits: u64) -> Option<Capacity> {
    Capacity::from_bits_per_s(bits).ok()
}

/// No capacity, or one from 2.4 kbit/s to 2 Gbit/s.
fn capacities() -> impl Strategy<Value = Option<Capacity>> {
    let some = (0..20u32, 0..100u64)
        .prop_map(|(doublings, percent)| bits((2_400 << doublings) * (100 + percent) / 100));
    prop_oneof![1 => Just(None), 4 => some]
}

fn idle(
    delay: Duration,
    ends: [Option<Capacity>; 2],
    carrier: Carrier,
) -> Result<(), TestCaseError> {
    let mut wired = Wired::new(delay, ends, carrier);
    let every = wired.settle();
    let window = every.mul_div(20, 1).max(Duration::from_secs(60));
    wired.run(window, true);
    let seconds = |rate: u64| window.mul_div(rate, 1).as_nanos().div_ceil(1_000_000_000);
    for (way, capacity) in wired.ways.iter().zip(ends) {
        let share = capacity.map_or(u64::MAX, |it| it.bits_per_s() / 8 / SHARE);
        let most = seconds(BYTES_MAX).min(seconds(share.max(1)));
        let (bytes, packets) = (way.bytes, way.packets);
        println!(
            "{carrier:?}, {delay}, {capacity:?}: {bytes} bytes, {packets} packets in {window}"
        );
        prop_assert!(way.bytes <= most, "{} of {most} bytes in {window}", way.bytes);
        prop_assert!(way.packets <= seconds(PACKETS_MAX), "{} in {window}", way.packets);
        prop_assert!(way.packets > 0);
    }
    prop_assert_eq!(&wired.changes, &[], "the hop stays up");
    // The last frames may have left just before the end of the wire.
    let silence_max = wired.ends[0].hop().probe_interval().silence_max();
    let under_way = delay.saturating_add(Duration::from_secs(1));
    wired.run(silence_max.saturating_add(under_way), false);
    let down = wired.changes.iter().filter(|it| matches!(it, LinkEvent::HopDown(_))).count();
    prop_assert_eq!(down, 2, "within {}", silence_max);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn idle_hops_cost_little_and_notice_the_end(
        millis in prop_oneof![0..30u64, 0..2_000u64],
        ends in [capacities(), capacities()],
        lossy: bool,
    ) {
        let carrier = if lossy { Carrier::Datagrams } else { Carrier::Ordered };
        idle(Duration::from_millis(millis), ends, carrier)?;
    }

    #[test]
    fn an_idle_hop_stays_up_while_frames_are_lost(
        millis in 0..300u64,
        loses in 5..20u64,
        ends in [capacities(), capacities()],
    ) {
        let mut wired = Wired::new(Duration::from_millis(millis), ends, Carrier::Datagrams);
        let every = wired.settle();
        wired.ways.iter_mut().for_each(|way| way.loses = Some(loses));
        wired.run(every.mul_div(30, 1), true);
        prop_assert_eq!(&wired.changes, &[]);
    }
}

#[test]
fn control_frames_do_not_answer_control_frames() {
    // At 25 ms of round trip and more, repeated requests were always under way.
    for carrier in [Carrier::Ordered, Carrier::Datagrams] {
        for millis in [0, 5, 15, 20, 50, 150, 300, 500, 1_000, 2_000] {
            for capacity in [None, bits(2_000_000)] {
                let delay = Duration::from_millis(millis);
                idle(delay, [capacity, capacity], carrier).unwrap();
            }
        }
    }
}

#[test]
fn a_hop_stays_up_while_tcp_sends_once_per_round_trip() {
    for millis in [200, 500, 1_000, 2_000] {
        let delay = Duration::from_millis(millis);
        let trip = delay.mul_div(2, 1);
        let mut wired = Wired::new(delay, [None; 2], Carrier::Ordered);
        let (now, dialer) = (wired.now, &mut wired.ends[0]);
        dialer.link.expect_round_trip(now, dialer.other, trip);
        wired.ways.iter_mut().for_each(|way| way.bunches = Some(trip));
        wired.run(Duration::from_secs(120), true);
        assert!(wired.ends.iter().all(|end| end.hop().is_up()), "{delay}");
        let ups = wired.changes.iter().filter(|it| matches!(it, LinkEvent::HopUp(_))).count();
        assert_eq!((ups, wired.changes.len()), (2, 2), "{delay}: {:?}", wired.changes);
    }
}

#[test]
fn the_other_end_learns_a_changed_capacity_before_it_takes_the_hop_down() {
    for (before, after) in [(2_000_000, 2_400), (2_400, 2_000_000)] {
        let mut wired = Wired::new(Duration::from_millis(200), [bits(before); 2], Carrier::Ordered);
        wired.settle();
        let now = wired.now;
        wired.ends[0].link.set_capacity(now, bits(after).unwrap());
        wired.ways[0].capacity = bits(after);
        wired.run(Duration::from_secs(300), true);
        assert_eq!(wired.changes, []);
        for end in &wired.ends {
            assert_eq!(end.hop().probe_interval(), ProbeInterval::of(bits(2_400), 1));
        }
    }
}

#[test]
fn contracts_are_kept_at_2400_bits_per_second() {
    let capacity = bits(2_400);
    for carrier in [Carrier::Ordered, Carrier::Datagrams] {
        let mut wired = Wired::new(Duration::from_millis(300), [capacity; 2], carrier);
        wired.settle();
        let period = Duration::from_secs(1);
        let contract = Contract::every(period).unwrap().with_late(Late::Drop);
        let publisher = PublisherId { node: NodeId(1), index: 0 };
        let spec = StreamSpec::best_effort(publisher, NodeId(2), Form::FULL, Kind::Data);
        let spec = StreamSpec { contract: Some(contract), ..spec };
        assert!(wired.ends[0].link.open_stream(STREAM, spec));
        for seq in 0..600 {
            let now = wired.now;
            wired.ends[0].link.handle_sample(now, STREAM, sample(now, seq));
            wired.run(period, true);
        }
        wired.run(period.mul_div(5, 1), true);
        assert_eq!(wired.ends[1].got, (0..600).collect::<Vec<_>>(), "{carrier:?}");
        assert_eq!(wired.ends[0].link.counters(STREAM).unwrap().violations, 0);
        assert_eq!(wired.changes, []);
    }
}
