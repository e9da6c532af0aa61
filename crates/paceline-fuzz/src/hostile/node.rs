//! A node assembled from the pure parts: one link, the receivers of its neighbours, and control. It does the
//! work of the driver shell.

use bytes::Bytes;
use paceline_proto::control::{Control, ControlOutput, HopInfo};
use paceline_proto::guard::{Flood, Guard, Hearing};
use paceline_proto::link::{Link, LinkEvent, LinkSpec, StreamSpec};
use paceline_proto::receive::{Received, Receiver};
use paceline_proto::rights::{AccessPolicy, PeerName};
use paceline_proto::wire::frame::FrameBuf;
use paceline_proto::{
    Carrier, Encoding, Form, Kind, NodeId, PublisherId, RawSample, StreamCounters, Timestamp,
};
use paceline_sched::discipline::StreamIndex;
use paceline_sched::{Capacity, Contract, Duration, Instant, Late, LossTolerance, Policy};
use std::collections::BTreeMap;

/// 10 Mbit/s.
const BYTES_PER_S: u64 = 1_250_000;
/// Payload size of the stream with a contract.
const SAMPLE_BYTES: usize = 500;
/// Limits of one step: frames sent, and outputs of control.
const FRAMES_MAX: usize = 1_000;
const OUTPUTS_MAX: usize = 100_000;

/// An event of the stream with a contract.
pub(super) enum Arrival {
    Sample { published_at: Instant, seq: u64 },
    Lost(u64),
}

#[derive(Default)]
struct Neighbour {
    receiver: Receiver,
    guard: Guard,
    unread: bool,
}

pub(super) struct Node {
    id: NodeId,
    link: Link,
    control: Control,
    neighbours: BTreeMap<NodeId, Neighbour>,
    next_epoch: u32,
    next_seq: u64,
    pub(super) malformed: u64,
}

impl Node {
    pub(super) fn new(now: Instant, id: NodeId, hops: &[NodeId]) -> Self {
        let spec = LinkSpec {
            capacity: Capacity::from_bytes_per_s(BYTES_PER_S).ok(),
            policy: Policy::default(),
            classes: None,
            carrier: Carrier::Ordered,
        };
        let (link, control) = (Link::new(spec), Control::new(id, "node"));
        let neighbours = hops.iter().map(|hop| (*hop, Neighbour::default())).collect();
        let (next_epoch, next_seq, malformed) = (1, 0, 0);
        let mut node = Self { id, link, control, neighbours, next_epoch, next_seq, malformed };
        hops.iter().for_each(|hop| node.find(now, *hop));
        node
    }

    /// Sets the rights and the identities of the neighbours.
    pub(super) fn guard_by(
        &mut self,
        now: Instant,
        policy: Option<AccessPolicy>,
        peers: impl IntoIterator<Item = (NodeId, PeerName)>,
    ) {
        self.control.set_policy(now, policy);
        peers.into_iter().for_each(|(node, peer)| self.control.set_peer(now, node, peer));
    }

    fn find(&mut self, now: Instant, hop: NodeId) {
        self.link.add_hop(now, hop, self.next_epoch);
        self.next_epoch += 1_000;
    }

    /// Opens a stream with a contract towards a hop.
    pub(super) fn promise(&mut self, hop: NodeId, period: Duration, deadline: Duration) {
        let publisher = PublisherId { node: self.id, index: 0 };
        let contract = Contract {
            period,
            deadline,
            loss: LossTolerance::EDF,
            late: Late::Drop,
            jitter: Duration::ZERO,
        };
        let plain = StreamSpec::best_effort(publisher, hop, Form::FULL, Kind::Data);
        let spec = StreamSpec { contract: Some(contract), ..plain };
        assert!(self.link.open_stream(StreamIndex(0), spec));
    }

    /// Publishes a sample on the stream with a contract.
    pub(super) fn publish(&mut self, now: Instant) {
        let sample = RawSample {
            seq: self.next_seq,
            captured: Timestamp { nanos: self.next_seq, error: 0 },
            shift: 0,
            published_at: now,
            doubt: Duration::ZERO,
            kind: Kind::Data,
            encoding: Encoding::Bytes,
            payload: vec![7; SAMPLE_BYTES].into(),
            attachment: None,
        };
        self.next_seq += 1;
        self.link.handle_sample(now, StreamIndex(0), sample);
    }

    /// Returns the counters of the stream with a contract.
    pub(super) fn counters(&self) -> StreamCounters {
        self.link.counters(StreamIndex(0)).unwrap_or_default()
    }

    /// Runs one step and returns the frames that leave.
    pub(super) fn drive(&mut self, now: Instant) -> Result<Vec<(NodeId, Bytes)>, String> {
        self.link.handle_timeout(now);
        while let Some(event) = self.link.poll_event() {
            match event {
                LinkEvent::HopUp(hop) => {
                    let capacity = Capacity::from_bytes_per_s(BYTES_PER_S).ok();
                    let info = HopInfo::new("radio".into(), capacity);
                    self.control.handle_hop_up(now, hop, info);
                }
                LinkEvent::HopDown(hop) => self.control.handle_hop_down(now, hop),
            }
        }
        self.control.handle_timeout(now);
        let mut outputs = 0;
        while let Some(output) = self.control.poll_output() {
            outputs += 1;
            if outputs > OUTPUTS_MAX {
                return Err("control never stops".to_owned());
            }
            if let ControlOutput::Send { hop, message } = output {
                self.link.handle_control(hop, message);
            }
        }
        let departed = |hop: &NodeId| self.link.epoch(*hop) == 0;
        let departed: Vec<_> = self.neighbours.keys().copied().filter(departed).collect();
        for hop in departed {
            self.neighbours.insert(hop, Neighbour::default());
            self.find(now, hop);
        }
        let (mut frames, mut frame) = (Vec::new(), FrameBuf::default());
        while let Some(hop) = self.link.poll_frame(now, &mut frame) {
            frames.push((hop, frame.to_bytes()));
            if frames.len() > FRAMES_MAX {
                return Err(format!("{FRAMES_MAX} frames in one iteration"));
            }
        }
        Ok(frames)
    }

    /// Receives a frame. Returns the samples and losses of the sender's stream with a contract.
    pub(super) fn receive(&mut self, now: Instant, from: NodeId, frame: Bytes) -> Vec<Arrival> {
        let epoch = self.link.epoch(from);
        let half = self.link.half_round_trip(from).unwrap_or_default();
        let Some(neighbour) = self.neighbours.get_mut(&from) else { return Vec::new() };
        let Neighbour { receiver, guard, unread } = neighbour;
        let bytes = frame.len();
        if *unread {
            *unread = guard.is_muted(Flood::Malformed, now);
            if *unread {
                guard.take(Flood::Malformed, now, bytes);
                return Vec::new();
            }
        }
        receiver.set_half_round_trip(half);
        let (mut arrivals, mut messages) = (Vec::new(), Vec::new());
        let result = receiver.handle_frame(now, epoch, frame, |received| match received {
            Received::Sample { sample, .. } => {
                assert!(sample.published_at <= now, "it was published in the future");
                arrivals
                    .push(Arrival::Sample { published_at: sample.published_at, seq: sample.seq });
            }
            Received::Lost { lost, .. } => arrivals.push(Arrival::Lost(lost.samples)),
            Received::Control(message) => messages.push(message),
        });
        receiver.handle_timeout(now, |_| ());
        let heard = match result {
            Ok(heard) => Some(heard),
            Err((heard, _)) => {
                self.malformed += 1;
                *unread = guard.take(Flood::Malformed, now, bytes) != Hearing::Heard;
                heard
            }
        };
        for message in messages {
            if guard.take(Flood::Control, now, message.len()) == Hearing::Heard {
                // Control counts the messages that it rejects.
                let _ = self.control.handle_message(now, from, message);
            }
        }
        if let Some(heard) = heard {
            self.link.handle_heard(now, from, &heard);
        }
        arrivals
    }
}
