//! Pictures and blocks of sound as all players of a feed receive them.

use paceline_edge::PayloadPart;

/// A picture or a block of sound, cut into packets once for all players.
#[derive(Debug)]
pub(super) struct MediaUnit {
    pub(super) parts: Vec<PayloadPart>,
    /// The presentation time in units of the clock rate, since 1970 UTC.
    pub(super) time: i64,
    /// The difference of the capture time and `time` for sender reports.
    pub(super) skew: i64,
    /// The bytes of all payloads.
    pub(super) bytes: usize,
    pub(super) role: UnitRole,
}

/// The dependencies of a unit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UnitRole {
    /// A picture at which decoding can start.
    Key,
    /// A picture that needs earlier ones.
    Delta,
    /// A picture that no other needs.
    Spare,
    /// A picture that may need others from before the last key picture.
    Leading,
    /// A block of sound.
    Sound,
}

impl UnitRole {
    pub(super) const fn is_picture(self) -> bool {
        !matches!(self, Self::Sound)
    }
}
