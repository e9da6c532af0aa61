//! Neighbours that only introduce themselves: their cost, the contracts next to them, and newcomers.

use bytes::Bytes;
use paceline_proto::link::{Link, LinkEvent, LinkSpec, StreamSpec};
use paceline_proto::receive::{Heard, Received, Receiver};
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{
    Carrier, Encoding, Form, Kind, NodeId, ProbeInterval, PublisherId, RawSample, Timestamp,
};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Contract, Duration, Instant, Late};
use std::collections::{BTreeMap, VecDeque};

const CAPACITY: u64 = 2_000_000;
const STRANGERS: u64 = 1_000;
/// The share of those that are not up: 1 % of the capacity, and a burst.
const BYTES_PER_S: u64 = CAPACITY / 8 / 100;
const BURST_BYTES: u64 = 8 * 150;
const DELAY: Duration = Duration::from_millis(5);
const ME: NodeId = NodeId(1);
const STREAM: StreamIndex = StreamIndex(0);

/// An honest neighbour, and the wire to it.
struct Far {
    link: Link,
    /// Its own epoch.
    epoch: u32,
    receiver: Receiver,
    /// The receiver at the node.
    near: Receiver,
    /// Frames to it, and from it.
    to: VecDeque<(Instant, Bytes)>,
    from: VecDeque<(Instant, Bytes)>,
    up: Option<Instant>,
    got: Vec<u64>,
}

/// A node with honest neighbours and strangers.
struct Node {
    now: Instant,
    link: Link,
    epoch: u32,
    far: BTreeMap<NodeId, Far>,
    /// The strangers, of which those below `speaking` send a greeting when they are found.
    strangers: Vec<NodeId>,
    speaking: usize,
    sent: Vec<(Instant, u64)>,
    next_find: Instant,
    downs: usize,
}

impl Node {
    fn new(carrier: Carrier) -> Self {
        let capacity = Capacity::from_bits_per_s(CAPACITY).ok();
        let link = Link::new(LinkSpec { capacity, carrier, ..LinkSpec::default() });
        let (far, strangers, sent) = Default::default();
        let now = Instant::from_millis(1_000);
        Self { now, link, epoch: 0, far, strangers, speaking: 0, sent, next_find: now, downs: 0 }
    }

    fn add(&mut self, node: NodeId) {
        self.epoch += 10;
        self.link.add_hop(self.now, node, self.epoch);
    }

    fn join(&mut self, node: NodeId) {
        self.add(node);
        let capacity = Capacity::from_bits_per_s(CAPACITY).ok();
        let mut link = Link::new(LinkSpec { capacity, ..LinkSpec::default() });
        link.add_hop(self.now, ME, 7);
        let [receiver, near] = [Receiver::new(), Receiver::new()];
        let (to, from, got) = Default::default();
        self.far.insert(node, Far { link, epoch: 7, receiver, near, to, from, up: None, got });
    }

    fn poll(&mut self) {
        let now = self.now;
        self.link.handle_timeout(now);
        let mut frame = FrameBuf::default();
        while let Some(node) = self.link.poll_frame(now, &mut frame) {
            match self.far.get_mut(&node) {
                Some(far) => far.to.push_back((now + DELAY, frame.to_bytes())),
                None => self.sent.push((now, frame.len() as u64 + 100)),
            }
        }
        while let Some(event) = self.link.poll_event() {
            match event {
                LinkEvent::HopUp(node) => {
                    self.far.entry(node).and_modify(|far| far.up = Some(now));
                }
                LinkEvent::HopDown(_) => self.downs += 1,
            }
        }
        if now < self.next_find {
            return;
        }
        // The transport reports connected peers again.
        self.next_find = now + Duration::from_millis(250);
        for (at, node) in self.strangers.clone().into_iter().enumerate() {
            if self.link.epoch(node) == 0 {
                self.add(node);
                if at < self.speaking {
                    let heard = Heard { epoch: 1, ..Heard::default() };
                    self.link.handle_heard(now, node, &heard);
                }
            }
        }
    }

    fn exchange(&mut self) {
        let now = self.now;
        for (node, far) in &mut self.far {
            while far.from.front().is_some_and(|(at, _)| *at <= now) {
                let (_, frame) = far.from.pop_front().unwrap();
                let epoch = self.link.epoch(*node);
                let heard = far.near.handle_frame(now, epoch, frame, |_| {}).unwrap();
                self.link.handle_heard(now, *node, &heard);
            }
            while far.to.front().is_some_and(|(at, _)| *at <= now) {
                let (_, frame) = far.to.pop_front().unwrap();
                let got = &mut far.got;
                let heard = far.receiver.handle_frame(now, far.link.epoch(ME), frame, |item| {
                    if let Received::Sample { sample, .. } = item {
                        got.push(sample.seq);
                    }
                });
                far.link.handle_heard(now, ME, &heard.unwrap());
            }
            far.link.handle_timeout(now);
            // Both ends find each other again while they are connected.
            if far.link.epoch(ME) == 0 {
                far.epoch += 10;
                far.link.add_hop(now, ME, far.epoch);
            }
            if self.link.epoch(*node) == 0 {
                self.epoch += 10;
                self.link.add_hop(now, *node, self.epoch);
            }
            let mut frame = FrameBuf::default();
            while far.link.poll_frame(now, &mut frame).is_some() {
                far.from.push_back((now + DELAY, frame.to_bytes()));
            }
        }
    }

    /// Runs for `time`, and publishes a sample every 20 ms if `publishes`.
    fn run(&mut self, time: Duration, mut seq: Option<&mut u64>) {
        let (end, mut next) = (self.now + time, self.now);
        while self.now < end {
            if let Some(seq) = seq.as_deref_mut()
                && next <= self.now
            {
                self.link.handle_sample(self.now, STREAM, sample(self.now, *seq));
                (*seq, next) = (*seq + 1, next + PERIOD);
            }
            self.exchange();
            self.poll();
            self.now += Duration::from_micros(500);
        }
    }

    /// Returns the most bytes to strangers within a second since `from`.
    fn most_per_second(&self, from: Instant) -> u64 {
        let sent: Vec<_> = self.sent.iter().filter(|(at, _)| *at >= from).collect();
        let within = |(at, (start, _)): (usize, &&(Instant, u64))| {
            let later = sent[at..].iter();
            let second = later.take_while(|(it, _)| it.since(*start) < Duration::from_secs(1));
            second.map(|(_, bytes)| bytes).sum::<u64>()
        };
        sent.iter().enumerate().map(within).max().unwrap_or_default()
    }
}

const PERIOD: Duration = Duration::from_millis(20);

fn sample(now: Instant, seq: u64) -> RawSample {
    RawSample {
        seq,
        captured: Timestamp::default(),
        published_at: now,
        doubt: Duration::ZERO,
        shift: 0,
        kind: Kind::Data,
        encoding: Encoding::Bytes,
        payload: vec![0; 3_000].into(),
        attachment: None,
    }
}

/// A contracted stream of 1.3 Mbit/s keeps its deadlines while 1,000 strangers are found at once, and a newcomer is up
/// within 2 s at any time.
fn strangers(carrier: Carrier, speaking: usize) {
    let mut node = Node::new(carrier);
    node.speaking = speaking;
    node.join(NodeId(2));
    node.run(Duration::from_secs(2), None);
    assert!(node.far[&NodeId(2)].up.is_some());
    let contract = Contract::every(PERIOD).unwrap().with_late(Late::Drop);
    let publisher = PublisherId { node: ME, index: 0 };
    let spec = StreamSpec::best_effort(publisher, NodeId(2), Form::FULL, Kind::Data);
    assert!(node.link.open_stream(STREAM, StreamSpec { contract: Some(contract), ..spec }));
    let mut seq = 0;
    node.run(Duration::from_secs(1), Some(&mut seq));
    let began = node.now;
    node.strangers = (0..STRANGERS).map(|at| NodeId(1_000 + at)).collect();
    for (id, wait) in [(3, 0), (4, 200), (5, 4_000), (6, 20_000)] {
        node.run(Duration::from_millis(wait + 1), Some(&mut seq));
        let joined = node.now;
        node.join(NodeId(id));
        node.run(Duration::from_millis(2_000), Some(&mut seq));
        let up = node.far[&NodeId(id)].up.map(|up| up.since(joined));
        assert!(up.is_some(), "newcomer {id}");
        println!("newcomer {id} is up after {}", up.unwrap());
    }
    node.run(Duration::from_millis(500), None);
    let mut hops = node.link.hops();
    let (_, honest) = hops.find(|(id, _)| *id == NodeId(2)).unwrap();
    let alone = ProbeInterval::of(Capacity::from_bits_per_s(CAPACITY).ok(), 5);
    assert_eq!(honest.probe_interval(), alone, "its loss is noticed as early as without strangers");
    let most = node.most_per_second(began);
    let total: u64 = node.sent.iter().map(|(_, bytes)| bytes).sum();
    println!("{carrier:?}, {speaking} speak: {most} bytes per second at most, {total} in all");
    assert!(most <= BYTES_PER_S + BURST_BYTES, "{most}");
    let counters = node.link.counters(STREAM).unwrap();
    assert_eq!((counters.violations, counters.late, counters.drops.total()), (0, 0, 0));
    assert_eq!(node.far[&NodeId(2)].got, (0..seq).collect::<Vec<_>>(), "each sample arrives");
    assert_eq!(node.downs, 0);
}

#[test]
fn neighbours_that_only_introduce_themselves_cost_one_percent() {
    for carrier in [Carrier::Ordered, Carrier::Datagrams] {
        strangers(carrier, 0);
    }
}

#[test]
fn neighbours_that_only_send_a_greeting_cost_one_percent() {
    strangers(Carrier::Ordered, 500);
}

#[test]
fn a_crowd_that_connects_at_once_shares_the_greetings() {
    let mut node = Node::new(Carrier::Ordered);
    let began = node.now;
    (0..300).for_each(|at| node.join(NodeId(10 + at)));
    let waits = |node: &Node| node.far.values().any(|far| far.up.is_none());
    while waits(&node) && node.now.since(began) < Duration::from_secs(60) {
        node.run(Duration::from_millis(250), None);
    }
    let up = node.far.values().map(|far| far.up.expect("a node that is up").since(began));
    let last = up.max().unwrap();
    println!("300 nodes on 2 Mbit/s are up after {last}");
    // Each needs a greeting of about 130 bytes in 1 % of the capacity.
    assert!(last <= Duration::from_secs(20), "{last}");
}

#[test]
fn a_newcomer_is_greeted_in_turn_with_strangers_that_have_new_ids_all_the_time() {
    let mut node = Node::new(Carrier::Ordered);
    let (mut next, mut joined) = (1_000, None);
    for step in 0..500 {
        // 50 new ids per second, each of which sends a greeting; the oldest of 64 gives its place to the newest.
        let stranger = NodeId(next);
        node.add(stranger);
        let heard = Heard { epoch: 1, ..Heard::default() };
        node.link.handle_heard(node.now, stranger, &heard);
        node.link.remove_hop(NodeId(next - 64));
        next += 1;
        if step == 250 {
            node.join(NodeId(2));
            joined = Some(node.now);
        }
        node.run(Duration::from_millis(20), None);
    }
    let up = node.far[&NodeId(2)].up.map(|up| up.since(joined.unwrap()));
    println!("a newcomer among 50 new ids per second is up after {up:?}");
    assert!(up.is_some_and(|up| up <= Duration::from_secs(2)), "{up:?}");
}
