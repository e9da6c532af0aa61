//! Samples: messages with their metadata.

use crate::capture::CaptureGrid;
use crate::text::{is_plain, is_unprintable};
use bytes::Bytes;
use core::fmt;
use paceline_sched::{Duration, Instant};
use std::sync::Arc;

/// A UTC timestamp with a bound on its error.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Timestamp {
    /// Nanoseconds since 1970-01-01T00:00:00 UTC, without leap seconds.
    pub nanos: u64,
    /// Error bound: the clock is at most 2^error microseconds off; 255 if unknown.
    pub error: u8,
}

impl Timestamp {
    /// The error byte of a clock that was never compared with another one.
    pub const UNKNOWN_ERROR: u8 = 255;
}

/// The kind of a sample, as the scheduler and load shedding treat it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Kind {
    /// An independent message: a command, a measurement, a part of a file. It replaces no other. This is the
    /// default.
    #[default]
    Data,
    /// The current value of something: a newer sample replaces it.
    State,
    /// A picture that is decodable by itself (JPEG, PNG, raw): a newer one replaces it.
    Picture,
    /// A block of sound; it replaces no other.
    Audio,
    /// A video picture at which decoding can start: no later picture depends on an earlier one, except
    /// [`Self::VideoLeading`]. Publishers of video declare this kind; each sample then carries its own.
    VideoI,
    /// A video picture that depends on earlier ones and that later ones depend on.
    VideoP,
    /// A video picture that depends on others and that no other depends on (a B in seed 004). Load shedding
    /// drops this kind first.
    VideoB,
    /// A video picture that precedes the last [`Self::VideoI`] in presentation order. It may depend on
    /// pictures before that one, and on other leading ones; only leading ones depend on it.
    VideoLeading,
}

impl Kind {
    /// All kinds; the index is the byte on the wire.
    pub const ALL: [Self; 8] = [
        Self::Data,
        Self::State,
        Self::Picture,
        Self::Audio,
        Self::VideoI,
        Self::VideoP,
        Self::VideoB,
        Self::VideoLeading,
    ];

    /// Returns the name in JSON, such as `video_i`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::State => "state",
            Self::Picture => "picture",
            Self::Audio => "audio",
            Self::VideoI => "video_i",
            Self::VideoP => "video_p",
            Self::VideoB => "video_b",
            Self::VideoLeading => "video_leading",
        }
    }

    /// Returns the byte on the wire.
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
            Self::VideoLeading => 7,
        }
    }

    /// Returns true for pictures that may depend on others.
    #[must_use]
    pub const fn is_video(self) -> bool {
        matches!(self, Self::VideoI | Self::VideoP | Self::VideoB | Self::VideoLeading)
    }

    /// Returns true if a newer sample makes a queued one worthless.
    #[must_use]
    pub const fn is_replaced(self) -> bool {
        matches!(self, Self::State | Self::Picture)
    }

    /// Returns the kind of a byte on the wire; `None` if the byte is unknown.
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
            7 => Some(Self::VideoLeading),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The longest [`RawSample::attachment`], in bytes. Attachments are never split and must fit into one frame of
/// any link.
pub const ATTACHMENT_BYTES_MAX: usize = 512;

/// The media type of a payload. The named variants take one byte on the wire.
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
    /// Any other media type, at most 255 bytes long.
    Other(Arc<str>),
}

impl Encoding {
    /// Returns the encoding with this name; names over 255 bytes are truncated.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::known(name).unwrap_or_else(|| Self::Other(shorten(name).into()))
    }

    /// Returns the named variant of a media type. Without a name it is [`Self::Bytes`].
    pub(crate) fn known(name: &str) -> Option<Self> {
        match name {
            "application/octet-stream" | "" => Some(Self::Bytes),
            "text/plain" => Some(Self::Text),
            "application/json" => Some(Self::Json),
            "image/jpeg" => Some(Self::Jpeg),
            _ => None,
        }
    }

    /// Returns true if the name is [plain text](crate::text). Publishers refuse any other name.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        match self {
            Self::Bytes | Self::Text | Self::Json | Self::Jpeg => true,
            Self::Other(name) => is_plain(name),
        }
    }

    /// Returns the part of a name that the wire carries: at most 255 bytes of plain text. [`Self::Other`] may
    /// contain any text.
    pub(crate) fn cut(name: &str) -> &str {
        let plain = name.find(is_unprintable).unwrap_or(name.len());
        shorten(name.get(..plain).unwrap_or_default())
    }

    /// Returns the media type.
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

/// Returns at most the first 255 bytes of a name.
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

/// A message in transit: a descriptor of fixed size plus shared bytes that are never copied again.
#[derive(Clone, Debug, Default)]
pub struct RawSample {
    /// The publisher's sequence number: starts at 0 and increases by 1 per sample.
    pub seq: u64,
    /// The capture time, by the publisher's clock.
    pub captured: Timestamp,
    /// The place of the capture on the publisher's grid, from the nearest instant
    /// ([`CaptureGrid`]); 0 if the publisher declared no period.
    pub shift: i32,
    /// The instant of *this* node's clock at which the sample's age was zero. Links carry the age instead of
    /// this instant, so the nodes' clocks need not agree.
    pub published_at: Instant,
    /// The sample's true age exceeds [`Self::age`] by at most this; [`Self::UNPROVEN`] if no bound is known.
    pub doubt: Duration,
    /// The kind of the sample.
    pub kind: Kind,
    /// The media type of the payload.
    pub encoding: Encoding,
    /// The message.
    pub payload: Bytes,
    /// Opaque bytes that the application attached, at most [`ATTACHMENT_BYTES_MAX`].
    pub attachment: Option<Arc<[u8]>>,
}

impl RawSample {
    /// The [`Self::doubt`] of an age without a bound: a hop of the path has measured only an estimate.
    pub const UNPROVEN: Duration = Duration::from_nanos(u64::MAX);

    /// Returns the number of the capture on the grid of a publisher with the declared period `period`; without one, the
    /// sequence number. Thinned streams take samples by these numbers.
    #[must_use]
    pub fn number(&self, period: Option<Duration>) -> u64 {
        let period = period.filter(|period| !period.is_zero());
        let number = |period| CaptureGrid::number(self.captured.nanos, self.shift, period);
        period.map_or(self.seq, number)
    }

    /// Returns the largest possible age at `now`; `None` if it is unknown.
    #[must_use]
    pub fn oldest(&self, now: Instant) -> Option<Duration> {
        (self.doubt < Self::UNPROVEN).then(|| self.age(now).saturating_add(self.doubt))
    }

    /// Returns the number of bytes of the payload and the attachment.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.payload.len() + self.attachment.as_ref().map_or(0, |bytes| bytes.len())
    }

    /// Returns the sample's age: the time from publish to `now`.
    #[must_use]
    pub fn age(&self, now: Instant) -> Duration {
        now.since(self.published_at)
    }
}
