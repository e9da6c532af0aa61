//! A raw neighbour on a link: it writes its frames by itself, so that it can break any rule.
//!
//! It knows no carrier: the owner passes the frames of the other end to [`Speaker::hear`], and sends the frames that the
//! other methods return. Genuine control messages are those of a `Control` of the owner.

use bytes::Bytes;
use paceline_proto::receive::{Received, Receiver};
use paceline_proto::wire::ack::Ack;
use paceline_proto::wire::frame::FrameHeader;
use paceline_proto::wire::segment::{ControlHead, DataHead, SampleHead, write_open};
use paceline_proto::{Encoding, Form, Kind, PublisherId, Timestamp};
use paceline_sched::{Duration, Instant};

/// The longest piece of a message or sample in one frame, in bytes.
pub const PIECE_BYTES: usize = 60_000;

/// A piece of a sample in [`Speaker::piece`].
#[derive(Clone, Copy, Debug)]
pub struct SamplePiece {
    /// The number of the stream, which must have been opened.
    pub stream: u32,
    /// The number of the sample on the stream.
    pub number: u64,
    /// The length of the whole sample, in bytes.
    pub total: usize,
    /// The offset of the piece in the sample, in bytes.
    pub offset: usize,
    /// The length of the piece, in bytes.
    pub bytes: usize,
}

/// The state of one end of a hop.
#[derive(Debug)]
pub struct Speaker {
    receiver: Receiver,
    epoch: u32,
    /// The epoch of the other end, and the epoch of this end as known there.
    known: u32,
    known_there: u32,
    next_seq: u64,
    acknowledged: u64,
    owed: Option<Ack>,
    heard_bytes: u64,
}

impl Default for Speaker {
    fn default() -> Self {
        Self::new()
    }
}

impl Speaker {
    /// Returns the state before the first frame.
    #[must_use]
    pub fn new() -> Self {
        Self {
            receiver: Receiver::new(),
            epoch: 1,
            known: 0,
            known_there: 0,
            next_seq: 0,
            acknowledged: 0,
            owed: None,
            heard_bytes: 0,
        }
    }

    /// Reads a frame of the other end; returns its samples and control messages.
    pub fn hear(&mut self, now: Instant, frame: Bytes) -> Vec<Received> {
        self.heard_bytes += frame.len() as u64;
        let mut received = Vec::new();
        let epoch = self.epoch;
        let result = self.receiver.handle_frame(now, epoch, frame, |it| received.push(it));
        let Ok(heard) = result else { return received };
        if heard.epoch != self.known {
            let restarts = self.known > 0;
            self.known = heard.epoch;
            if restarts {
                self.restart();
                return Vec::new();
            }
        }
        self.known_there = heard.known;
        self.owed = heard.owed.or(self.owed);
        if heard.known == self.epoch {
            self.acknowledged = heard.ack.map_or(self.acknowledged, |ack| ack.next());
        }
        received
    }

    /// Begins the hop again, with a new epoch.
    pub const fn restart(&mut self) {
        self.epoch += 1;
        (self.next_seq, self.acknowledged) = (0, 0);
        self.owed = None;
    }

    /// Returns true once the other end has accepted this one as a neighbour.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.known > 0 && self.known_there == self.epoch
    }

    /// Returns true once the other end has acknowledged all numbered frames.
    #[must_use]
    pub const fn is_heard(&self) -> bool {
        self.acknowledged >= self.next_seq
    }

    /// Returns the bytes of all frames of the other end.
    #[must_use]
    pub const fn heard_bytes(&self) -> u64 {
        self.heard_bytes
    }

    /// Returns a frame that greets the other end, or shows that this end is alive and has received its frames.
    pub fn greeting(&mut self) -> Vec<u8> {
        let mut frame = Vec::new();
        let ack = if self.is_up() { self.owed } else { None };
        FrameHeader {
            epoch: self.epoch,
            known: self.known,
            ack,
            ack_now: true,
            ..FrameHeader::default()
        }
        .write(&mut frame);
        frame
    }

    /// Returns the header of the next numbered frame.
    fn numbered(&mut self) -> Vec<u8> {
        let mut frame = Vec::new();
        let (seq, ack, ack_now) = (Some(self.next_seq), self.owed, true);
        let (epoch, known) = (self.epoch, self.known);
        FrameHeader { epoch, known, seq, ack, ack_now, ..FrameHeader::default() }.write(&mut frame);
        self.next_seq += 1;
        frame
    }

    /// Returns the frames of a control message.
    pub fn message(&mut self, message: &[u8]) -> Vec<Vec<u8>> {
        let pieces = message.len().div_ceil(PIECE_BYTES).max(1);
        let mut frames = Vec::with_capacity(pieces);
        for (number, piece) in message.chunks(PIECE_BYTES).enumerate() {
            let mut frame = self.numbered();
            let total = (number == 0).then_some(message.len());
            ControlHead { total, last: number + 1 == pieces, len: piece.len() }.write(&mut frame);
            frame.extend_from_slice(piece);
            frames.push(frame);
        }
        frames
    }

    /// Returns a frame that opens a stream of any publisher.
    pub fn open(&mut self, stream: u32, publisher: PublisherId) -> Vec<u8> {
        let mut frame = self.numbered();
        write_open(stream, publisher, &Form::FULL, &mut frame);
        frame
    }

    /// Returns a frame with a piece of a sample.
    pub fn piece(&mut self, piece: SamplePiece) -> Vec<u8> {
        let SamplePiece { stream, number, total, offset, bytes: len } = piece;
        let mut frame = self.numbered();
        let head = head(total, number);
        let first = (offset == 0).then_some(&head);
        let last = offset + len >= total;
        DataHead { stream, number, first, offset, last, len }.write(&mut frame);
        frame.resize(frame.len() + len, b'h');
        frame
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
        age: Duration::ZERO,
        doubt: None,
        attachment: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_proto::NodeId;

    /// Passes a frame of one end to the other.
    fn pass(frame: Vec<u8>, to: &mut Speaker) -> Vec<Received> {
        to.hear(Instant::from_millis(1), frame.into())
    }

    #[test]
    fn two_of_them_meet_and_exchange_messages_and_samples() {
        let (mut near, mut far) = (Speaker::new(), Speaker::new());
        for _ in 0..2 {
            pass(near.greeting(), &mut far);
            pass(far.greeting(), &mut near);
        }
        assert!(near.is_up() && far.is_up());
        let message: Vec<u8> = (0..150_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let frames = near.message(&message);
        assert_eq!(frames.len(), 3);
        let mut got: Vec<_> = frames.into_iter().flat_map(|it| pass(it, &mut far)).collect();
        assert!(matches!(got.pop(), Some(Received::Control(it)) if it[..] == message[..]));
        assert!(!near.is_heard());
        pass(far.greeting(), &mut near);
        assert!(near.is_heard());
        let publisher = PublisherId { node: NodeId(7), index: 0 };
        pass(near.open(0, publisher), &mut far);
        let piece = |offset| SamplePiece { stream: 0, number: 0, total: 100, offset, bytes: 50 };
        assert!(pass(near.piece(piece(0)), &mut far).is_empty());
        let got = pass(near.piece(piece(50)), &mut far);
        assert!(
            matches!(&got[..], [Received::Sample { sample, .. }] if sample.payload.len() == 100)
        );
    }
}
