//! A hostile neighbour that writes its own frames.

use paceline::contract::Form;
use paceline::status::{NodeId, PublisherId};
use paceline::{Encoding, Kind, Node, Timestamp};
use paceline_proto::wire::frame::{Ack, FrameHeader};
use paceline_proto::wire::segment::{DataHead, SampleHead, write_open};
use paceline_proto::wire::{Reader, VERSION};
use std::sync::{Arc, Mutex};
use zenoh::Wait as _;
use zenoh::qos::CongestionControl;

/// The last header of the victim: its epoch, the rogue's epoch as known to it, and its
/// acknowledgement.
#[derive(Clone, Copy, Default)]
struct Said {
    epoch: u32,
    known: u32,
    next: u64,
    /// The last frame of the rogue that the victim has acknowledged.
    acknowledged: u64,
}

pub(crate) struct Rogue {
    pub(crate) id: NodeId,
    session: zenoh::Session,
    frames: zenoh::pubsub::Publisher<'static>,
    _subscriber: zenoh::pubsub::Subscriber<()>,
    said: Arc<Mutex<Said>>,
    seq: u64,
}

/// Opens a plain Zenoh session on the link of the node that listens at `endpoint`.
pub(crate) fn stranger(endpoint: &str) -> zenoh::Session {
    let mut config = zenoh::Config::default();
    for (key, value) in [
        ("mode", "\"peer\"".to_owned()),
        ("connect/endpoints", format!("[{endpoint:?}]")),
        ("listen/endpoints", "[]".to_owned()),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("scouting/gossip/enabled", "false".to_owned()),
    ] {
        config.insert_json5(key, &value).unwrap();
    }
    paceline::open_session(config).unwrap()
}

impl Rogue {
    /// Joins the link on which `victim` listens.
    pub(crate) fn join(victim: &Node, endpoint: &str) -> Self {
        let id = NodeId(0x5152_5354_5556_5758);
        let session = stranger(endpoint);
        let said = Arc::new(Mutex::new(Said::default()));
        let heard = said.clone();
        let listens = session.declare_subscriber(format!("p/{id}/{}", victim.id()));
        let listens = listens.callback(move |sample| {
            let mut frame = Reader::new(sample.payload().to_bytes().into_owned().into());
            let header = FrameHeader::read(&mut frame).unwrap();
            let mut said = heard.lock().unwrap();
            let next = if header.epoch == said.epoch { said.next } else { 0 };
            let acknowledged = header.ack.map_or(said.acknowledged, |ack| ack.next);
            let next = header.seq.map_or(next, |seq| seq + 1);
            *said = Said { epoch: header.epoch, known: header.known, next, acknowledged };
        });
        let subscriber = listens.wait().unwrap();
        let frames = session.declare_publisher(format!("p/{}/{id}", victim.id()));
        let frames = frames.congestion_control(CongestionControl::Block).wait().unwrap();
        Self { id, session, frames, _subscriber: subscriber, said, seq: 0 }
    }

    /// Sends a beacon; returns true once the victim has accepted it as a neighbour.
    pub(crate) fn greet(&self) -> bool {
        let hi = [&[VERSION][..], &self.id.0.to_be_bytes()].concat();
        self.session.put("p/hi", hi).wait().unwrap();
        let Said { epoch: known, known: us, .. } = *self.said.lock().unwrap();
        if known > 0 {
            let mut frame = Vec::new();
            FrameHeader { epoch: 1, known, ack_now: true, ..FrameHeader::default() }
                .write(&mut frame);
            self.send(frame);
        }
        us == 1
    }

    /// Returns true once the victim has acknowledged all frames.
    pub(crate) fn is_heard(&self) -> bool {
        self.said.lock().unwrap().acknowledged >= self.seq
    }

    /// Sends a frame of these bytes.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        self.frames.put(frame).wait().unwrap();
    }

    /// Sends a frame with a whole sample of `bytes` bytes, on a stream that the frame opens.
    pub(crate) fn send_sample(&mut self, bytes: usize) {
        self.send_numbered(self.seq, bytes);
    }

    /// Sends a sample with this sequence number in the name of another publisher.
    pub(crate) fn send_as(&mut self, publisher: PublisherId, seq: u64) {
        self.send_of(publisher, (self.seq, seq), 100);
    }

    /// Sends the same frame with any sequence number.
    pub(crate) fn send_numbered(&mut self, number: u64, bytes: usize) {
        self.send_of(PublisherId { node: self.id, index: 0 }, (number, self.seq), bytes);
    }

    fn send_of(&mut self, publisher: PublisherId, (number, seq): (u64, u64), bytes: usize) {
        let Said { epoch, next, .. } = *self.said.lock().unwrap();
        let (frame, ack) = (Some(self.seq), Some(Ack { next, selective: 0 }));
        let mut out = Vec::new();
        let (known, ack_now) = (epoch, true);
        let header =
            FrameHeader { epoch: 1, known, seq: frame, ack, ack_now, ..FrameHeader::default() };
        header.write(&mut out);
        write_open(0, publisher, &Form::FULL, &mut out);
        let first = SampleHead {
            total: bytes,
            seq,
            captured: Timestamp { nanos: 1, error: 0 },
            kind: Kind::Data,
            encoding: Encoding::Bytes,
            age: paceline_sched::Duration::ZERO,
            attachment: None,
        };
        let (first, len) = (Some(&first), bytes);
        DataHead { stream: 0, number, first, offset: 0, last: true, len }.write(&mut out);
        out.resize(out.len() + bytes, 7);
        self.seq += 1;
        self.send(out);
    }
}
