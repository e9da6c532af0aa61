//! Drives the real link, its other ends and the model of both through one history.
//!
//! The wire has no delay: a frame arrives or is lost before anything else happens.

mod check;

use super::Setup;
use super::far::Far;
use super::frame::{Gate, is_control, is_in_order};
use super::hop::Hop;
use super::model::{Model, Piece};
use crate::input::Input;
use bytes::Bytes;
use paceline_proto::link::{Link, LinkEvent, LinkSpec, StreamSpec};
use paceline_proto::wire::ack::Ack;
use paceline_proto::wire::codec::Reader;
use paceline_proto::wire::frame::{FrameBuf, FrameHeader};
use paceline_proto::wire::segment::Segment;
use paceline_proto::{
    ATTACHMENT_BYTES_MAX, DropReason, Encoding, Form, Kind, NodeId, PublisherId, RawSample,
    StreamCounters, Timestamp,
};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Contract, Duration, Instant, Late, LossTolerance};
use std::collections::BTreeMap;
use std::sync::Arc;

const STREAMS: u8 = 6;
/// Frames in flight to a hop: the window, control beyond it, and probes during silence.
const FLIGHT_FRAMES_MAX: usize = 12 + 3 + 80;
/// The most samples of one history, and the most frames in which its end must empty all queues.
const SAMPLES_MAX: u64 = 3_000;
const ROUNDS_MAX: usize = 50_000;

pub(super) struct Lab {
    setup: Setup,
    now: Instant,
    link: Link,
    model: Model,
    gate: Gate,
    hops: Vec<Hop>,
    fars: Vec<Far>,
    /// The epoch of the next hop to be found.
    next_epoch: u32,
    /// Every offered sample, by its number.
    book: BTreeMap<u64, RawSample>,
    next_sample: u64,
    /// Number of the next frames to lose.
    lose: u8,
}

fn node(hop: usize) -> NodeId {
    NodeId(hop as u64 + 2)
}

impl Lab {
    pub(super) fn new(setup: Setup) -> Self {
        let now = Instant::from_millis(10_000);
        let mut lab = Self {
            setup,
            now,
            link: Link::new(LinkSpec {
                capacity: setup.capacity,
                policy: setup.policy,
                ..LinkSpec::default()
            }),
            model: Model::new(setup),
            gate: Gate::new(setup),
            hops: (0..setup.hops).map(|hop| Hop::new(now, node(hop), 0)).collect(),
            fars: (0..setup.hops).map(|_| Far::new(1)).collect(),
            next_epoch: 1,
            book: BTreeMap::new(),
            next_sample: 0,
            lose: 0,
        };
        (0..setup.hops).for_each(|hop| lab.find(hop));
        lab.send();
        lab
    }

    /// Reports the hop as found, for the first time or again.
    fn find(&mut self, hop: usize) {
        self.link.add_hop(self.now, node(hop), self.next_epoch);
        self.hops[hop] = self.hops[hop].found_again(self.now, self.next_epoch);
        self.next_epoch += 100;
    }

    pub(super) fn step(&mut self, input: &mut Input<'_>) {
        match input.below(20) {
            0..3 => self.pass(Duration::from_micros(u64::from(input.byte()) * 50)),
            3 => self.pass(Duration::from_millis(u64::from(input.byte()) * 2)),
            4 | 5 => self.open(input),
            6 => self.close(input),
            7 => self.update(input),
            8..14 => self.offer(input, 1),
            14 => self.burst(input),
            15 => self.control(input),
            16 => self.send(),
            17 => (0..self.setup.hops).for_each(|hop| self.answer(hop)),
            18 => self.drop_before(input),
            _ => self.trouble(input),
        }
        if self.setup.prompt {
            self.send();
        }
    }

    fn pass(&mut self, time: Duration) {
        let wake = self.link.poll_timeout();
        self.now += time;
        self.tick();
        if self.setup.ordered() && self.now < wake {
            let mut frame = FrameBuf::default();
            let hop = self.link.poll_frame(self.now, &mut frame);
            assert_eq!(hop, None, "a frame {time} later, but nothing to do before {wake}");
        }
    }

    fn tick(&mut self) {
        for (node, probed) in self.link.hops() {
            let hops = self.hops.iter_mut().filter(|hop| hop.node == node);
            hops.for_each(|hop| hop.probes = probed.probe_interval());
        }
        self.link.handle_timeout(self.now);
        let silent: Vec<_> = self.hops.iter_mut().filter_map(|hop| hop.pass(self.now)).collect();
        self.events(silent);
        self.settle();
        self.model.begin_turn(self.now, self.link.is_behind());
        self.expire();
        for hop in 0..self.setup.hops {
            let forgotten = self.hops[hop].is_forgotten(self.now);
            assert_eq!(forgotten, self.link.epoch(node(hop)) == 0, "{} forgotten", node(hop));
            if forgotten {
                self.find(hop);
            }
        }
    }

    fn expire(&mut self) {
        self.model.expire(self.now);
        self.take_aborts();
    }

    /// Copies the number of heads that the link gave up per stream. The link may keep a late head until it is
    /// hopeless.
    fn handle_given_up(&mut self) {
        let missed = |index: StreamIndex, counters: StreamCounters| {
            (index.0, counters.drops.of(DropReason::DeadlineMissed))
        };
        let streams = self.link.streams();
        self.model.given_up = streams.map(|(index, _, counts, _)| missed(index, counts)).collect();
    }

    /// Checks that every head given up so far was hopeless.
    fn settle(&mut self) {
        self.handle_given_up();
        for index in self.model.lines.keys().copied().collect::<Vec<_>>() {
            while self.model.give_up(self.now, index) {}
        }
        self.take_aborts();
    }

    fn take_aborts(&mut self) {
        for aborted in std::mem::take(&mut self.model.aborted) {
            let hop = self.hops.iter_mut().find(|hop| hop.node == aborted.hop);
            hop.unwrap().aborts.push(aborted);
        }
    }

    /// Checks that the link reports exactly the events of the model.
    fn events(&mut self, expected: impl IntoIterator<Item = LinkEvent>) {
        for expected in expected {
            assert_eq!(self.link.poll_event(), Some(expected));
            match expected {
                LinkEvent::HopUp(hop) => self.model.take_up(hop),
                LinkEvent::HopDown(hop) => self.model.take_down(hop),
            }
        }
        assert_eq!(self.link.poll_event(), None);
    }

    fn spec(&self, input: &mut Input<'_>, hop: usize, index: u32) -> StreamSpec {
        let kind = input.one_of(&[Kind::Data, Kind::Data, Kind::State, Kind::Picture, Kind::Audio]);
        let contracted = self.setup.contracts && input.flag();
        let contract = contracted.then(|| {
            let millis = |input: &mut Input<'_>| Duration::from_millis(1 + u64::from(input.byte()));
            let (period, deadline) = (millis(input), millis(input));
            let y = u32::from(input.below(5)) + 1;
            let loss = LossTolerance::new(u32::from(input.byte()) % (y + 1), y);
            Contract::every(period)
                .and_then(|contract| contract.with_deadline(deadline))
                .unwrap()
                .with_loss(if y == 5 { LossTolerance::EDF } else { loss.unwrap() })
                .with_late(input.one_of(&[Late::Drop, Late::Drop, Late::Send]))
                .with_jitter(period.mul_div(u64::from(input.below(2)), 2))
        });
        let upstream = Duration::from_millis(u64::from(input.below(4)) * 5);
        let publisher = PublisherId { node: NodeId(1), index };
        let slack = Duration::from_millis(u64::from(input.below(4)) * 20);
        let (hop, form, background) = (node(hop), Form::FULL, false);
        let plain = StreamSpec::best_effort(publisher, hop, form, kind);
        StreamSpec { contract, upstream, slack, background, ..plain }
    }

    fn open(&mut self, input: &mut Input<'_>) {
        let index = u32::from(input.below(STREAMS));
        let hop = usize::from(input.byte()) % self.setup.hops;
        let spec = self.spec(input, hop, index);
        let opened = self.link.open_stream(StreamIndex(index), spec.clone());
        assert_eq!(opened, self.model.open(index, spec, self.hops[hop].up));
    }

    fn update(&mut self, input: &mut Input<'_>) {
        let index = u32::from(input.below(STREAMS));
        let hop = self.model.lines.get(&index).map(|line| line.spec.hop);
        let Some(hop) = (0..self.setup.hops).find(|&at| Some(node(at)) == hop) else { return };
        let spec = self.spec(input, hop, index);
        self.link.update_stream(self.now, StreamIndex(index), spec.clone());
        self.model.update(self.now, index, spec);
    }

    fn close(&mut self, input: &mut Input<'_>) {
        let index = u32::from(input.below(STREAMS));
        let real = self.link.close_stream(StreamIndex(index));
        let line = self.model.close(index);
        assert_eq!(real.is_some(), line.is_some());
        let (Some(real), Some(line)) = (real, line) else { return };
        self.compare(index, &line, real, 0);
        let end = line.number + u64::from(line.begun.is_some());
        if end > 0 {
            let hop = self.hops.iter_mut().find(|hop| hop.node == line.spec.hop);
            hop.unwrap().closes.push((line.id, end));
        }
    }

    fn burst(&mut self, input: &mut Input<'_>) {
        let count = u64::from(input.byte());
        self.offer(input, count);
    }

    fn offer(&mut self, input: &mut Input<'_>, count: u64) {
        let index = u32::from(input.below(STREAMS));
        let sizes: &[usize] = match self.setup.capacity {
            Some(_) => &[0, 1, 30, 300, 900, 1_040, 1_100, 5_000],
            None => &[0, 1, 30, 1_000, 2_048, 20_000, 64_900, 70_000],
        };
        let payload = Bytes::from(vec![input.byte(); input.one_of(sizes)]);
        let age = Duration::from_micros(u64::from(input.byte()) * 100);
        for _ in 0..count {
            if self.next_sample < SAMPLES_MAX {
                self.put(index, payload.clone(), age);
            }
        }
    }

    fn put(&mut self, index: u32, payload: Bytes, age: Duration) -> bool {
        let seq = self.next_sample;
        self.next_sample += 1;
        let sample = RawSample {
            seq,
            captured: Timestamp { nanos: seq * 1_000, error: 9 },
            shift: 0,
            published_at: self.now - age,
            doubt: Duration::ZERO,
            kind: if seq.is_multiple_of(3) { Kind::Data } else { Kind::State },
            encoding: if seq & 1 == 0 { Encoding::Jpeg } else { Encoding::new("a/b") },
            payload,
            attachment: attachment(seq),
        };
        self.book.insert(seq, sample.clone());
        let stream = StreamIndex(index);
        let room = self.model.lines.get(&index).is_some_and(super::line::Line::has_room);
        assert_eq!(self.link.has_room(self.now, stream), room, "room for sample {seq}");
        let taken = self.link.handle_sample(self.now, stream, sample.clone());
        assert_eq!(taken, self.model.offer(self.now, index, sample), "sample {seq}");
        self.take_aborts();
        taken
    }

    fn drop_before(&mut self, input: &mut Input<'_>) {
        let index = u32::from(input.below(STREAMS));
        let (reason, samples) = (input.one_of(&DropReason::ALL), input.below(5));
        self.link.handle_dropped(StreamIndex(index), reason, samples.into());
        if let Some(line) = self.model.lines.get_mut(&index) {
            line.counts.offered += u64::from(samples);
            line.counts.drops.extend((0..samples).map(|_| reason));
        }
    }

    fn control(&mut self, input: &mut Input<'_>) {
        let hop = usize::from(input.byte()) % self.setup.hops;
        let len = input.one_of(&[0, 1, 60, 900, 3_000, 70_000]);
        // Not a change of a record: these do not always keep their order.
        let message = Bytes::from(vec![input.byte() | 0x10; len]);
        self.link.handle_control(node(hop), message.clone());
        self.hops[hop].control.push_back(message);
    }

    fn trouble(&mut self, input: &mut Input<'_>) {
        let hop = usize::from(input.byte()) % self.setup.hops;
        match input.below(12) {
            0 => self.fars[hop] = Far::new(self.fars[hop].epoch + 1),
            1 => {
                self.link.remove_hop(node(hop));
                let down = self.hops[hop].up.then(|| LinkEvent::HopDown(node(hop)));
                self.events(down);
                self.find(hop);
            }
            2 => self.pass(Duration::from_millis(1_800)),
            3 => self.pass(Duration::from_millis(5_000)),
            4 if self.setup.lossy => {
                let next = u64::from(input.u16());
                let odd = Ack::new(next, 9, u64::from(input.byte() | 1));
                self.fars[hop].owed = odd;
                self.answer(hop);
            }
            _ if self.setup.lossy => self.lose = input.below(6),
            _ => {}
        }
    }

    /// Delivers an answer of the other end.
    fn answer(&mut self, hop: usize) {
        let heard = self.fars[hop].heard();
        self.link.handle_heard(self.now, node(hop), &heard);
        let event = self.hops[hop].hear(self.now, heard.epoch, heard.known);
        self.events(event);
        assert_eq!(self.link.epoch(node(hop)), self.hops[hop].epoch);
    }

    /// Sends every frame that may leave now.
    fn send(&mut self) {
        let mut frame = FrameBuf::default();
        for _ in 0..ROUNDS_MAX {
            self.expire();
            let to = self.link.poll_frame(self.now, &mut frame);
            self.handle_given_up();
            let Some(to) = to else { return self.settle() };
            let hop = (0..self.setup.hops).find(|&hop| node(hop) == to).unwrap();
            self.frame(hop, &frame.to_bytes());
        }
        panic!("frames without an end");
    }

    fn frame(&mut self, hop: usize, frame: &Bytes) {
        let mut reader = Reader::new(frame.clone());
        let header = FrameHeader::read(&mut reader).unwrap();
        assert_eq!(header.epoch, self.hops[hop].epoch);
        let (mut segments, mut control) = (Vec::new(), 0);
        while !reader.is_empty() {
            let before = reader.remaining();
            let segment = Segment::read(&mut reader).unwrap();
            control += if is_control(&segment) { before - reader.remaining() } else { 0 };
            segments.push(segment);
        }
        let promised = |stream| self.model.is_promised(stream);
        assert!(is_in_order(&segments, promised), "{segments:?}");
        assert!(header.seq.is_some() || segments.is_empty(), "segments without a number");
        self.gate.pass(self.now, frame.len(), control);
        segments.iter().for_each(|segment| self.segment(hop, segment));
        self.settle();
        if self.lose > 0 {
            self.lose -= 1;
            return;
        }
        self.fars[hop].hear(self.now, frame, &header, &segments, &self.book);
        if self.setup.prompt {
            self.answer(hop);
        }
    }

    fn segment(&mut self, hop: usize, segment: &Segment) {
        match segment {
            Segment::Data { stream, number, place, last, payload } => {
                let (id, number, last) = (*stream, *number, *last);
                self.model.serve(self.now, node(hop), &Piece { id, number, place, last, payload });
                self.take_aborts();
            }
            Segment::Control { total, last, payload } => {
                self.hops[hop].sent_control(*total, *last, payload);
            }
            Segment::Open { stream, publisher, form, retransmission } => {
                assert_eq!(*retransmission, None, "this carrier loses nothing");
                let line = self.model.lines.get_mut(&(stream % 4_096)).unwrap();
                assert_eq!((line.id, line.spec.hop), (*stream, node(hop)));
                assert_eq!((line.spec.publisher, line.spec.form), (*publisher, *form));
                assert!(!line.announced || self.setup.lossy, "stream {stream} opened twice");
                line.announced = true;
            }
            Segment::Close { stream, end } => self.hops[hop].sent_close((*stream, *end)),
            Segment::Abort { stream, number } => {
                if !self.hops[hop].expects_abort(*stream, *number) {
                    self.model.give_up(self.now, stream % 4_096);
                    self.take_aborts();
                }
                self.hops[hop].sent_abort(*stream, *number);
            }
            Segment::Part { .. } | Segment::Padding { .. } => {
                panic!("{segment:?} where nothing is lost")
            }
        }
    }
}

/// Returns an attachment of any permitted length, for every fifth sample.
fn attachment(seq: u64) -> Option<Arc<[u8]>> {
    let len = usize::try_from(seq * 37).unwrap_or(0) % (ATTACHMENT_BYTES_MAX + 1);
    seq.is_multiple_of(5).then(|| vec![seq.to_le_bytes()[0]; len].into())
}
