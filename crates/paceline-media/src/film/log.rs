//! The findings of a demuxer.

use super::{FilmTrack, FilmUnit};
use crate::damage::Damage;

/// The tracks that were found, and the damage that was skipped.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) tracks: Vec<FilmTrack>,
    pub(super) damage: Damage,
    /// The only track whose units are returned.
    pub(super) only: Option<usize>,
}

impl Log {
    /// Returns true if units of this track are returned.
    pub(super) fn wants(&self, track: usize) -> bool {
        self.only.is_none_or(|only| only == track)
    }
}

/// The progress of a demuxer.
#[derive(Debug)]
pub(super) enum Progress {
    /// A unit.
    Unit(FilmUnit),
    /// Something else was read.
    Again,
    /// The bytes that [`Window::want`] names are needed.
    More,
    /// The film has ended.
    Ended,
}
