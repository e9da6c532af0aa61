//! Samples: one message each, with what travels beside the payload.

use crate::text::{is_plain, is_unprintable};
use bytes::Bytes;
use core::fmt;
use paceline_sched::{Duration, Instant};
use std::sync::Arc;

/// A UTC time stamp with a bound on its error.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Timestamp {
    /// Nanoseconds since 1970-01-01T00:00:00 UTC, leap seconds not counted.
    pub nanos: u64,
    /// The clock is at most 2^error microseconds off; 255 if nothing is known.
    pub error: u8,
}

impl Timestamp {
    /// The error byte of a clock that nobody has compared with another one.
    pub const UNKNOWN_ERROR: u8 = 255;
}

/// What a sample is to the scheduler and to whoever must shed load.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Kind {
    /// A message of its own: a command, a measurement, a piece of a file. None replaces another.
    #[default]
    Data,
    /// The newest value of something: a newer one replaces it.
    State,
    /// A picture that can be shown by itself (JPEG, PNG, raw): a newer one replaces it.
    Picture,
    /// A piece of sound; none replaces another.
    Audio,
    /// A video picture that is decoded by itself and begins anew: nothing after it needs anything
    /// before it. Publishers of video declare this kind; each sample then says its own.
    VideoI,
    /// A video picture that needs earlier ones, and that later ones need.
    VideoP,
    /// A video picture that needs others and that none needs (seed 004 calls these B): first to go
    /// when load is shed.
    VideoB,
}

impl Kind {
    /// The byte on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Data => 0,
            Self::State => 1,
            Self::Picture => 2,
            Self::Audio => 3,
            Self::VideoI => 4,
            Self::VideoP => 5,
            Self::VideoB => 6,
        }
    }

    /// True for pictures that may need others to be decoded.
    #[must_use]
    pub const fn is_video(self) -> bool {
        matches!(self, Self::VideoI | Self::VideoP | Self::VideoB)
    }

    /// True if a newer sample makes one that still waits worthless.
    #[must_use]
    pub const fn is_replaced(self) -> bool {
        matches!(self, Self::State | Self::Picture)
    }

    /// The kind of a byte on the wire; `None` if no kind has it.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Data),
            1 => Some(Self::State),
            2 => Some(Self::Picture),
            3 => Some(Self::Audio),
            4 => Some(Self::VideoI),
            5 => Some(Self::VideoP),
            6 => Some(Self::VideoB),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::State => "state",
            Self::Picture => "picture",
            Self::Audio => "audio",
            Self::VideoI => "video_i",
            Self::VideoP => "video_p",
            Self::VideoB => "video_b",
        })
    }
}

/// The longest [`Sample::attachment`], in bytes: it is never cut, and has to fit into one frame of any link.
pub const ATTACHMENT_BYTES_MAX: usize = 512;

/// The media type of a payload. Common ones cost one byte on the wire.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub enum Encoding {
    /// application/octet-stream
    #[default]
    Bytes,
    /// text/plain
    Text,
    /// application/json
    Json,
    /// image/jpeg
    Jpeg,
    /// Any other, at most 255 bytes long.
    Other(Arc<str>),
}

impl Encoding {
    /// The encoding with this name; names over 255 bytes are cut.
    #[must_use]
    pub fn new(name: &str) -> Self {
        match name {
            "application/octet-stream" | "" => Self::Bytes,
            "text/plain" => Self::Text,
            "application/json" => Self::Json,
            "image/jpeg" => Self::Jpeg,
            other => Self::Other(shorten(other).into()),
        }
    }

    /// Returns true if the name is [plain text](crate::text). Publishers refuse any other.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        match self {
            Self::Bytes | Self::Text | Self::Json | Self::Jpeg => true,
            Self::Other(name) => is_plain(name),
        }
    }

    /// The part of a name that the wire carries: at most 255 bytes of plain text. [`Self::Other`] can be made with
    /// any text.
    pub(crate) fn cut(name: &str) -> &str {
        let plain = name.find(is_unprintable).unwrap_or(name.len());
        shorten(name.get(..plain).unwrap_or_default())
    }

    /// The media type.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Bytes => "application/octet-stream",
            Self::Text => "text/plain",
            Self::Json => "application/json",
            Self::Jpeg => "image/jpeg",
            Self::Other(name) => name,
        }
    }
}

/// The first 255 bytes of a name.
fn shorten(name: &str) -> &str {
    let mut end = name.len().min(255);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One message on its way: a descriptor of fixed size plus shared bytes that are never copied again.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The publisher's sequence number, from 0, one up per sample.
    pub seq: u64,
    /// When it was captured, by the publisher's clock.
    pub captured: Timestamp,
    /// The instant of *this* node's clock at which the sample's age was zero. Carried over a link as
    /// an age, so no two clocks need to agree.
    pub born: Instant,
    /// What the sample is.
    pub kind: Kind,
    /// The media type of the payload.
    pub encoding: Encoding,
    /// The message.
    pub payload: Bytes,
    /// What a program put beside the message, at most [`ATTACHMENT_BYTES_MAX`] bytes; nobody here looks
    /// into it.
    pub attachment: Option<Arc<[u8]>>,
}

impl Sample {
    /// Bytes of the payload and of what is beside it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.payload.len() + self.attachment.as_ref().map_or(0, |bytes| bytes.len())
    }

    /// How old the sample is: publish to `now`.
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        now.since(self.born)
    }
}
