//! A hostile neighbour that writes its own frames.

use paceline::contract::Form;
use paceline::status::{NodeId, PublisherId};
use paceline::{Encoding, Kind, Timestamp};
use paceline_proto::wire::ack::Ack;
use paceline_proto::wire::frame::FrameHeader;
use paceline_proto::wire::segment::{DataHead, SampleHead, write_open};
use paceline_proto::wire::{Reader, VERSION};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

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

/// Returns the id of a node that does not exist, and the first bytes of its connections.
pub(crate) fn introduction(number: u64) -> (NodeId, Vec<u8>) {
    let mut introduction = [0; 48];
    introduction[32..40].copy_from_slice(&number.to_be_bytes());
    let hash = ring::digest::digest(&ring::digest::SHA256, &introduction);
    let id = NodeId(u64::from_be_bytes(hash.as_ref()[..8].try_into().unwrap()));
    (id, [&b"PACE"[..], &[VERSION], &introduction].concat())
}

/// A connection that speaks the protocol of a link as it likes.
pub(crate) struct Stranger {
    pub(crate) id: NodeId,
    stream: TcpStream,
}

impl Stranger {
    /// Connects to the node that listens at `endpoint`, and introduces itself. The number determines its id.
    pub(crate) fn connect(endpoint: &str, number: u64) -> Self {
        let (id, words) = introduction(number);
        let mut stream = Self::silent(endpoint);
        stream.write_all(&words).unwrap();
        Self { id, stream }
    }

    /// Connects without an introduction.
    pub(crate) fn silent(endpoint: &str) -> TcpStream {
        let stream = TcpStream::connect(endpoint.trim_start_matches("tcp/")).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Sends a frame of these bytes; returns false if the other end has closed the connection.
    pub(crate) fn send(&mut self, frame: &[u8]) -> bool {
        let length = u16::try_from(frame.len()).unwrap().to_be_bytes();
        self.stream.write_all(&[&length[..], frame].concat()).is_ok()
    }

    /// Calls `heard` for each frame of the other end, on a thread.
    fn listen(&self, mut heard: impl FnMut(Vec<u8>) + Send + 'static) {
        let mut stream = self.stream.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut read = |bytes: usize| {
                let mut buffer = vec![0; bytes];
                stream.read_exact(&mut buffer).ok().map(|()| buffer)
            };
            read(53)?;
            loop {
                let length = read(2)?;
                let length = u16::from_be_bytes([length[0], length[1]]);
                match length {
                    0 => {}
                    u16::MAX => return None::<()>,
                    length => heard(read(usize::from(length))?),
                }
            }
        });
    }
}

pub(crate) struct Rogue {
    pub(crate) id: NodeId,
    stranger: Mutex<Stranger>,
    said: Arc<Mutex<Said>>,
    heard: Arc<AtomicUsize>,
    seq: u64,
}

impl Rogue {
    /// Joins the link of the node that listens at `endpoint`.
    pub(crate) fn join(endpoint: &str) -> Self {
        Self::join_as(endpoint, 0x5152_5354_5556_5758)
    }

    /// As [`Self::join`]; the number determines the id.
    pub(crate) fn join_as(endpoint: &str, number: u64) -> Self {
        let stranger = Stranger::connect(endpoint, number);
        let said = Arc::new(Mutex::new(Said::default()));
        let heard = Arc::new(AtomicUsize::new(0));
        let (its, bytes) = (said.clone(), heard.clone());
        stranger.listen(move |frame| {
            bytes.fetch_add(frame.len(), Ordering::Relaxed);
            let header = FrameHeader::read(&mut Reader::new(frame.into())).unwrap();
            let mut said = its.lock().unwrap();
            let next = if header.epoch == said.epoch { said.next } else { 0 };
            let acknowledged = header.ack.map_or(said.acknowledged, |ack| ack.next());
            let next = header.seq.map_or(next, |seq| seq + 1);
            *said = Said { epoch: header.epoch, known: header.known, next, acknowledged };
        });
        Self { id: stranger.id, stranger: Mutex::new(stranger), said, heard, seq: 0 }
    }

    /// Answers the victim's greeting; returns true once the victim has accepted it as a neighbour.
    pub(crate) fn greet(&self) -> bool {
        let Said { epoch: known, known: us, .. } = *self.said.lock().unwrap();
        if known > 0 {
            let mut frame = Vec::new();
            FrameHeader { epoch: 1, known, ack_now: true, ..FrameHeader::default() }
                .write(&mut frame);
            self.send(frame);
        }
        us == 1
    }

    /// Returns the bytes of all frames that it has received.
    pub(crate) fn heard_bytes(&self) -> usize {
        self.heard.load(Ordering::Relaxed)
    }

    /// Returns true once the victim has acknowledged all frames.
    pub(crate) fn is_heard(&self) -> bool {
        self.said.lock().unwrap().acknowledged >= self.seq
    }

    /// Sends a frame of these bytes.
    pub(crate) fn send(&self, frame: Vec<u8>) {
        self.stranger.lock().unwrap().send(&frame);
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

    /// Sends the next `bytes` of a sample of `total` bytes that it never finishes, from this offset on.
    pub(crate) fn send_part(&mut self, offset: usize, bytes: usize, total: usize) {
        let publisher = PublisherId { node: self.id, index: 0 };
        let mut out = self.begin_frame();
        if offset == 0 {
            write_open(0, publisher, &Form::FULL, &mut out);
        }
        let (number, seq) = (0, 0);
        let head = head(total, seq);
        let (first, last) = ((offset == 0).then_some(&head), false);
        DataHead { stream: 0, number, first, offset, last, len: bytes }.write(&mut out);
        out.resize(out.len() + bytes, 7);
        self.seq += 1;
        self.send(out);
    }

    /// Returns the header of the next frame.
    fn begin_frame(&self) -> Vec<u8> {
        let Said { epoch, next, .. } = *self.said.lock().unwrap();
        let (seq, ack) = (Some(self.seq), Some(Ack::of_all_below(next)));
        let mut out = Vec::new();
        let (known, ack_now) = (epoch, true);
        FrameHeader { epoch: 1, known, seq, ack, ack_now, ..FrameHeader::default() }
            .write(&mut out);
        out
    }

    fn send_of(&mut self, publisher: PublisherId, (number, seq): (u64, u64), bytes: usize) {
        let mut out = self.begin_frame();
        write_open(0, publisher, &Form::FULL, &mut out);
        let first = head(bytes, seq);
        let (first, len) = (Some(&first), bytes);
        DataHead { stream: 0, number, first, offset: 0, last: true, len }.write(&mut out);
        out.resize(out.len() + bytes, 7);
        self.seq += 1;
        self.send(out);
    }
}

fn head(total: usize, seq: u64) -> SampleHead {
    SampleHead {
        total,
        seq,
        captured: Timestamp { nanos: 1, error: 0 },
        shift: 0,
        kind: Kind::Data,
        encoding: Encoding::Bytes,
        age: paceline_sched::Duration::ZERO,
        doubt: None,
        attachment: None,
    }
}
