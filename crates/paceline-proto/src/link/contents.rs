//! The contents of frames that are sent again if their frame is lost.

use crate::wire::segment::SampleHead;
use bytes::Bytes;
use paceline_sched::Instant;
use paceline_sched::discipline::StreamIndex;

/// A sent piece of a sample.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) stream: StreamIndex,
    /// The stream's number on the wire; distinguishes it from a later stream with the same index.
    pub(super) id: u32,
    /// The sample's number on the stream.
    pub(super) number: u64,
    /// The sample's head, in its first piece.
    pub(super) head: Option<SampleHead>,
    /// The publish time of the sample, on this clock.
    pub(super) published_at: Instant,
    pub(super) offset: usize,
    pub(super) last: bool,
    /// The time by which it must arrive to be of use.
    pub(super) due: Instant,
    pub(super) payload: Bytes,
}

/// A sent piece of a control message.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) number: u64,
    pub(super) total: usize,
    pub(super) offset: usize,
    pub(super) payload: Bytes,
}

/// A frame's content that must be sent again if the frame is lost.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Piece(Piece),
    /// The announcement of a stream: its index, its number on the wire and the version of the announcement.
    Open(StreamIndex, u32, u32),
    Notice(Notice),
    Part(Part),
}

impl Item {
    pub(super) const fn is_piece(&self) -> bool {
        matches!(self, Self::Piece(_))
    }

    pub(super) fn into_piece(self) -> Option<Piece> {
        if let Self::Piece(piece) = self { Some(piece) } else { None }
    }
}

/// The end of a stream or of a sample, for the receiver.
#[derive(Clone, Copy, Debug)]
pub(super) enum Notice {
    /// A stream was closed, with the number of samples that it has begun.
    Close(u32, u64),
    /// A sample of a stream will not be completed.
    Abort(u32, u64),
}
