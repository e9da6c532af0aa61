//! The form of a stream: at which rate and size its samples travel.

use core::fmt;
use core::num::NonZeroU32;
use paceline_sched::Duration;

/// How many of a publisher's samples a subscription asks for (temporal scaling, seed 000 §2.1).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Rate {
    /// Every sample.
    #[default]
    All,
    /// One sample in n.
    Every(NonZeroU32),
    /// At most this many samples per second, in millihertz, evenly spread.
    Max(NonZeroU32),
}

impl Rate {
    /// The time between two samples of this rate, from a source with `period` between two.
    ///
    /// `None` if the source's period is not known and the rate depends on it.
    #[must_use]
    pub fn period(self, source: Option<Duration>) -> Option<Duration> {
        match self {
            Self::All => source,
            Self::Every(n) => source.map(|period| period.mul_div(u64::from(n.get()), 1)),
            Self::Max(millihertz) => {
                let asked = Duration::from_nanos(1_000_000_000_000 / u64::from(millihertz.get()));
                Some(source.map_or(asked, |period| period.max(asked)))
            }
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Every(n) => write!(f, "1 in {n}"),
            Self::Max(millihertz) => {
                let (hertz, milli) = (millihertz.get() / 1_000, millihertz.get() % 1_000);
                match milli {
                    0 => write!(f, "{hertz} Hz"),
                    _ => write!(f, "{hertz}.{milli:03} Hz"),
                }
            }
        }
    }
}

/// A picture's width and height in pixels, neither zero.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Size {
    /// Pixels from left to right.
    pub width: u32,
    /// Pixels from top to bottom.
    pub height: u32,
}

impl Size {
    /// True if a picture of this size can be scaled down from one of `source`.
    #[must_use]
    pub const fn fits_in(self, source: Self) -> bool {
        self.width <= source.width && self.height <= source.height
    }

    /// Width × height.
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

/// How sound is sampled.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Audio {
    /// Samples of each channel per second, not zero.
    pub rate: u32,
    /// Channels, not zero.
    pub channels: u8,
}

impl fmt::Display for Audio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Hz x {}", self.rate, self.channels)
    }
}

/// The form of a stream: what temporal and spatial scaling leave of the publisher's samples.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Form {
    /// Which samples.
    pub rate: Rate,
    /// At which size; `None` for the publisher's own.
    pub size: Option<Size>,
    /// How sound is sampled; `None` for the publisher's own way.
    pub audio: Option<Audio>,
}

impl Form {
    /// The publisher's own form: every sample at its own size.
    pub const FULL: Self = Self { rate: Rate::All, size: None, audio: None };
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rate.fmt(f)?;
        if let Some(size) = self.size {
            write!(f, " at {size}")?;
        }
        self.audio.map_or(Ok(()), |audio| write!(f, " at {audio}"))
    }
}

/// Where a subscription's scaling is done.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Proxy {
    /// On the publisher's node, before the first link: the links carry the scaled stream.
    #[default]
    Publisher,
    /// On the subscriber's node, behind the last link: the links carry the full stream.
    Subscriber,
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
        })
    }
}
