//! Two ends of a hop on a wire with loss, reordering and duplication.
//!
//! Each sample must be delivered at most once, whole, and in the order of its stream. Once the losses end
//! both ends come to rest. By then every sent sample was delivered or is known to be lost.

use crate::input::Input;
use bytes::Bytes;
use paceline_proto::link::{Link, LinkSpec, StreamSpec};
use paceline_proto::receive::{Received, Receiver};
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{Carrier, Form, Kind, NodeId, PublisherId, RawSample, Retransmit, Timestamp};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Contract, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

const STEPS_MAX: usize = 400;
const STREAMS: u8 = 3;
const DELAY: Duration = Duration::from_millis(5);
const REST_IN: Duration = Duration::from_secs(30);

/// One end: its link, its receiver, and its frames in flight to the other end.
struct End {
    link: Link,
    receiver: Receiver,
    to: NodeId,
    wire: VecDeque<(Instant, Bytes)>,
}

/// The samples that arrived of a stream.
#[derive(Debug, Default)]
struct Arrived {
    next_seq: u64,
    samples: u64,
    lost: u64,
}

struct Lab {
    now: Instant,
    ends: [End; 2],
    arrived: BTreeMap<u32, Arrived>,
    offered: BTreeMap<u32, u64>,
    messages: u64,
    received_messages: u64,
    /// A hop was down, so that its ends lost their shared state.
    broken: bool,
}

fn payload(seq: u64, len: usize) -> Bytes {
    (0..len).map(|at| u8::try_from((seq + at as u64) % 251).unwrap()).collect()
}

/// Runs `data` as a sequence of steps: time, samples, control, and faults of the wire.
pub fn repair(data: &[u8]) {
    let mut input = Input::new(data);
    let mut lab = Lab::new(&mut input);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        lab.step(&mut input);
    }
    lab.finish();
}

impl Lab {
    fn new(input: &mut Input<'_>) -> Self {
        let now = Instant::from_millis(10_000);
        let bits = input.one_of(&[None, Some(2_000_000), Some(20_000_000)]);
        let capacity = bits.and_then(|bits| Capacity::from_bits_per_s(bits).ok());
        let end = |to: u64| {
            let carrier = Carrier::Datagrams;
            let mut link = Link::new(LinkSpec { capacity, carrier, ..LinkSpec::default() });
            link.add_hop(now, NodeId(to), 1);
            let (receiver, wire) = (Receiver::new(), VecDeque::new());
            End { link, receiver, to: NodeId(to), wire }
        };
        let mut lab = Self {
            now,
            ends: [end(2), end(1)],
            arrived: BTreeMap::new(),
            offered: BTreeMap::new(),
            messages: 0,
            received_messages: 0,
            broken: false,
        };
        for index in 0..STREAMS {
            let retransmit = input.one_of(&Retransmit::ALL);
            let contract =
                input.flag().then(|| Contract::every(Duration::from_millis(10)).unwrap());
            let contract =
                contract.map(|contract| contract.with_deadline(Duration::from_millis(60)).unwrap());
            let publisher = PublisherId { node: NodeId(1), index: index.into() };
            let plain = StreamSpec::best_effort(publisher, NodeId(2), Form::FULL, Kind::Data);
            let spec = StreamSpec { retransmit, contract, ..plain };
            assert!(lab.ends[0].link.open_stream(StreamIndex(index.into()), spec));
        }
        lab.pass(Duration::from_millis(400), true);
        lab.broken = false;
        lab
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.below(8) {
            0..3 => self.pass(Duration::from_micros(u64::from(input.byte()) * 100), true),
            3 | 4 => {
                let len = input.one_of(&[0, 1, 100, 300, 1_200, 3_000, 9_000]);
                self.offer(u32::from(input.below(STREAMS)), len);
            }
            5 => self.trouble(input),
            6 => {
                let end = usize::from(input.below(4) == 0);
                self.ends[end].wire.pop_front();
            }
            _ => {
                let message = payload(self.messages, usize::from(input.byte()) * 8);
                let message = [&self.messages.to_le_bytes()[..], &message].concat();
                self.ends[0].link.handle_control(NodeId(2), message.into());
                self.messages += 1;
            }
        }
    }

    fn trouble(&mut self, input: &mut Input<'_>) {
        let wire = &mut self.ends[usize::from(input.below(3) == 0)].wire;
        let from = usize::from(input.byte());
        let Some((at, frame)) = wire.get(from % wire.len().max(1)).cloned() else { return };
        let place = from % wire.len();
        match input.below(3) {
            0 => drop(wire.remove(place)),
            1 => wire.push_back((at, frame)),
            _ => {
                wire.remove(place);
                let later = at + Duration::from_millis(u64::from(input.byte()));
                wire.push_back((later, frame));
            }
        }
        wire.make_contiguous().sort_by_key(|(at, _)| *at);
    }

    fn offer(&mut self, index: u32, len: usize) {
        let seq = *self.offered.entry(index).and_modify(|seq| *seq += 1).or_insert(0);
        let sample = RawSample {
            seq,
            captured: Timestamp::default(),
            published_at: self.now,
            payload: payload(seq, len),
            ..RawSample::default()
        };
        self.ends[0].link.handle_sample(self.now, StreamIndex(index), sample);
    }

    /// Lets time pass. Every frame arrives if `arrives` is set.
    fn pass(&mut self, time: Duration, arrives: bool) {
        let end = self.now + time;
        let mut turns = 0;
        loop {
            self.turn(arrives);
            let next = self.ends.iter().map(End::next).min().unwrap();
            if next > end {
                break;
            }
            turns = if next > self.now { 0 } else { turns + 1 };
            assert!(turns < 1_000, "it wakes without work at {}", self.now);
            self.now = self.now.max(next);
        }
        self.now = end;
        self.turn(arrives);
    }

    fn turn(&mut self, arrives: bool) {
        for (from, to) in [(0, 1), (1, 0)] {
            while let Some((at, frame)) = self.ends[from].wire.front().cloned() {
                if at > self.now {
                    break;
                }
                self.ends[from].wire.pop_front();
                if arrives {
                    self.hear(to, frame);
                }
            }
        }
        for end in 0..2 {
            let mut found = Vec::new();
            self.ends[end].receiver.handle_timeout(self.now, |item| found.push(item));
            found.into_iter().for_each(|item| self.take(item));
            let link = &mut self.ends[end].link;
            link.handle_timeout(self.now);
            while let Some(event) = link.poll_event() {
                self.broken |= matches!(event, paceline_proto::link::LinkEvent::HopDown(_));
            }
            let mut frame = FrameBuf::default();
            while self.ends[end].link.poll_frame(self.now, &mut frame).is_some() {
                assert!(frame.len() <= 1_400, "a frame of {} bytes is no packet", frame.len());
                self.ends[end].wire.push_back((self.now + DELAY, frame.to_bytes()));
            }
        }
    }

    fn hear(&mut self, end: usize, frame: Bytes) {
        let End { link, receiver, to, .. } = &mut self.ends[end];
        let mut found = Vec::new();
        let epoch = link.epoch(*to);
        let heard = receiver.handle_frame(self.now, epoch, frame, |item| found.push(item));
        link.handle_heard(self.now, *to, &heard.expect("a frame of ours is understood"));
        found.into_iter().for_each(|item| self.take(item));
    }

    fn take(&mut self, item: Received) {
        match item {
            Received::Sample { publisher, sample, .. } => {
                let arrived = self.arrived.entry(publisher.index).or_default();
                assert!(sample.seq >= arrived.next_seq, "{publisher}: {} again", sample.seq);
                assert_eq!(sample.payload, payload(sample.seq, sample.payload.len()));
                arrived.next_seq = sample.seq + 1;
                arrived.samples += 1;
            }
            Received::Lost { publisher, lost, .. } => {
                self.arrived.entry(publisher.index).or_default().lost += lost.samples;
            }
            Received::Control(message) => {
                if !self.broken {
                    let number = u64::from_le_bytes(message[..8].try_into().unwrap());
                    assert_eq!(number, self.received_messages, "messages arrive in order");
                }
                self.received_messages += 1;
            }
        }
    }

    /// Checks that without further losses everything completes.
    fn finish(mut self) {
        self.pass(REST_IN, true);
        let link = &self.ends[0].link;
        for (index, spec, counters, waiting) in link.streams() {
            let hop = || link.hops().map(|(_, hop)| (hop.flight_frames(), hop.fates()));
            assert!(
                link.is_settled(index),
                "{index:?} never ends: {:?} {counters:?}, {waiting} wait, {:?} {:?}",
                spec.retransmit,
                link.repair_counters(),
                hop().next(),
            );
            let arrived = self.arrived.remove(&index.0).unwrap_or_default();
            let total = arrived.samples + arrived.lost;
            let what = || format!("{:?}: {arrived:?} {counters:?}", spec.retransmit);
            assert!(arrived.samples <= counters.offered, "{}", what());
            assert_eq!(counters.offered, counters.sent + counters.drops.total(), "{}", what());
            if !self.broken {
                assert!(counters.sent <= total && total <= counters.offered, "{}", what());
                let whole = spec.retransmit != Retransmit::None && spec.contract.is_none();
                assert!(!whole || arrived.samples == counters.sent, "{}", what());
            }
        }
        assert!(self.broken || self.received_messages == self.messages, "control is lost");
        let up = self.ends[0].link.hops().all(|(_, hop)| hop.is_up());
        assert!(up, "the hop stays down");
    }
}

impl End {
    fn next(&self) -> Instant {
        let wire = self.wire.front().map_or(Instant::FAR, |(at, _)| *at);
        self.link.poll_timeout().min(self.receiver.poll_timeout()).min(wire)
    }
}
