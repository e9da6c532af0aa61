//! The form of a stream: the rate and size of its samples.

use crate::ids::NodeId;
use core::fmt;
use core::num::{NonZeroU8, NonZeroU32};
use core::str::FromStr;
use paceline_sched::Duration;
use std::sync::Arc;

pub use crate::rate::Rate;

/// The reason why pictures cannot be scaled: the decoder lacks a feature that they use, or a mean of pixels has no
/// meaning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Unscalable {
    /// Its pictures are interlaced.
    Interlaced,
    /// Its colours are not stored as 4:2:0.
    Chroma,
    /// Its samples have more than 8 bits.
    Depth,
    /// Its profile has other features that the decoder lacks.
    Profile,
    /// There is no decoder for its media type, or for any in this build.
    Codec,
    /// They are Bayer patterns, depth or another kind of picture that is not scaled.
    Pixels,
    /// The encoder does not code the requested size.
    Sides,
    /// Several pictures in sequence could not be decoded or scaled, and none before them was.
    Failed,
}

impl Unscalable {
    /// All reasons; the index is the byte on the wire.
    const ALL: [Self; 8] = [
        Self::Interlaced,
        Self::Chroma,
        Self::Depth,
        Self::Profile,
        Self::Codec,
        Self::Pixels,
        Self::Sides,
        Self::Failed,
    ];

    /// Returns the byte on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Interlaced => 0,
            Self::Chroma => 1,
            Self::Depth => 2,
            Self::Profile => 3,
            Self::Codec => 4,
            Self::Pixels => 5,
            Self::Sides => 6,
            Self::Failed => 7,
        }
    }

    /// Returns the reason of a byte on the wire; `None` if the byte is unknown.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for Unscalable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interlaced => "it is interlaced",
            Self::Chroma => "its colours are not 4:2:0",
            Self::Depth => "its samples have more than 8 bits",
            Self::Profile => "the decoder does not support its profile",
            Self::Codec => "there is no decoder for it",
            Self::Pixels => {
                "its pixels are of an encoding that is not scaled, such as Bayer or depth"
            }
            Self::Sides => "its encoder needs even sides of 16x16 to 3840x2160 or 2160x3840",
            Self::Failed => "each attempt to decode and scale them has failed",
        })
    }
}

/// A picture's width and height in pixels, both nonzero.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Size {
    /// Horizontal pixels.
    pub width: u32,
    /// Vertical pixels.
    pub height: u32,
}

impl Size {
    /// Returns true if a picture of size `source` can be scaled down to this size.
    #[must_use]
    pub const fn fits_in(self, source: Self) -> bool {
        self.width <= source.width && self.height <= source.height
    }

    /// Returns the number of pixels: width × height.
    #[must_use]
    pub const fn pixels(self) -> u64 {
        self.width as u64 * self.height as u64
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The sampling rate and channels of sound.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Audio {
    /// Samples per second of each channel, nonzero.
    pub rate: u32,
    /// Number of channels, nonzero.
    pub channels: u8,
}

impl fmt::Display for Audio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Hz x {}", self.rate, self.channels)
    }
}

/// The form of a stream: its samples' rate and size after temporal and spatial scaling.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Form {
    /// The share of the publisher's samples.
    pub rate: Rate,
    /// The picture size; `None` for the publisher's own size.
    pub size: Option<Size>,
    /// The audio format; `None` for the publisher's own format.
    pub audio: Option<Audio>,
    /// The highest bit rate of coded pictures and sound, in bits per second of payload; `None` for the default of the
    /// size, and for sound that is not compressed.
    pub bitrate: Option<NonZeroU32>,
    /// The highest quality of JPEG pictures, from 1 to 100; `None` for 80, or unchanged pictures.
    pub quality: Option<NonZeroU8>,
    /// The proxy between publisher and subscriber behind which the samples travel; `None` in requests, up to the proxy, and
    /// for a proxy at one of the ends. Streams behind different proxies are different, even if their samples are equal.
    pub via: Option<NodeId>,
}

impl Form {
    /// The publisher's own form: every sample, unscaled.
    pub const FULL: Self =
        Self { rate: Rate::ALL, size: None, audio: None, bitrate: None, quality: None, via: None };

    /// Returns the form without the proxy: what scaling has to do.
    #[must_use]
    pub const fn without_via(self) -> Self {
        Self { via: None, ..self }
    }

    /// Returns true if samples are converted, and not only left out.
    #[must_use]
    pub const fn converts(&self) -> bool {
        self.size.is_some()
            || self.audio.is_some()
            || self.bitrate.is_some()
            || self.quality.is_some()
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rate.fmt(f)?;
        if let Some(size) = self.size {
            write!(f, " at {size}")?;
        }
        if let Some(audio) = self.audio {
            write!(f, " at {audio}")?;
        }
        if let Some(bitrate) = self.bitrate {
            write!(f, " at {bitrate} bit/s")?;
        }
        self.quality.map_or(Ok(()), |quality| write!(f, " at quality {quality}"))
    }
}

/// The measured samples of one form of a publisher, which its node scales.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScaledForm {
    /// The form, with every sample.
    pub form: Form,
    /// The largest payload of a sample in bytes.
    pub bytes_max: u64,
    /// The longest time from the arrival of a sample at the scaler to its result.
    pub takes: Duration,
    /// The processor time of a sample.
    pub work: Duration,
}

impl ScaledForm {
    /// The maximum number of forms in a publisher's record.
    pub const FORMS_MAX: usize = 32;
}

/// The node that scales a subscription's samples.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Proxy {
    /// The publisher's node, before the first link: the links carry the scaled stream. This is the default.
    #[default]
    Publisher,
    /// The subscriber's node, after the last link: the links carry the full stream.
    Subscriber,
    /// The node of this name, of 1 to [`Proxy::NAME_BYTES_MAX`] bytes: links before it carry
    /// the full stream, and links behind it the scaled one. The path leads through it. Of several nodes with the name,
    /// the one with the shortest path counts.
    Node(Arc<str>),
    /// The node that the publisher's node computes for the least traffic on all links.
    Auto,
}

impl Proxy {
    /// The longest name of a node, in bytes.
    pub const NAME_BYTES_MAX: usize = 255;
}

/// The error for a text that is no [`Proxy`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("must be publisher, subscriber, auto or node:NAME with a name of 1 to 255 bytes")]
pub struct ProxyError;

impl FromStr for Proxy {
    type Err = ProxyError;

    /// Parses `publisher`, `subscriber`, `auto` or `node:NAME`.
    fn from_str(text: &str) -> Result<Self, ProxyError> {
        match text {
            "publisher" => Ok(Self::Publisher),
            "subscriber" => Ok(Self::Subscriber),
            "auto" => Ok(Self::Auto),
            text => {
                let name = text.strip_prefix("node:").ok_or(ProxyError)?;
                let fits = (1..=Self::NAME_BYTES_MAX).contains(&name.len());
                fits.then(|| Self::Node(name.into())).ok_or(ProxyError)
            }
        }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Publisher => f.write_str("publisher"),
            Self::Subscriber => f.write_str("subscriber"),
            Self::Node(name) => write!(f, "node:{name}"),
            Self::Auto => f.write_str("auto"),
        }
    }
}
