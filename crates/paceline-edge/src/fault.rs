//! The reasons why pictures are left out, and their counts.

use crate::track::TrackKind;
use std::fmt;

/// The reason why a picture or a block of sound is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitFault {
    /// Packets of it did not arrive.
    Lost,
    /// Its packets contradict the format of the track.
    Malformed(&'static str),
    /// It is above a bound.
    TooLarge,
    /// It needs a picture that was left out.
    NeedsLost,
    /// It needs a picture from before the first one that arrived.
    Early,
    /// It is a key picture whose parameter sets are not known.
    NoSets,
}

/// The pictures and blocks that were left out, by reason.
///
/// ```
/// use paceline_edge::{UnitFault, Losses};
///
/// let mut losses = Losses::default();
/// losses.add(UnitFault::Lost);
/// losses.add(UnitFault::NeedsLost);
/// losses.add(UnitFault::NeedsLost);
/// assert_eq!(losses.total(), 3);
/// assert_eq!(losses.to_string(), "3 pictures left out: 1 with lost packets, 2 that need a lost picture");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    kind: TrackKind,
    lost: u64,
    malformed: u64,
    first: Option<&'static str>,
    large: u64,
    needs: u64,
    early: u64,
    unset: u64,
}

impl Losses {
    /// Returns no losses of a kind of track.
    #[must_use]
    pub fn of(kind: TrackKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Adds a picture or block.
    pub fn add(&mut self, fault: UnitFault) {
        match fault {
            UnitFault::Lost => self.lost += 1,
            UnitFault::Malformed(reason) => {
                self.malformed += 1;
                self.first.get_or_insert(reason);
            }
            UnitFault::TooLarge => self.large += 1,
            UnitFault::NeedsLost => self.needs += 1,
            UnitFault::Early => self.early += 1,
            UnitFault::NoSets => self.unset += 1,
        }
    }

    /// Returns the number of all.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.lost + self.malformed + self.large + self.needs + self.early + self.unset
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let noun = match self.kind {
            TrackKind::Pictures => "picture",
            TrackKind::Sound => "block",
        };
        write!(f, "{total} {noun}{} left out", if total == 1 { "" } else { "s" })?;
        let first = self.first.unwrap_or_default();
        let parts = [
            (self.lost, "with lost packets", ""),
            (self.needs, "that need a lost picture", ""),
            (self.early, "before the first key picture", ""),
            (self.unset, "without parameter sets, which the description lacks too", ""),
            (self.malformed, "with packets that cannot be read: ", first),
            (self.large, "above the limit of 64 MiB", ""),
        ];
        let mut before = ": ";
        for (count, what, more) in parts.into_iter().filter(|(count, ..)| *count > 0) {
            write!(f, "{before}{count} {what}{more}")?;
            before = ", ";
        }
        Ok(())
    }
}
