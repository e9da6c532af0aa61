//! A track of a film: its codec, its clock and its orientation.

use super::codec::{FilmCodec, FilmKind};
use crate::size::Size;
use std::fmt;

/// The length of a tick: `num / den` seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBase {
    /// The numerator, at least 1.
    pub num: u32,
    /// The denominator, at least 1.
    pub den: u32,
}

impl TimeBase {
    /// Milliseconds.
    pub const MILLIS: Self = Self { num: 1, den: 1_000 };
    /// The clock of MPEG systems, 90 kHz.
    pub const MPEG: Self = Self { num: 1, den: 90_000 };

    /// Returns a time in nanoseconds. Times out of range become the nearest one in range.
    #[must_use]
    pub fn nanos(self, ticks: i64) -> i64 {
        let nanos = i128::from(ticks) * 1_000_000_000 * i128::from(self.num);
        let nanos = nanos.div_euclid(i128::from(self.den.max(1)));
        i64::try_from(nanos).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX })
    }
}

/// The orientation in which the pictures of a track are to be shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilmTurn {
    /// The rotation clockwise in degrees: 0, 90, 180 or 270.
    pub degrees: u16,
    /// True if the pictures are also mirrored, or transformed in another way than by quarter turns.
    pub other: bool,
}

impl FilmTurn {
    /// Returns true if pictures are shown as they are.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.degrees == 0 && !self.other
    }
}

impl fmt::Display for FilmTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { other: true, .. } => f.write_str("mirrored or transformed"),
            Self { degrees, .. } => write!(f, "rotated by {degrees}° clockwise"),
        }
    }
}

/// A track of a film.
#[derive(Debug, Clone, PartialEq)]
pub struct FilmTrack {
    /// The number of the track in the container: a track id, a track number or a PID.
    pub id: u64,
    /// The codecs of its units, at least one. Most films have one per track.
    pub codecs: Vec<FilmCodec>,
    /// The length of a tick.
    pub tick: TimeBase,
    /// The size of its pictures that the container states.
    pub size: Option<Size>,
    /// The orientation of its pictures.
    pub turn: FilmTurn,
}

impl FilmTrack {
    /// Returns the medium of the track.
    #[must_use]
    pub fn kind(&self) -> FilmKind {
        self.codecs.first().map_or(FilmKind::Other, FilmCodec::kind)
    }

    /// Returns the name of the first codec.
    #[must_use]
    pub fn codec_name(&self) -> String {
        self.codecs.first().map_or_else(|| "nothing".to_owned(), ToString::to_string)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds_without_overflow() {
        let ntsc = TimeBase { num: 1_001, den: 30_000 };
        assert_eq!(ntsc.nanos(3), 100_100_000);
        assert_eq!(TimeBase::MILLIS.nanos(-1), -1_000_000);
        assert_eq!(TimeBase { num: u32::MAX, den: 1 }.nanos(i64::MIN), i64::MIN);
        assert_eq!(TimeBase { num: u32::MAX, den: 1 }.nanos(i64::MAX), i64::MAX);
    }
}
