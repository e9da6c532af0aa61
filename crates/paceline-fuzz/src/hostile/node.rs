//! A node assembled from the pure parts: one link, the frame readers of its neighbours, and control. Unlike a
//! [`Node`](paceline_node::Node), it opens a stream with a contract without a request, so that no message of the hostile
//! neighbour can end it.

use bytes::Bytes;
use paceline_node::arrive::{FrameReader, HopTiming};
use paceline_proto::control::{Control, ControlOutput, HopInfo};
use paceline_proto::guard::Guard;
use paceline_proto::link::{Link, LinkEvent, LinkSpec, StreamSpec};
use paceline_proto::receive::Received;
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
    reader: FrameReader,
    guard: Guard,
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
        let half_round_trip = self.link.half_round_trip(from).unwrap_or_default();
        let hop = HopTiming { epoch: self.link.epoch(from), half_round_trip };
        let Some(Neighbour { reader, guard }) = self.neighbours.get_mut(&from) else {
            return Vec::new();
        };
        let mut items = Vec::new();
        let read = reader.handle_frame(now, hop, frame, guard, &mut items);
        self.malformed += u64::from(read.error.is_some());
        let mut arrivals = Vec::new();
        for item in items {
            match item {
                Received::Sample { sample, .. } => {
                    let published_at = sample.published_at;
                    assert!(published_at <= now, "it was published in the future");
                    arrivals.push(Arrival::Sample { published_at, seq: sample.seq });
                }
                Received::Lost { lost, .. } => arrivals.push(Arrival::Lost(lost.samples)),
                // Control counts the messages that it rejects.
                Received::Control(message) => {
                    _ = self.control.handle_message(now, from, message);
                }
            }
        }
        reader.receiver_mut().handle_timeout(now, |_| ());
        if let Some(heard) = read.heard {
            self.link.handle_heard(now, from, &heard);
        }
        arrivals
    }
}
