//! The hostile neighbour: it follows the protocol well enough to stay connected and sends extreme values.

use super::{HOSTILE, VICTIM};
use crate::mutate::{Xorshift, mutate};
use bytes::Bytes;
use paceline_proto::control::{Control, ControlOutput, HopInfo, PublisherSpec, SubscriptionSpec};
use paceline_proto::receive::{Received, Receiver};
use paceline_proto::wire::Writer;
use paceline_proto::wire::ack::Ack;
use paceline_proto::wire::frame::FrameHeader;
use paceline_proto::wire::segment::{
    ControlHead, DataHead, Retransmission, SampleHead, write_abort, write_close, write_open,
    write_open_retransmitted, write_part,
};
use paceline_proto::{
    Encoding, Form, Kind, NodeId, Pattern, ProbeInterval, Proxy, PublisherId, Retransmit, Size,
    SubscriptionId, Tag, Timestamp,
};
use paceline_sched::{Duration, Instant, Late, LossTolerance};
use std::collections::{BTreeSet, VecDeque};

/// The most publishers that it keeps at a time, and the most subscriptions.
const KEPT_MAX: usize = 16;
/// Values at which arithmetic may overflow.
const EXTREMES: [u64; 20] = [
    0,
    1,
    2,
    63,
    64,
    127,
    128,
    4_095,
    4_096,
    65_535,
    1 << 20,
    (1 << 20) + 1,
    (1 << 31) - 1,
    (1 << 32) - 1,
    1 << 32,
    1 << 53,
    u64::MAX / 1_000,
    u64::MAX / 2,
    u64::MAX / 2 + 1,
    u64::MAX,
];
/// Frames waiting for an acknowledgement; older ones are forgotten.
const FLIGHT_MAX: usize = 4_096;
/// The most control messages in the send queue.
const MESSAGES_MAX: usize = 64;
/// It restarts the hop after this time without an acknowledgement.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct Attacker {
    chance: Xorshift,
    control: Control,
    receiver: Receiver,
    epoch: u32,
    /// The epoch of the node under test.
    known: u32,
    up: bool,
    next_seq: u64,
    owed: Option<Ack>,
    flight: BTreeSet<u64>,
    datagrams: bool,
    messages: VecDeque<Bytes>,
    next_message: u64,
    numbers: [u64; 8],
    /// Its publishers and subscriptions, oldest first.
    published: VecDeque<PublisherId>,
    subscribed: VecDeque<SubscriptionId>,
    heard_at: Instant,
    silent_until: Instant,
    pub(super) sent: u64,
    pub(super) acknowledged: u64,
    pub(super) handshakes: u64,
}

impl Attacker {
    pub(super) fn new(now: Instant, seed: u64) -> Self {
        let mut chance = Xorshift::new(seed);
        let datagrams = chance.below(2) == 1;
        Self {
            chance,
            control: Control::new(HOSTILE, "hostile"),
            receiver: Receiver::new(),
            epoch: 1,
            known: 0,
            up: false,
            next_seq: 0,
            owed: None,
            flight: BTreeSet::new(),
            datagrams,
            messages: VecDeque::new(),
            next_message: 0,
            numbers: [0; 8],
            published: VecDeque::new(),
            subscribed: VecDeque::new(),
            heard_at: now,
            silent_until: Instant::ZERO,
            sent: 0,
            acknowledged: 0,
            handshakes: 0,
        }
    }

    /// Receives a frame from the node.
    pub(super) fn hear(&mut self, now: Instant, frame: Bytes) {
        let mut messages = Vec::new();
        let result = self.receiver.handle_frame(now, self.epoch, frame, |received| {
            if let Received::Control(message) = received {
                messages.push(message);
            }
        });
        let Ok(heard) = result else {
            panic!("the node sends a message that cannot be decoded: {result:?}")
        };
        if heard.epoch != self.known {
            self.known = heard.epoch;
            self.begin(now);
        }
        if heard.known == self.epoch && !self.up {
            self.up = true;
            self.handshakes += 1;
            let info = HopInfo::new("radio".into(), None);
            self.control.handle_hop_up(now, VICTIM, info);
        }
        self.owed = heard.owed.or(self.owed);
        if let Some(ack) = heard.ack.filter(|_| heard.known == self.epoch) {
            let before = self.flight.len();
            self.flight.retain(|seq| !ack.covers(*seq));
            let newly = before - self.flight.len();
            self.acknowledged += newly as u64;
            if newly > 0 {
                self.heard_at = now;
            }
        }
        for message in messages {
            // Processing the node's messages keeps the node sending.
            let _ = self.control.handle_message(now, VICTIM, message);
        }
    }

    /// Restarts the hop with a new epoch.
    fn begin(&mut self, now: Instant) {
        if self.up {
            self.control.handle_hop_down(now, VICTIM);
        }
        self.epoch = self.epoch.saturating_add(1);
        (self.up, self.next_seq, self.next_message, self.owed) = (false, 0, 0, None);
        self.numbers = [0; 8];
        self.flight.clear();
        self.heard_at = now;
    }

    /// Runs one step and returns the frames to send.
    pub(super) fn drive(&mut self, now: Instant) -> Vec<Bytes> {
        if now < self.silent_until {
            return Vec::new();
        }
        if now.since(self.heard_at) > PATIENCE {
            self.begin(now);
            self.datagrams = self.chance.below(2) == 1;
        }
        match self.chance.below(40_000) {
            // Longer than the hop timeout, or only a late answer.
            0 => self.silent_until = now + Duration::from_millis(2_500),
            1..10 => self.silent_until = now + Duration::from_millis(self.chance.below(400) as u64),
            _ => {}
        }
        self.talk(now);
        let frames = self.chance.below(4);
        (0..frames).map(|_| self.frame()).collect()
    }

    /// Collects the output of its control and adds invented messages.
    fn talk(&mut self, now: Instant) {
        if self.chance.below(20) == 0 {
            self.change(now);
        }
        self.control.handle_timeout(now);
        while let Some(output) = self.control.poll_output() {
            if let ControlOutput::Send { message, .. } = output
                && self.messages.len() < MESSAGES_MAX
            {
                self.messages.push_back(message);
            }
        }
    }

    fn change(&mut self, now: Instant) {
        let index = self.word() % 8;
        let id = PublisherId { node: HOSTILE, index };
        match self.chance.below(6) {
            0 | 1 => {
                let spec = self.publisher();
                self.published.push_back(self.control.publish(now, spec));
            }
            2 | 3 => {
                let spec = self.subscription();
                self.subscribed.push_back(self.control.subscribe(now, spec));
            }
            4 => self.control.unpublish(now, id),
            _ => self.control.unsubscribe(now, SubscriptionId { node: HOSTILE, index }),
        }
        // The node matches each publisher with each subscription on every change. More of them would only
        // slow the test down.
        if self.published.len() > KEPT_MAX
            && let Some(oldest) = self.published.pop_front()
        {
            self.control.unpublish(now, oldest);
        }
        if self.subscribed.len() > KEPT_MAX
            && let Some(oldest) = self.subscribed.pop_front()
        {
            self.control.unsubscribe(now, oldest);
        }
    }

    fn frame(&mut self) -> Bytes {
        let mut out = Vec::new();
        self.header().write(&mut out);
        if self.up {
            let mut body = Vec::new();
            for _ in 0..1 + self.chance.below(5) {
                self.segment(&mut body);
            }
            if self.chance.below(16) == 0 {
                let other = self.messages.front().cloned().unwrap_or_default();
                body = mutate(&body, &other, &mut self.chance);
            }
            out.extend_from_slice(&body);
        }
        if self.chance.below(200) == 0 {
            out = mutate(&out, &[], &mut self.chance);
        }
        self.sent += 1;
        out.into()
    }

    /// Builds a header that the node accepts, with an occasional impossible field.
    fn header(&mut self) -> FrameHeader {
        let mut header = FrameHeader {
            epoch: self.epoch,
            known: self.known,
            seq: None,
            ack: self.owed,
            ack_now: true,
            datagrams: self.datagrams,
            held: None,
            transit: None,
            stamp: (self.chance.below(4) == 0).then_some(7),
            echo: None,
            probes: ProbeInterval::SHORTEST,
        };
        if !self.up {
            header.ack = None;
            return header;
        }
        if self.chance.below(2_000) == 0 {
            self.next_seq = self.next_seq.saturating_add(self.number()).min(u64::MAX / 2 - 1);
        }
        header.seq = Some(self.next_seq);
        if self.flight.len() < FLIGHT_MAX {
            self.flight.insert(self.next_seq);
        }
        self.next_seq = (self.next_seq + 1).min(u64::MAX / 2 - 1);
        let extreme = Duration::from_micros(self.number().min(u64::MAX / 1_000));
        if header.ack.is_some() && self.chance.below(4) == 0 {
            header.held = Some(extreme);
        }
        if self.chance.below(4) == 0 {
            header.transit = Some(extreme);
        }
        if let Some(ack) = header.ack.as_mut()
            && self.chance.below(64) == 0
        {
            let next = EXTREMES[self.chance.below(EXTREMES.len())].min(u64::MAX / 2);
            let ahead = [0, 9, 64, 4_096][self.chance.below(4)];
            let described = if ahead == 0 { 0 } else { u64::MAX >> (65 - ahead.min(64)) };
            let newest = (self.chance.next() | 1) & described;
            *ack = Ack::new(next, ahead, newest).unwrap_or(*ack);
        }
        header
    }

    fn segment(&mut self, out: &mut Vec<u8>) {
        let stream = self.stream();
        match self.chance.below(16) {
            0 => self.open(stream, out),
            1..8 => self.data(stream, out),
            8 => write_close(stream, self.sample_number(stream), out),
            9 => write_abort(stream, self.sample_number(stream), out),
            10 => {
                let total = self.chance.below(5_000);
                let offset = self.chance.below(total + 1);
                let len = self.chance.below((total - offset).min(100) + 1);
                write_part(self.message_number(), total, offset, len, out);
                out.resize(out.len() + len, 7);
            }
            _ => self.control_message(out),
        }
    }

    fn open(&mut self, stream: u32, out: &mut Vec<u8>) {
        let node = [HOSTILE, VICTIM, super::GOOD, NodeId(u64::MAX)][self.chance.below(4)];
        let publisher = PublisherId { node, index: self.word() };
        if self.chance.below(2) == 0 {
            write_open(stream, publisher, &Form::FULL, out);
        } else {
            let modes = [Retransmit::None, Retransmit::GoBackN, Retransmit::Selective];
            let retransmit = modes[self.chance.below(3)];
            let hold = Duration::from_micros(self.number().min(u64::MAX / 1_000));
            let first = self.sample_number(stream);
            let mend = Retransmission { retransmit, first, hold: Some(hold) };
            write_open_retransmitted(stream, publisher, &Form::FULL, mend, out);
        }
        self.numbers[stream as usize % 8] = 0;
    }

    fn data(&mut self, stream: u32, out: &mut Vec<u8>) {
        let number = self.sample_number(stream);
        let len = [0, 1, 20, 100, 900][self.chance.below(5)];
        let last = self.chance.below(3) > 0;
        let total =
            if self.chance.below(2) == 0 { len + self.chance.below(2_000) } else { 64 << 20 };
        let head = SampleHead {
            total,
            seq: self.number(),
            captured: Timestamp { nanos: self.number(), error: u8::MAX },
            shift: 0,
            kind: Kind::from_code(u8::try_from(self.chance.below(7)).unwrap_or(0))
                .unwrap_or(Kind::Data),
            encoding: Encoding::Bytes,
            age: Duration::from_micros(self.number()),
            doubt: None,
            attachment: None,
        };
        let first = (self.chance.below(2) == 0).then_some(&head);
        let offset = if first.is_some() { 0 } else { self.chance.below(3_000) };
        DataHead { stream, number, first, offset, last, len }.write(out);
        out.resize(out.len() + len, 9);
    }

    /// Sends a message of its control, sometimes slightly corrupted, as one segment or in pieces that do not
    /// fit.
    fn control_message(&mut self, out: &mut Vec<u8>) {
        let Some(mut message) = self.messages.pop_front() else { return };
        message.truncate(1_000);
        if self.chance.below(2) == 0 {
            message = mutate(&message, &[], &mut self.chance).into();
        }
        if self.datagrams {
            write_part(self.next_message, message.len(), 0, message.len(), out);
            self.next_message += 1;
        } else {
            let odd = self.chance.below(30) == 0;
            let total = if odd { self.chance.below(4 << 20) } else { message.len() };
            ControlHead { total: Some(total), last: !odd, len: message.len() }.write(out);
        }
        out.put_bytes(&message);
    }

    fn stream(&mut self) -> u32 {
        if self.chance.below(16) == 0 {
            self.word()
        } else {
            u32::try_from(self.chance.below(8)).unwrap_or(0)
        }
    }

    /// Returns the next sample number most of the time, so that samples are delivered, otherwise any number.
    fn sample_number(&mut self, stream: u32) -> u64 {
        let at = stream as usize % 8;
        if self.chance.below(24) == 0 {
            return self.number();
        }
        self.numbers[at] += self.chance.below(3) as u64;
        self.numbers[at]
    }

    fn message_number(&mut self) -> u64 {
        if self.chance.below(4) == 0 { self.number() } else { self.next_message + 1 }
    }

    fn number(&mut self) -> u64 {
        match self.chance.below(4) {
            0 => EXTREMES[self.chance.below(EXTREMES.len())],
            1 => self.chance.next(),
            _ => self.chance.below(1_000) as u64,
        }
    }

    fn word(&mut self) -> u32 {
        u32::try_from(self.number()).unwrap_or(u32::MAX)
    }

    fn publisher(&mut self) -> PublisherSpec {
        let tag = ["robot/left", "arm", "camera"][self.chance.below(3)];
        PublisherSpec {
            tag: Tag::new(tag).unwrap(),
            kind: [Kind::Data, Kind::Picture, Kind::State][self.chance.below(3)],
            encoding: Encoding::Bytes,
            period: (self.chance.below(2) == 0).then(|| Duration::from_nanos(self.number())),
            late: Late::Drop,
            loss: LossTolerance::new(self.word() % 40, 40).ok(),
            size: (self.chance.below(2) == 0)
                .then(|| Size { width: self.word(), height: self.word() }),
            bytes_max: Some(self.number()),
            envelope: None,
            waits: self.chance.below(2) == 0,
            latch: self.chance.below(2) == 0,
            unscalable: None,
            key_interval: None,
            structure: None,
            scaled: Vec::new(),
            within: None,
        }
    }

    fn subscription(&mut self) -> SubscriptionSpec {
        let pattern = ["**", "robot/*", "arm"][self.chance.below(3)];
        SubscriptionSpec {
            pattern: Pattern::new(pattern).unwrap(),
            form: Form::FULL,
            within: (self.chance.below(2) == 0).then(|| Duration::from_nanos(self.number())),
            loss: None,
            proxy: [Proxy::Publisher, Proxy::Subscriber, Proxy::Auto, Proxy::Node("any".into())]
                [self.chance.below(4)]
            .clone(),
            holds: false,
            local: false,
            retransmit: Retransmit::default(),
            or_stop: self.chance.below(2) == 0,
            encrypted: self.chance.below(8) == 0,
            level: None,
            idle: None,
            with: None,
            proves: self.chance.below(4) == 0,
            spare: self.chance.below(4) == 0,
            importance: 100,
            elastic: None,
            revision: self.number(),
        }
    }
}
