//! A neighbour that writes its own frames.

use bytes::Bytes;
use paceline_proto::wire::frame::FrameHeader;
use paceline_proto::wire::segment::{
    DataHead, Retransmission, SampleHead, write_open, write_open_retransmitted,
};
use paceline_proto::{Encoding, Form, Kind, NodeId, PublisherId, Retransmit, Timestamp};
use paceline_sched::Duration;
use std::collections::BTreeMap;

/// The sample that a stream is sending: its number, its length, and the part that was sent.
#[derive(Clone, Copy, Default)]
struct Sending {
    number: u64,
    total: usize,
    sent: usize,
}

/// Writes the frames of a neighbour.
pub(crate) struct Sender {
    datagrams: bool,
    seq: u64,
    streams: BTreeMap<u32, Sending>,
}

impl Sender {
    pub(crate) fn new(datagrams: bool) -> Self {
        Self { datagrams, seq: 0, streams: BTreeMap::new() }
    }

    /// Gives up the sample that a stream is sending.
    pub(crate) fn skip(&mut self, stream: u32) {
        self.streams.entry(stream).and_modify(|it| (it.number, it.sent) = (it.number + 1, 0));
    }

    /// Returns a frame with the next `bytes` of the sample of a stream; a new one has `total` bytes.
    pub(crate) fn frame(&mut self, stream: u32, total: usize, bytes: usize) -> Bytes {
        let mut out = Vec::new();
        let (seq, datagrams) = (Some(self.seq), self.datagrams);
        FrameHeader { epoch: 1, known: 1, seq, datagrams, ..FrameHeader::default() }
            .write(&mut out);
        self.seq += 1;
        if !self.streams.contains_key(&stream) {
            let publisher = PublisherId { node: NodeId(9), index: stream };
            if datagrams {
                let retransmission =
                    Retransmission { retransmit: Retransmit::Selective, hold: None, first: 0 };
                write_open_retransmitted(stream, publisher, &Form::FULL, retransmission, &mut out);
            } else {
                write_open(stream, publisher, &Form::FULL, &mut out);
            }
        }
        let sending = self.streams.entry(stream).or_default();
        if sending.sent == 0 {
            sending.total = total;
        }
        let Sending { number, total, sent: offset } = *sending;
        let len = bytes.min(total - offset);
        let last = offset + len == total;
        let head = head(total, number);
        let first = (offset == 0).then_some(&head);
        DataHead { stream, number, first, offset, last, len }.write(&mut out);
        out.resize(out.len() + len, 7);
        sending.sent += len;
        if last {
            *sending = Sending { number: number + 1, ..Sending::default() };
        }
        out.into()
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
