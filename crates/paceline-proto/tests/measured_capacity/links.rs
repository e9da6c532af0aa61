//! Two links, a bottleneck between them, and an estimator that observes the frames and sets the capacity of the sender.

use bytes::Bytes;
use paceline_proto::capacity::{CapacityEstimator, Departure, LinkCapacity, Receipt};
use paceline_proto::link::{Link, LinkSpec, StreamSpec};
use paceline_proto::receive::Receiver;
use paceline_proto::wire::ack::Ack;
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{Carrier, Form, Kind, NodeId, PublisherId, RawSample};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Duration, Instant};
use std::collections::VecDeque;

const STEP: Duration = Duration::from_micros(250);
const DELAY: Duration = Duration::from_millis(20);
/// The bytes that the layers below a frame add, as the pacer counts them.
const OVERHEAD: u64 = 100;
const BULK: StreamIndex = StreamIndex(0);
const IDS: [NodeId; 2] = [NodeId(1), NodeId(2)];
/// The factor by which a train leaves faster than other data.
const TRAIN: u64 = 8;
const TRAIN_BYTES: u64 = 6_500;

struct End {
    link: Link,
    receiver: Receiver,
    arriving: VecDeque<(Instant, Bytes)>,
}

struct World {
    now: Instant,
    ends: [End; 2],
    estimator: CapacityEstimator,
    setting: LinkCapacity,
    capacity: u64,
    busy: Instant,
    /// The bytes of the present train that have not been sent.
    train: Option<u64>,
    pace: u64,
    acknowledged: u64,
    delivered: u64,
}

impl World {
    fn new(setting: LinkCapacity, capacity: u64) -> Self {
        let now = Instant::from_millis(1_000);
        let start = setting.guaranteed().unwrap();
        let spec =
            |capacity| LinkSpec { capacity, carrier: Carrier::Datagrams, ..LinkSpec::default() };
        let mut ends = [Some(start), None].map(|capacity| End {
            link: Link::new(spec(capacity)),
            receiver: Receiver::new(),
            arriving: VecDeque::new(),
        });
        for (me, other) in [(0, 1), (1, 0)] {
            ends[me].link.add_hop(now, IDS[other], 7);
        }
        let publisher = PublisherId { node: IDS[0], index: 0 };
        let bulk = StreamSpec::best_effort(publisher, IDS[1], Form::FULL, Kind::Data);
        assert!(ends[0].link.open_stream(BULK, bulk));
        Self {
            now,
            ends,
            estimator: setting.estimator().unwrap(),
            setting,
            capacity,
            busy: now,
            train: None,
            pace: start.bits_per_s(),
            acknowledged: 0,
            delivered: 0,
        }
    }

    fn next_seq(&self) -> u64 {
        self.ends[0].link.hops().next().map_or(0, |(_, hop)| hop.next_seq())
    }

    /// Sets the capacity of the link: its pace, or more for a train.
    fn set_pace(&mut self) {
        let found = self.estimator.estimate().pace;
        let least = self.setting.guaranteed().map_or(8, Capacity::bits_per_s) / 10;
        let factor = if self.train.is_some() { TRAIN } else { 1 };
        let pace = found.max(least) * factor;
        if pace.abs_diff(self.pace) > self.pace / 50 {
            self.pace = pace;
            let capacity = Capacity::from_bits_per_s(pace).unwrap();
            assert!(self.ends[0].link.set_capacity(self.now, capacity));
        }
    }

    fn send(&mut self) {
        self.estimator.handle_timeout(self.now);
        if self.train.is_none() {
            // Data that waits anyway costs nothing, so a train has at least five frames.
            self.train = self.estimator.probe(self.now).map(|it| it.bytes.max(TRAIN_BYTES));
        }
        self.set_pace();
        loop {
            while self.ends[0].link.has_room(self.now, BULK) {
                let payload = Bytes::from_static(&[7; 4_000]);
                let sample = RawSample { published_at: self.now, payload, ..RawSample::default() };
                if !self.ends[0].link.handle_sample(self.now, BULK, sample) {
                    break;
                }
            }
            let (mut frame, seq) = (FrameBuf::default(), self.next_seq());
            if self.ends[0].link.poll_frame(self.now, &mut frame).is_none() {
                break;
            }
            let bytes = frame.to_bytes();
            let length = u64::try_from(bytes.len()).unwrap() + OVERHEAD;
            if self.next_seq() > seq {
                self.note_sent(seq, length);
            }
            let took = Capacity::from_bits_per_s(self.capacity).unwrap().time_for(length);
            self.busy = self.busy.max(self.now) + took;
            self.ends[1].arriving.push_back((self.busy + DELAY, bytes));
        }
    }

    fn note_sent(&mut self, number: u64, bytes: u64) {
        let probe = self.train.is_some();
        let rest = self.train.map(|rest| rest.saturating_sub(bytes));
        self.train = rest.filter(|rest| *rest > 0);
        let backlogged = self.ends[0].link.queued(BULK) > 0 && (!probe || self.train.is_some());
        let sent = Departure { number, bytes, left: self.now, backlogged, probe };
        self.estimator.handle_sent(self.now, &sent);
        if probe && self.train.is_none() {
            self.set_pace();
        }
    }

    fn acknowledge(&mut self, ack: Ack, held: Duration) {
        let receipt = |first, newest| Receipt { first, newest, held, arrived: None };
        if ack.next() > 0 {
            self.estimator.handle_ack(self.now, &receipt(0, ack.next() - 1));
        }
        for number in ack.next()..ack.end() {
            if ack.covers(number) {
                self.estimator.handle_ack(self.now, &receipt(number, number));
            } else if ack.lacks(number) {
                self.estimator.handle_lost(self.now, number);
            }
        }
        self.acknowledged += 1;
    }

    fn step(&mut self) {
        self.now += STEP;
        self.ends.iter_mut().for_each(|end| end.link.handle_timeout(self.now));
        self.send();
        let mut frame = FrameBuf::default();
        while self.ends[1].link.poll_frame(self.now, &mut frame).is_some() {
            self.ends[0].arriving.push_back((self.now + DELAY, frame.to_bytes()));
        }
        for me in [0, 1] {
            while let Some((_, bytes)) =
                self.ends[me].arriving.pop_front_if(|(at, _)| *at <= self.now)
            {
                let end = &mut self.ends[me];
                self.delivered += u64::try_from(bytes.len()).unwrap() * u64::from(me == 1);
                let epoch = end.link.epoch(IDS[1 - me]);
                let heard = end.receiver.handle_frame(self.now, epoch, bytes, |_| ()).unwrap();
                end.link.handle_heard(self.now, IDS[1 - me], &heard);
                if let Some(ack) = heard.ack.filter(|_| me == 0) {
                    self.acknowledge(ack, heard.held);
                }
            }
            while self.ends[me].link.poll_event().is_some() {}
        }
    }

    fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while self.now < end {
            self.step();
        }
    }
}

/// The greatest estimate of a link of 10 Mbit/s: steps of the simulation make arrivals inexact by 0.25 ms, or 5 % of a train.
const MOST: u64 = 10_600_000;

#[test]
fn the_acknowledgements_of_a_hop_give_the_capacity() {
    let mut world = World::new("auto 1mbit..50mbit".parse().unwrap(), 10_000_000);
    world.run(4_000);
    assert!(world.acknowledged > 100);
    let found = world.estimator.estimate();
    assert!((7_500_000..=MOST).contains(&found.estimate), "{found:?}");
    let before = world.delivered;
    world.run(4_000);
    let used = (world.delivered - before) * 8 / 4;
    assert!(used >= 6_500_000, "{used} of 10 Mbit/s");

    world.capacity = 2_000_000;
    // Three round trips and 200 ms.
    world.run(320);
    let found = world.estimator.estimate();
    assert!(found.low <= 2_100_000, "{found:?}");
    world.run(4_000);
    let found = world.estimator.estimate();
    assert!((1_500_000..=2_100_000).contains(&found.estimate), "{found:?}");

    world.capacity = 10_000_000;
    world.run(4_000);
    let found = world.estimator.estimate();
    assert!((7_500_000..=MOST).contains(&found.estimate), "{found:?}");
    assert_eq!(world.estimator.contradictions(), 0);
}
